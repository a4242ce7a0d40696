// The operators' dashboard: puts a room's parts on the page and keeps them up to date. tools/dashboard/assets.mjs makes one
// file of these modules; src/edge/dashboard.js serves it.
import { get } from "./api.js";
import { attribute, h, place, show, write } from "./dom.js";
import { watchRoom } from "./live.js";
import { createLog } from "./log.js";
import { createNow } from "./now.js";
import { readPlace, writePlace } from "./place.js";
import { createPreview } from "./preview.js";
import { openRooms } from "./rooms/view.js";
import { createSteering } from "./steering.js";
import { createBuckets, createColos, createOrigin } from "./tables.js";
import { createTimeline } from "./timeline.js";
import { duration, exactTime, number, situation } from "./words.js";

/** The interval at which the other rooms are asked how they are. */
const OTHERS_MS = 30_000;
/** What is counted must not be older while somebody looks. */
const FRESH_MS = 6_000;
/** More rooms than this are in a list that opens. */
const MOST_TABS = 6;
/** A lost connection is told when it is not back after this time. */
const PATIENCE_MS = 4_000;

/** Wide enough for two columns. */
const WIDE = matchMedia("(min-width: 68rem)");

const { name: operator, role, languages = "" } = document.body.dataset;
const main = document.getElementById("room");
const picker = document.getElementById("picker");
const connection = document.getElementById("connection");

let rooms = [];
/** What is on the page: one room as it goes on, or the view of all rooms. */
let shown;
let chosen = readPlace(location.hash);

main.replaceChildren(h("p", { class: "quiet loading" }, "Loading …"));

/** The rooms to choose from, each with how it is. */
function renderPicker() {
  attribute(document.getElementById("all-rooms"), "aria-current", chosen.view && !chosen.id ? "page" : false);
  const { range } = chosen.view ? readPlace("") : chosen;
  const go = (room) => location.assign(writePlace({ room, range }));
  const brief = (room) => {
    if (room.error) return "no answer";
    const waiting = room.estimated_queued_users;
    return waiting > 0 ? `${number(waiting)} waiting` : situation(room, Date.now()).word.toLowerCase();
  };
  if (rooms.length > MOST_TABS) {
    const old = picker.querySelector("select");
    const select = old ?? h("select", { "aria-label": "Room", onchange: () => go(select.value) });
    const texts = rooms.map((room) => `${room.label ?? room.name} – ${brief(room)}`);
    const names = chosen.view ? ["", ...rooms.map(({ name }) => name)] : rooms.map(({ name }) => name);
    if ([...select.options].map(({ value }) => value).join() !== names.join())
      select.replaceChildren(...names.map((value) => h("option", { value })));
    if (chosen.view) texts.unshift("Go to a room …");
    for (const [index, text] of texts.entries()) write(select.options[index], text);
    select.value = chosen.room ?? "";
    place(picker, [select]);
    return;
  }
  const links = rooms.map((room) =>
    h(
      "a",
      {
        href: writePlace({ room: room.name, range }),
        "aria-current": room.name === chosen.room ? "page" : false,
      },
      h("b", {}, room.label ?? room.name),
      " ",
      h("small", {}, brief(room)),
    ),
  );
  const key = links.map((link) => link.outerHTML).join("");
  if (picker.dataset.key === key) return;
  picker.dataset.key = key;
  const focused = [...picker.querySelectorAll("a")].indexOf(document.activeElement);
  place(picker, [h("nav", { "aria-label": "Rooms" }, ...links)]);
  if (focused >= 0) links[focused]?.focus();
}

function renderProblems(problems) {
  let box = document.getElementById("problems");
  if (problems.length === 0) return box?.remove();
  const parts = [
    h(
      "h2",
      {},
      problems.length === 1
        ? "The configuration has a problem"
        : `The configuration has ${problems.length} problems`,
    ),
    h("ul", {}, ...problems.map((text) => h("li", {}, text))),
    h(
      "p",
      { class: "quiet" },
      "A room that is broken is left out: its visitors go straight to the origin. ",
      h("code", {}, "npm run check"),
      " says how to mend it.",
    ),
  ];
  if (!box) {
    box = h("section", {
      id: "problems",
      class: "notice bad",
      "aria-label": "Problems of the configuration",
    });
    main.before(box);
  }
  if (box.dataset.key === problems.join()) return;
  box.dataset.key = problems.join();
  place(box, parts);
}

