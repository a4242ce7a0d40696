// The table of all endpoints below `/__anteroom/client/v4/`: `api.js` answers by it, and `openapi.js` describes it.

/**
 * @typedef {object} Endpoint
 * @property {string} path below `/__anteroom/client/v4/`; `{name}` stands for any text without a slash. Of two that fit the
 *   first counts
 * @property {"GET" | "POST" | "PUT" | "PATCH" | "DELETE"} method
 * @property {string} does what `api.js` calls it
 * @property {string} summary
 * @property {string} [takes] what the body is, by its name in `openapi.js`
 * @property {string} gives what the result is, likewise
 * @property {string[]} [query] parameters
 * @property {"view" | "steer" | "configure"} [role] the least that may; without it: view to read, else configure
 */

const ROOMS = "zones/{zone_id}/waiting_rooms";
const ROOM = `${ROOMS}/{waiting_room_id}`;
const EVENT = `${ROOM}/events/{event_id}`;
const RULE = `${ROOM}/rules/{rule_id}`;
const PAGED = ["page", "per_page"];
const FORGIVING = ["dry_run"];

const reads = (path, does, gives, summary, more) => ({ method: "GET", path, does, gives, summary, ...more });
const writes = (method, path, does, takes, gives, summary, more) => ({
  ...{ method, path, does, takes, gives, summary, query: FORGIVING },
  ...more,
});

/** @type {Endpoint[]} */
export const ENDPOINTS = [
  reads(ROOMS, "listRooms", "rooms", "All rooms, page by page", { query: [...PAGED, "deleted"] }),
  writes("POST", ROOMS, "createRoom", "newRoom", "room", "Makes a room"),
  reads("tokens", "listTokens", "tokens", "The tokens that were made at run time", {
    query: PAGED,
    role: "configure",
  }),
  writes("POST", "tokens", "createToken", "newToken", "madeToken", "Makes a token; it is shown once"),
  writes("DELETE", "tokens/{token_id}", "revokeToken", undefined, "id", "Revokes a token"),
  reads("accounts/{account_id}/waiting_rooms", "listRoomsOfAccount", "rooms", "All rooms, page by page", {
    query: [...PAGED, "deleted"],
  }),
  reads(`${ROOMS}/settings`, "getSettings", "settings", "What holds for all rooms"),
  writes(
    "PUT",
    `${ROOMS}/settings`,
    "putSettings",
    "settings",
    "settings",
    "Replaces what holds for all rooms",
  ),
  writes("PATCH", `${ROOMS}/settings`, "patchSettings", "settings", "settings", "Changes what it names"),
  writes(
    "POST",
    `${ROOMS}/preview`,
    "preview",
    "page",
    "preview",
    "Keeps a page for a week, to be looked at",
  ),
  writes("POST", `${ROOMS}/batch`, "batch", "batch", "batched", "Makes several changes as one, or none"),
  reads(`${ROOMS}/log`, "getLog", "log", "The last 100 changes, newest first", { query: ["before"] }),
  reads(ROOM, "getRoom", "room", "One room"),
  writes("PUT", ROOM, "putRoom", "newRoom", "room", "Replaces a room"),
  writes("PATCH", ROOM, "patchRoom", "partOfRoom", "room", "Changes what it names", { role: "steer" }),
  writes("DELETE", ROOM, "deleteRoom", undefined, "id", "Deletes a room"),
  reads(`${ROOM}/status`, "getStatus", "status", "What a room does now"),
  writes(
    "POST",
    `${ROOM}/restore`,
    "restoreRoom",
    undefined,
    "room",
    "Brings a deleted room back, for 30 days",
  ),
  reads(`${ROOM}/events`, "listEvents", "events", "A room's events, page by page", { query: PAGED }),
  writes("POST", `${ROOM}/events`, "createEvent", "newEvent", "event", "Makes an event"),
  reads(EVENT, "getEvent", "event", "One event"),
  writes("PUT", EVENT, "putEvent", "newEvent", "event", "Replaces an event"),
  writes("PATCH", EVENT, "patchEvent", "partOfEvent", "event", "Changes what it names", { role: "steer" }),
  writes("DELETE", EVENT, "deleteEvent", undefined, "id", "Deletes an event"),
  reads(`${EVENT}/details`, "getEventDetails", "event", "An event, with what it has from its room"),
  reads(`${ROOM}/plans`, "listPlans", "plans", "What is to be set later, page by page", { query: PAGED }),
  writes("POST", `${ROOM}/plans`, "createPlan", "newPlan", "plan", "Plans a change of what can be steered", {
    role: "steer",
  }),
  writes("DELETE", `${ROOM}/plans/{plan_id}`, "deletePlan", undefined, "id", "Drops a plan", {
    role: "steer",
  }),
  reads(`${ROOM}/rules`, "listRules", "rules", "A room's bypass rules, in their order"),
  writes("POST", `${ROOM}/rules`, "createRule", "newRule", "rules", "Adds a rule at the end"),
  writes("PUT", `${ROOM}/rules`, "putRules", "newRules", "rules", "Puts others in the place of all rules"),
  writes("PATCH", RULE, "patchRule", "partOfRule", "rules", "Changes a rule, or moves it"),
  writes("DELETE", RULE, "deleteRule", undefined, "rules", "Deletes a rule"),
];

/** Those at a path, and what stands in the place of `{name}`. @param {string} path below `/__anteroom/client/v4/` */
export function endpointsAt(path) {
  const parts = path.split("/");
  const names = (endpoint) => {
    const wanted = endpoint.path.split("/");
    if (wanted.length !== parts.length) return undefined;
    const fits = wanted.every((part, place) =>
      part[0] === "{" ? parts[place] !== "" : part === parts[place],
    );
    return fits
      ? Object.fromEntries(wanted.map((part, place) => [part.slice(1, -1), parts[place]]))
      : undefined;
  };
  const first = ENDPOINTS.find((endpoint) => names(endpoint));
  const here = first ? ENDPOINTS.filter((endpoint) => endpoint.path === first.path) : [];
  return { here, names: first ? names(first) : {} };
}
