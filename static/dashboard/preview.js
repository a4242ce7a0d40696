// The page that somebody sees who comes now and must wait: made by the Worker, shown in a frame that runs no script.
import { address } from "./api.js";
import { attribute, h, newId, write } from "./dom.js";
import { section } from "./tables.js";

const USUAL = "";

/** @param {string} room its name @param {string[]} languages tags */
export function createPreview(room, languages) {
  const names = new Intl.DisplayNames("en", { type: "language" });
  const id = newId("language");
  const select = h(
    "select",
    { id, class: "language", onchange: () => load() },
    h("option", { value: USUAL }, "the room's own"),
    ...languages
      .map((tag) => [tag, names.of(tag)])
      .sort(([, one], [, other]) => one.localeCompare(other))
      .map(([tag, name]) => h("option", { value: tag }, name)),
  );
  const note = h("p", { class: "quiet" });
  const frame = h("iframe", {
    title: "The waiting page as visitors see it",
    sandbox: "",
    loading: "lazy",
    tabindex: 0,
  });
  const element = section(
    "preview",
    "What visitors see",
    note,
    h(
      "p",
      { class: "controls" },
      h("label", { for: id }, "Language "),
      select,
      " ",
      h("button", { onclick: () => load() }, "Load again"),
    ),
    frame,
  );
  let seen = "";
  let loads = 0;
  function load() {
    loads += 1;
    // Another address each time: the same one would not be loaded again.
    attribute(frame, "src", address("preview", { room, language: select.value || undefined, load: loads }));
  }
  return {
    element,
    update(found) {
      if (found.error) return;
      const waits =
        found.status === "queueing" || found.status === "event_prequeueing" || found.queue_all || found.held;
      write(
        note,
        found.suspended
          ? "Nobody waits: the room is suspended. This is what they would see."
          : found.observing
            ? "Nobody waits: the room only observes. This is what they would see."
            : waits
              ? "Somebody who comes now gets this page, with a door that opens at their turn."
              : "Everybody enters at once now. If they had to wait, they would see this.",
      );
      const key = JSON.stringify([
        found.status,
        found.queue_all,
        found.held,
        found.message,
        found.suspended,
        found.observing,
        found.event_phase,
      ]);
      if (key === seen) return;
      seen = key;
      load();
    },
  };
}