/** Everything of one room. */
function openRoom(name) {
  const maySteer = role !== "view";
  const now = createNow();
  const log = createLog(name);
  let entries = [];
  const loadLog = async () => {
    entries = await log.load();
    timeline.render();
  };
  const timeline = createTimeline(name, {
    go: (range) => {
      location.hash = writePlace({ room: name, range });
    },
    audit: () => entries,
  });
  const steering = createSteering({ room: name, operator, maySteer, changed: loadLog });
  const [buckets, colos, origin] = [createBuckets(), createColos(), createOrigin()];
  const preview = createPreview(name, languages.split(" ").filter(Boolean));
  now.stage.append(steering.stage);
  const left = [timeline.element, buckets.element, colos.element, log.element];
  const right = [steering.panel, steering.events, steering.planned, origin.element, preview.element];
  const inTurn = right.flatMap((part, index) => [left[index], part]).filter(Boolean);
  const columns = h("div", { class: "columns" });
  // Two stacks beside each other, or one in the order of need: moved, not only drawn elsewhere, so that the keyboard goes
  // the same way as the eye.
  const arrange = () => {
    const stacks = [h("div", { class: "stack" }, ...left), h("div", { class: "stack" }, ...right)];
    place(columns, WIDE.matches ? stacks : inTurn);
  };
  arrange();
  WIDE.addEventListener("change", arrange);
  const parts = h(
    "nav",
    { class: "parts", "aria-label": "Parts of the page" },
    ...inTurn.map((part) => {
      const heading = part.querySelector("h2");
      return h("button", { type: "button", onclick: () => goTo(heading) }, heading.textContent);
    }),
  );
  place(main, [now.element, parts, columns]);

  const line = createConnection();
  let version;
  const stop = watchRoom(name, {
    mode: line.mode,
    news: (news) => timeline.addNews(news),
    room: (room, at) => {
      line.heard(room, at);
      now.update(room, at);
      steering.update(room, at);
      timeline.update(room, at);
      preview.update(room);
      main.classList.toggle("unknown", Boolean(room.error));
      for (const part of [buckets, colos, origin]) {
        show(part.element, !room.error);
        if (!room.error) part.update(room, at);
      }
      const index = rooms.findIndex((one) => one.name === name);
      if (index >= 0) rooms[index] = room;
      renderPicker();
      write(document.querySelector("title"), titleOf(room));
      if (room.steering?.version !== version) {
        version = room.steering?.version;
        loadLog();
      }
    },
  });
  timeline.show(chosen.range);
  return {
    name,
    show: (range) => timeline.show(range),
    end() {
      stop();
      WIDE.removeEventListener("change", arrange);
      line.end();
      timeline.end();
    },
  };
}

/** To a heading, for eye and keyboard. The address has other things to say than where the page stands. */
function goTo(heading) {
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  heading.scrollIntoView();
}

function titleOf(room) {
  const { word } = situation(room, Date.now());
  const waiting = room.error ? 0 : room.estimated_queued_users;
  return `${waiting > 0 ? `${number(waiting)} waiting` : word} · ${room.label ?? room.name} · Anteroom`;
}

/** How old what is shown is, and whether more will come. Once a second; nothing of it is read out but that it is lost. */
function createConnection() {
  let mode = "connecting";
  let reason = "";
  let heardAt = 0;
  let takenAt = 0;
  let lostAt = 0;
  const text = h("span");
  const alarm = h("span", { role: "alert" });
  place(connection, [text, alarm]);
  function render() {
    const now = Date.now();
    const age = takenAt ? now - takenAt : 0;
    const isLost = mode === "lost" && now - lostAt > PATIENCE_MS;
    const isStale =
      isLost ||
      mode === "paused" ||
      (mode !== "connecting" && heardAt > 0 && now - heardAt > FRESH_MS && mode !== "live");
    attribute(connection, "data-mode", isLost ? "lost" : mode);
    document.body.classList.toggle("stale", isStale && heardAt > 0);
    const old = `${duration(age)} old`;
    const words = {
      connecting: heardAt ? `Connecting …, ${old}` : "Connecting …",
      live:
        now - heardAt > FRESH_MS ? `● Live, nothing new for ${duration(now - heardAt)}` : `● Live, ${old}`,
      polling: `● By asking every 2 s, ${old}`,
      paused: `Paused while nobody looked, ${old}`,
      lost: isLost ? "" : `Connecting …, ${old}`,
    };
    write(text, words[mode]);
    write(alarm, isLost ? `▲ Connection lost since ${exactTime(lostAt)}. ${reason}.` : "");
  }
  const timer = setInterval(render, 1_000);
  render();
  return {
    mode(next, why) {
      if (next === "lost" && mode !== "lost") lostAt = heardAt || Date.now();
      mode = next;
      reason = why;
      render();
    },
    heard(room, at) {
      heardAt = Date.now();
      // By the server's clock, what is counted was taken then.
      takenAt = heardAt - (room.age_ms ?? Math.max(0, at - (room.taken_at || at)));
      render();
    },
    end: () => clearInterval(timer),
  };
}

