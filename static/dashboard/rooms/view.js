// All rooms: made, copied, changed, deleted and brought back, with their events and rules; and what holds for all of them.
import { change, get, post, Refusal, ROOMS, remove } from "../api.js";
import { createAsking } from "../asking.js";
import { h, place, write } from "../dom.js";
import { writePlace } from "../place.js";
import { eventTime, section, wide } from "../tables.js";
import { moment, number } from "../words.js";
import { createEntry } from "./entry.js";
import { fieldsOf, isSame } from "./fields.js";
import { createPreviews } from "./previews.js";
import { createRules } from "./rules.js";

/** So many are asked for at once: more than there can be. */
const PAGE = 1_000;
/** From so many rooms on one looks for a name. */
const MANY = 12;
/** What those may change who only steer; all else takes the role `configure`. */
const STEERED = {
  room: ["total_active_users", "new_users_per_minute", "queue_all", "suspended", "anteroom.message"],
  event: ["event_start_time", "event_end_time"],
};

/**
 * @param {object} options
 * @param {HTMLElement} options.main where it is shown
 * @param {string} options.role of whoever looks
 * @param {{ id?: string, event?: string, copy?: string }} options.at what is looked at: a room or `new`; one of its events or `new`
 * @param {() => void} options.changed rooms have come, changed or gone
 */
