// The fields of a form, as the API's own description has them: what the Worker takes is what can be filled in.
import { get } from "../api.js";
import { FIELDS } from "../words.js";

/** What only Anteroom has stands in this object. */
const OWN = "anteroom";
/** Longer texts are written in several lines. */
const LONG = 256;
/** Of these a room may have several values: one for Cloudflare's clients, another one among Anteroom's own. */
const ALSO_OWN = {
  total_active_users: "Active users, from … to …",
  new_users_per_minute: "New users per minute, from … to …",
  custom_page_html: "Page of the build",
  cookie_attributes: "More of the cookie",
};
const LABELS = {
  name: "Name",
  host: "Host",
  path: "Path",
  session_duration: "Session, minutes",
  custom_page_html: "Waiting page",
  event_start_time: "Starts",
  event_end_time: "Ends",
  prequeue_start_time: "Prequeue starts",
  turnstile_sitekey: "Turnstile's site key",
  json_response_enabled: "JSON for API clients",
  min: "From",
  max: "To",
  origin_slow_ms: "Origin is slow from, milliseconds",
};

/** Which fields stand together, in this order; all others come last. */
const GROUPS = {
  Place: ["name", "description", "host", "path", "additional_routes", "path_case_insensitive"],
  Time: ["event_start_time", "event_end_time", "prequeue_start_time", "shuffle_at_event_start"],
  Limits: [
    ...["total_active_users", "new_users_per_minute", "limits", "rate_window"],
    ...["session_duration", "disable_session_renewal", "max_session_duration"],
  ],
  State: ["suspended", "queue_all", "mode", "enforce_share"],
  Queue: [
    ...["queueing_method", "refresh_interval_seconds", "refresh_interval_max_seconds", "place_kept_seconds"],
    ...["confirm_within_minutes", "one_place_per_address", "bind_ticket", "continue_on_another_device"],
    ...["count", "exempt_extensions", "when_deleted"],
  ],
  Page: [
    ...["message", "custom_page_html", "default_template_language", "visitor_languages"],
    ...["show_position", "show_wait", "show_progress"],
    ...["queueing_status_code", "json_response_enabled", "json_response"],
  ],
  Origin: [
    ...["origin", "origin_service", "origin_guard", "origin_slow_ms", "health_checks", "on_unhealthy"],
    "enabled_origin_commands",
  ],
  "Cookie and robots": [
    ...["cookie_suffix", "cookie_attributes", "turnstile_sitekey", "turnstile_mode", "turnstile_action"],
  ],
};
const OTHERS = "More";
/** Of another thing than what the field says by itself. */
const UNSEEN = ["modified_on", OWN];

/**
 * @typedef {object} Field
 * @property {string[]} path where it stands in a body
 * @property {string} key the same as one text
 * @property {string} label
 * @property {string} help
 * @property {string} group
 * @property {"flag" | "choice" | "number" | "text" | "long" | "time" | "lines" | "routes" | "group" | "json"} kind
 * @property {string[]} [choices]
 * @property {Field[]} [parts] of a group
 * @property {any} [normal] what holds where nothing is said
 * @property {string} [usual] the same in words, where that is no value
 * @property {any} [example]
 * @property {boolean} isRequired
 * @property {boolean} inherits where nothing is said, it is as in the room
 * @property {object} schema
 */

let description;

/** All that the API says of itself. It is asked for once. */
async function schemas() {
  description ??= get("openapi.json");
  try {
    return (await description).components.schemas;
  } catch (error) {
    description = undefined;
    throw error;
  }
}

/**
 * The fields of what is made, by the names of the description.
 * @param {"room" | "event" | "rule"} what
 * @returns {Promise<Field[]>}
 */
export async function fieldsOf(what) {
  const all = await schemas();
  const name = what[0].toUpperCase() + what.slice(1);
  const { properties, required } = all[`new${name}`];
  const shown = what === "rule" ? {} : all[what].properties;
  const place = (key) => ({ isRequired: required.includes(key), inherits: canBeNull(shown[key]) });
  const theirs = Object.entries(properties)
    .filter(([key]) => !UNSEEN.includes(key))
    .map(([key, schema]) => fieldOf([key], schema, place(key)));
  const own = Object.entries(all[`ownOf${name}`]?.properties ?? {}).map(([key, schema]) =>
    fieldOf([OWN, key], schema, { isRequired: false, inherits: what === "event" }),
  );
  const order = Object.values(GROUPS).flat();
  const at = ({ path }) => (order.includes(path.at(-1)) ? order.indexOf(path.at(-1)) : order.length);
  return [...theirs, ...own].sort((one, other) => at(one) - at(other));
}

const canBeNull = (schema) => [schema?.type].flat().includes("null");

/** A schema without its `null`. */
function plain(schema) {
  const { anyOf, ...rest } = schema;
  if (anyOf) {
    const one = anyOf.map(plain).filter(({ type }) => type !== "null");
    return { ...(one.find(({ type }) => type === "object") ?? one[0] ?? {}), ...rest };
  }
  const { type, enum: names, ...more } = schema;
  const types = [type].flat().filter((name) => name !== "null");
  return {
    ...more,
    ...(types.length > 0 && { type: types[0] }),
    ...(names && { enum: names.filter((name) => name !== null) }),
  };
}

/** @returns {Field} */
function fieldOf(path, given, { isRequired, inherits }) {
  const schema = plain(given);
  const name = path.at(-1);
  const group = Object.keys(GROUPS).find((one) => GROUPS[one].includes(name)) ?? OTHERS;
  const choices = schema["x-enum"] ?? schema.enum?.map(String);
  const parts =
    schema.type === "object" &&
    schema.properties &&
    Object.entries(schema.properties).map(([key, part]) =>
      // What holds for the whole holds for its parts.
      fieldOf([key], { default: schema.default?.[key], ...part }, { isRequired: false, inherits: false }),
    );
  return {
    path,
    key: path.join("."),
    label: labelOf(path),
    help: schema.description ?? "",
    group,
    kind: kindOf(schema, choices, parts),
    choices,
    parts: parts || undefined,
    normal: inherits ? undefined : schema.default,
    usual: inherits ? undefined : schema["x-default"],
    example: schema.examples?.[0],
    isRequired,
    inherits,
    schema,
  };
}

function kindOf({ type, items, format, maxLength }, choices, parts) {
  if (choices) return "choice";
  if (parts) return "group";
  if (type === "boolean") return "flag";
  if (type === "integer" || type === "number") return "number";
  if (type === "array")
    return items?.type === "string" ? "lines" : items?.properties?.host ? "routes" : "json";
  if (type === "object") return "json";
  if (format === "date-time") return "time";
  return maxLength > LONG ? "long" : "text";
}

function labelOf(path) {
  const name = path.at(-1);
  if (path.length > 1 && Object.hasOwn(ALSO_OWN, name)) return ALSO_OWN[name];
  const words = name.replaceAll("_", " ").replaceAll("html", "HTML");
  return LABELS[name] ?? FIELDS[name] ?? words[0].toUpperCase() + words.slice(1);
}

/** The groups that these fields are in, in their order. @param {Field[]} fields @returns {[string, Field[]][]} */
export const groupsOf = (fields) =>
  [...Object.keys(GROUPS), OTHERS]
    .map((name) => [name, fields.filter(({ group }) => group === name)])
    .filter(([, some]) => some.length > 0);

/** What stands in an entry at a field's place. */
export const valueAt = (entry, { path }) => path.reduce((part, name) => part?.[name], entry) ?? undefined;

/** Whether two values say the same. */
export const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);