/** Shows what the address says, unless something that is filled in would be lost. */
function follow() {
  const wanted = readPlace(location.hash);
  if (
    shown?.isChanged?.() &&
    writePlace(wanted) !== writePlace(chosen) &&
    !confirm("Leave without saving what you have changed?")
  ) {
    history.replaceState(null, "", writePlace(chosen));
    return;
  }
  if (wanted.view) {
    chosen = wanted;
    renderPicker();
    shown?.end();
    place(connection, []);
    document.body.classList.remove("stale");
    main.classList.remove("unknown");
    write(document.querySelector("title"), "All rooms · Anteroom");
    shown = openRooms({ main, role, at: wanted, changed: () => setTimeout(loadRooms) });
    return;
  }
  const isKnown = rooms.some((room) => room.name === wanted.room);
  if (!isKnown) {
    if (rooms.length === 0) return;
    // Those in trouble first: that is what somebody wants to see.
    const most = rooms.toSorted(
      (one, other) => (other.estimated_queued_users ?? 0) - (one.estimated_queued_users ?? 0),
    );
    const room = wanted.room === "" ? most[0].name : rooms[0].name;
    history.replaceState(null, "", writePlace({ room, range: wanted.range }));
    chosen = { room, range: wanted.range };
  } else chosen = wanted;
  renderPicker();
  if (shown?.name === chosen.room) {
    shown.show(chosen.range);
    return;
  }
  shown?.end();
  shown = openRoom(chosen.room);
}

async function loadRooms() {
  try {
    // A look at the names of all rooms must not make all of them report as if somebody watched.
    const answer = await get("status", { watch: "false" });
    const before = rooms.map(({ name }) => name).join();
    rooms = answer.rooms;
    renderProblems(answer.problems ?? []);
    const isOfAll = Boolean(readPlace(location.hash).view);
    if (rooms.length === 0 && role === "configure" && !isOfAll) {
      // The first one can be made there.
      location.replace(writePlace({ view: "rooms" }));
    } else if (rooms.length === 0 && !isOfAll) {
      shown?.end();
      shown = undefined;
      place(picker, []);
      place(main, [
        h("h1", {}, "There is no room"),
        h(
          "p",
          {},
          "No room is configured that works. Add one to wrangler.toml, a table ",
          h("code", {}, "[vars.ROOM_SALE]"),
          ", and deploy; README.md shows how.",
        ),
      ]);
    } else if (!shown || (!isOfAll && rooms.map(({ name }) => name).join() !== before)) follow();
    else renderPicker();
  } catch ({ message, status }) {
    if (!shown && status !== 401)
      place(main, [
        h("h1", {}, "The rooms could not be loaded"),
        h("p", { role: "alert" }, `${message}.`),
        h("p", {}, h("button", { onclick: loadRooms }, "Try again")),
      ]);
  }
  clearTimeout(others);
  others = setTimeout(
    () => (document.hidden ? undefined : loadRooms()),
    rooms.length === 1 ? 4 * OTHERS_MS : OTHERS_MS,
  );
}
let others = 0;

addEventListener("hashchange", follow);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
document.addEventListener("visibilitychange", () => document.hidden || loadRooms());
addEventListener("anteroom-signed-out", () => {
  if (shown?.isChanged?.()) {
    // What is filled in must not be lost by it.
    const id = "signed-out";
    const link = h("a", { href: "/__anteroom/", target: "_blank" }, "Sign in again in another tab");
    if (!document.getElementById(id))
      main.prepend(
        h(
          "p",
          { id, class: "notice bad", role: "alert" },
          "Your session has ended. ",
          link,
          ", and go on here.",
        ),
      );
    return;
  }
  shown?.end();
  shown = undefined;
  clearTimeout(others);
  document.body.classList.remove("stale");
  place(connection, []);
  place(picker, []);
  place(main, [
    h("h1", {}, "Your session has ended"),
    h("p", { role: "alert" }, "Sessions last 12 hours, and end when the token is changed."),
    h("p", {}, h("a", { class: "button primary", href: "/__anteroom/" }, "Sign in again")),
  ]);
});
if (chosen.view) follow();
loadRooms();