export function openRooms({ main, role, at, changed }) {
  /** What is filled in and not saved. @type {import("./entry.js").Entry | undefined} */
  let entry;
  let isOver = false;
  const mayConfigure = role === "configure";

  function show(...children) {
    if (isOver) return;
    place(main, children);
    // What was done is said at the top; whoever goes by the keyboard begins there too.
    scrollTo(0, 0);
    if (document.activeElement === document.body) main.focus({ preventScroll: true });
  }
  const mayEdit =
    (what) =>
    ({ key }) =>
      mayConfigure || (role === "steer" && STEERED[what].includes(key));

  async function open() {
    try {
      if (at.id === "new") await makeRoom();
      else if (at.id && at.event) await openEvent();
      else if (at.id) await openRoom();
      else await openList();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.status === 401) return;
      show(
        back(),
        h(
          "h1",
          {},
          error.status === 501 ? "Rooms of this deployment stand in its vars" : "This could not be loaded",
        ),
        h("p", { role: "alert" }, `${error.message}.`),
        error.status !== 501 && h("p", {}, h("button", { type: "button", onclick: open }, "Try again")),
      );
    }
  }

  /** Goes somewhere else, with a word about what was done. */
  function go(to, said) {
    entry = undefined;
    changed();
    done = said;
    location.hash = writePlace({ view: "rooms", ...to });
  }

  async function openList() {
    const [{ result: rooms }, deleted, settings] = await Promise.all([
      get(ROOMS, { per_page: PAGE }),
      get(ROOMS, { per_page: PAGE, deleted: true }),
      get(`${ROOMS}/settings`),
    ]);
    show(
      h("h1", {}, "All rooms"),
      said(),
      locked(),
      mayConfigure && h("p", {}, h("a", { class: "button primary", href: placeOf("new") }, "New room")),
      createList(rooms, { mayConfigure, deleted: (name) => again(`${name} is deleted.`) }),
      h(
        "div",
        { class: "configured" },
        createDeleted(deleted.result, mayConfigure, (name) => again(`${name} is back.`)),
        createSettings(settings.result, mayConfigure),
        await createChanges(),
      ),
    );
  }

  /** Shows the same anew, with a word about what was done. */
  function again(text) {
    changed();
    done = text;
    open();
  }

  /** Why little can be changed here. */
  const locked = (deployedAs) => {
    const text = deployedAs
      ? `This room is deployed as ${deployedAs}: it is changed there. A copy of it is a room that can be changed here.`
      : role === "steer"
        ? "Your role is steer: limits, switches, the message and the times of events can be changed here, all else takes the role configure."
        : "Your role is view: everything is shown, and nothing can be changed.";
    return (deployedAs || !mayConfigure) && h("p", { class: "notice", id: "view-only" }, text);
  };

  async function makeRoom() {
    const [fields, copied] = await Promise.all([fieldsOf("room"), at.copy && get(`${ROOMS}/${at.copy}`)]);
    const draft = copied && copyOf(copied.result, fields);
    const parts = copied ? await partsOf(at.copy) : [];
    entry = createEntry({
      fields,
      draft,
      mayEdit: () => mayConfigure,
      save: "Make the room",
      send: (body, isTrial) =>
        parts.length > 0 ? makeWith(parts, body, trial(isTrial)) : post(ROOMS, trial(isTrial), body),
      saved: ({ id, name }) =>
        go(
          { id },
          `${name} is made${copied ? " with its rules and events" : ""}. It is in force within 3 seconds.`,
        ),
    });
    show(
      back(),
      h("h1", {}, copied ? `A copy of ${copied.result.name}` : "New room"),
      locked(),
      entry.element,
      createPreviews(() => pageOf(entry)),
    );
  }

  async function openRoom() {
    const route = `${ROOMS}/${at.id}`;
    const [fields, { result: room }, events] = await Promise.all([
      fieldsOf("room"),
      get(route),
      get(`${route}/events`, { per_page: PAGE }),
    ]);
    const isOwn = !room.deployed_as;
    const may = isOwn && mayConfigure;
    entry = createEntry({
      fields,
      base: room,
      mayEdit: (field) => isOwn && mayEdit("room")(field),
      save: "Save the room",
      load: async () => (await get(route)).result,
      send: (body, isTrial) => change("PATCH", route, trial(isTrial), body),
      saved: ({ name }) => again(`${name} is changed. It is in force within 3 seconds.`),
    });
    const live = writePlace({ room: isOwn ? room.id : room.name, range: { name: "1h" } });
    const outcome = said();
    // Of what is filled in from now on nothing is in force yet.
    entry.element.addEventListener("input", () => write(outcome, ""));
    show(
      back(),
      h("h1", {}, room.name),
      outcome,
      locked(room.deployed_as),
      h(
        "p",
        { class: "acts" },
        h("a", { class: "button", href: live }, "What goes on in it"),
        " ",
        mayConfigure && h("a", { class: "button", href: placeOf("new", { copy: room.id }) }, "Copy"),
        " ",
        may &&
          createDeleting(room, () => go({}, `${room.name} is deleted. It can be brought back for 30 days.`)),
      ),
      entry.element,
      h(
        "div",
        { class: "configured" },
        createEvents(room, events.result, {
          may,
          deleted: (name) => again(`The event ${name} is deleted.`),
        }),
        createRules(route, may),
        createPreviews(() => pageOf(entry)),
      ),
    );
  }

  async function openEvent() {
    const route = `${ROOMS}/${at.id}/events`;
    const isNew = at.event === "new";
    const source = at.copy ?? at.event;
    const [fields, { result: room }, found] = await Promise.all([
      fieldsOf("event"),
      get(`${ROOMS}/${at.id}`),
      source === "new" ? undefined : get(`${route}/${source}`),
    ]);
    const isOwn = !room.deployed_as;
    entry = createEntry({
      fields,
      ...(isNew ? { draft: found && copyOf(found.result, fields) } : { base: found.result }),
      mayEdit: (field) => isOwn && (isNew ? mayConfigure : mayEdit("event")(field)),
      save: isNew ? "Make the event" : "Save the event",
      load: async () => (await get(`${route}/${at.event}`)).result,
      send: (body, isTrial) =>
        isNew
          ? post(route, trial(isTrial), body)
          : change("PATCH", `${route}/${at.event}`, trial(isTrial), body),
      saved: ({ name }) =>
        go(
          { id: at.id },
          `The event ${name} is ${isNew ? "made" : "changed"}. It is in force within 3 seconds.`,
        ),
    });
    show(
      back({ id: at.id }, room.name),
      h("h1", {}, isNew ? `New event of ${room.name}` : `${found.result.name}, an event of ${room.name}`),
      locked(room.deployed_as),
      entry.element,
      createPreviews(() => pageOf(entry, room)),
    );
  }

  open();
  const hold = (event) => entry?.isChanged() && event.preventDefault();
  addEventListener("beforeunload", hold);
  return {
    isChanged: () => entry?.isChanged() ?? false,
    end() {
      isOver = true;
      removeEventListener("beforeunload", hold);
    },
  };
}

/** What was done just now, until this view has said it. */
let done = "";

function said() {
  const text = done;
  done = "";
  return h("p", { class: "outcome", role: "status" }, text);
}

const trial = (isTrial) => (isTrial ? { dry_run: true } : undefined);
const placeOf = (id, more) => writePlace({ view: "rooms", id, ...more });
const back = (to = {}, name = "All rooms") =>
  h("p", {}, h("a", { href: writePlace({ view: "rooms", ...to }) }, `← ${name}`));

/** The page of those who wait, as it is filled in; of an event it may be the room's. */
const pageOf = (entry, room = {}) => {
  const has = (name) => entry.value(name) || undefined;
  const own = has("custom_page_html") ?? has("anteroom.custom_page_html");
  return {
    html: own ? has("custom_page_html") : room.custom_page_html,
    page: own ? has("anteroom.custom_page_html") : room.anteroom?.custom_page_html,
    message: has("anteroom.message") ?? room.anteroom?.message,
    language: has("default_template_language") ?? room.default_template_language,
  };
};

/** What a copy begins with: all that is not as usual, under another name. */
function copyOf(found, fields) {
  const draft = { anteroom: { ...found.anteroom } };
  for (const { path, normal } of fields.filter(({ path }) => path.length === 1)) {
    const value = found[path[0]];
    const isUsual = value === null || `${value}` === "" || isSame(value, normal);
    if (!isUsual) draft[path[0]] = value;
  }
  return { ...draft, name: `${found.name}_copy`.slice(0, 64) };
}

/** The rules and events of a room, as changes that make them in the room that is made first. */
async function partsOf(id) {
  const [events, rules] = await Promise.all(
    ["events", "rules"].map((part) => get(`${ROOMS}/${id}/${part}`, { per_page: PAGE })),
  );
  return [
    ...(rules.result.length > 0
      ? [{ method: "PUT", path: "/$0/rules", body: rules.result.map(withoutId) }]
      : []),
    ...events.result.map((event) => ({ method: "POST", path: "/$0/events", body: withoutId(event) })),
  ];
}

const withoutId = ({ id: _, ...more }) => more;

/** Makes a room and its parts, or nothing. */
async function makeWith(parts, room, parameters) {
  try {
    const changes = [{ method: "POST", path: "", body: room }, ...parts];
    const { result, messages } = await post(`${ROOMS}/batch`, parameters, changes);
    return { result: result[0], messages };
  } catch (error) {
    // The form knows the room's fields.
    for (const { source } of error.errors ?? [])
      if (source) source.pointer = source.pointer.replace(/^\/0\/body/, "");
    throw error;
  }
}

/** Asks, with what it would do to those who are there. */
function createDeleting(room, done) {
  const problem = h("span", { class: "problem", role: "alert" });
  const asking = createAsking(true, {
    label: "Delete",
    question: async () => {
      const { messages } = await remove(`${ROOMS}/${room.id}`, { dry_run: true });
      const kept = "It can be brought back for 30 days.";
      return [`Delete ${room.name}?`, ...messages.map(({ message }) => message), kept].join(" ");
    },
    yes: "Yes, delete it",
    danger: true,
    act: async () => {
      try {
        await remove(`${ROOMS}/${room.id}`);
        done(room.name);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        write(problem, ` ${error.message}.`);
      }
    },
  });
  return h("span", {}, asking.element, problem);
}

function createList(rooms, { mayConfigure, deleted }) {
  const rows = rooms.map((room) => {
    const routes = [
      `${room.host}${room.path}`,
      ...room.additional_routes.map(({ host, path }) => `${host}${path}`),
    ];
    const more = routes.length > 1 ? ` and ${routes.length - 1} more` : "";
    const state = [room.suspended && "suspended", room.queue_all && "queues everybody"]
      .filter(Boolean)
      .join(", ");
    const row = h(
      "tr",
      {},
      h("th", { scope: "row" }, h("a", { href: placeOf(room.id) }, room.name)),
      h("td", {}, `${routes[0]}${more}`),
      h("td", { class: "number" }, number(room.total_active_users)),
      h("td", { class: "number" }, number(room.new_users_per_minute)),
      h("td", {}, state),
      h("td", {}, room.next_event_start_time ? moment(Date.parse(room.next_event_start_time)) : ""),
      h("td", {}, room.deployed_as ? h("code", {}, room.deployed_as) : "at run time"),
      h(
        "td",
        {},
        mayConfigure &&
          h("a", { href: placeOf("new", { copy: room.id }), "aria-label": `Copy ${room.name}` }, "Copy"),
        " ",
        mayConfigure && !room.deployed_as && createDeleting(room, deleted),
      ),
    );
    return { row, text: [room.name, room.description, ...routes].join(" ").toLowerCase() };
  });
  const search = h("input", {
    type: "search",
    "aria-label": "Find a room",
    placeholder: "Find a room",
    oninput: () => {
      for (const { row, text } of rows) row.hidden = !text.includes(search.value.trim().toLowerCase());
    },
  });
  const heads = ["Room", "Where", "Active", "New per minute", "", "Next event", "Made", ""];
  const head = (name) => h(name ? "th" : "td", name ? { scope: "col" } : {}, name);
  if (rooms.length === 0) return h("p", { class: "quiet" }, "There is no room yet.");
  return h(
    "div",
    {},
    rooms.length > MANY && h("p", {}, search),
    wide(
      "All rooms",
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, ...heads.map(head))),
        h("tbody", {}, ...rows.map(({ row }) => row)),
      ),
    ),
  );
}

function createEvents(room, events, { may, deleted }) {
  const now = Date.now();
  const problem = h("p", { class: "problem", role: "alert" });
  const rows = events.map((event) => {
    const asking = createAsking(may, {
      label: "Delete",
      question: () => `Delete the event ${event.name}?`,
      yes: "Yes, delete it",
      danger: true,
      act: () =>
        remove(`${ROOMS}/${room.id}/events/${event.id}`).then(
          () => deleted(event.name),
          ({ message }) => write(problem, `${message}.`),
        ),
    });
    const [start, end] = [event.event_start_time, event.event_end_time].map(Date.parse);
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, h("a", { href: placeOf(room.id, { event: event.id }) }, event.name)),
      h("td", {}, `${eventTime(start, now)} to ${eventTime(end, now)}`),
      h("td", {}, event.suspended ? "suspended" : end < now ? "over" : start <= now ? "on now" : ""),
      h(
        "td",
        {},
        may &&
          h(
            "a",
            { href: placeOf(room.id, { event: "new", copy: event.id }), "aria-label": `Copy ${event.name}` },
            "Copy",
          ),
        " ",
        may && asking.element,
      ),
    );
  });
  return section(
    "room-events",
    "Events",
    rows.length === 0
      ? h("p", { class: "quiet" }, "This room has no events.")
      : wide("Events", h("table", {}, h("tbody", {}, ...rows))),
    may && h("p", {}, h("a", { class: "button", href: placeOf(room.id, { event: "new" }) }, "New event")),
    problem,
  );
}

/** Rooms that can be brought back. */
function createDeleted(rooms, mayConfigure, restored) {
  if (rooms.length === 0) return null;
  const problem = h("p", { class: "problem", role: "alert" });
  const restore = (room) =>
    post(`${ROOMS}/${room.id}/restore`).then(
      () => restored(room.name),
      ({ message }) => write(problem, `${room.name} cannot be brought back: ${message}.`),
    );
  const items = rooms.map((room) =>
    h(
      "li",
      {},
      `${room.name}, ${room.host}${room.path}, deleted ${moment(Date.parse(room.deleted_on))} `,
      mayConfigure &&
        h(
          "button",
          { type: "button", "aria-label": `Bring ${room.name} back`, onclick: () => restore(room) },
          "Bring it back",
        ),
    ),
  );
  return section("deleted", "Deleted in the last 30 days", h("ul", { class: "plain" }, ...items), problem);
}

/** What holds for all rooms. */
function createSettings(settings, mayConfigure) {
  const outcome = h("p", { class: "outcome", role: "status" });
  const box = h("input", { type: "checkbox", id: "crawlers", disabled: !mayConfigure });
  box.checked = settings.search_engine_crawler_bypass;
  box.addEventListener("change", async () => {
    try {
      const wanted = { search_engine_crawler_bypass: box.checked };
      const { result } = await change("PATCH", `${ROOMS}/settings`, undefined, wanted);
      box.checked = result.search_engine_crawler_bypass;
      write(
        outcome,
        `Crawlers ${box.checked ? "go past all rooms" : "wait like everybody"} within 3 seconds.`,
      );
    } catch ({ message }) {
      box.checked = !box.checked;
      write(outcome, `Nothing was changed. ${message}.`);
    }
  });
  return section(
    "settings",
    "For all rooms",
    h(
      "p",
      { class: "field flag" },
      box,
      " ",
      h("label", { for: "crawlers" }, "Search engines' crawlers go past all rooms"),
    ),
    outcome,
  );
}

/** Who has changed what, the latest first. */
async function createChanges() {
  const list = h("ul", { class: "plain" });
  const more = h("button", { type: "button", class: "more", onclick: () => load() }, "Older ones");
  let before;
  async function load() {
    const { result } = await get(`${ROOMS}/log`, { before });
    before = result.at(-1)?.id;
    for (const { at, by, method, path, before: old, after } of result) {
      const name = after?.name ?? old?.name;
      list.append(
        h(
          "li",
          {},
          h("time", { datetime: at }, moment(Date.parse(at))),
          ` ${by} ${VERBS[method] ?? method} `,
          h("code", {}, path.replace(/^zones\/[^/]+\//, "")),
          name ? ` (${name})` : "",
        ),
      );
    }
    more.hidden = !(before > 1) || result.length < 100;
  }
  await load();
  return section(
    "changes",
    "Changes",
    list.children.length > 0 ? list : h("p", { class: "quiet" }, "Nothing was changed yet."),
    more,
  );
}
const VERBS = { POST: "made", PUT: "replaced", PATCH: "changed", DELETE: "deleted", BEGIN: "had planned" };
