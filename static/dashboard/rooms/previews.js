// The page of those who wait, in each state that there is: Anteroom's own, or a template as it is being written.
import { address, post, ROOMS } from "../api.js";
import { h, place, write } from "../dom.js";
import { section } from "../tables.js";

/** What the page can have to say, and how a preview is asked for it. */
const STATES = {
  "Waiting, and it is known how long": { waitTime: 12 },
  "Waiting, and nobody can tell how long": {},
  "Everybody is queued by an operator": { force_queue: true },
  "The origin is unhealthy": { held: true },
  "Drawn by lot": { queueing_method: "random" },
  "Before an event": { event: "prequeueing" },
  "Before an event that shuffles": { event: "prequeueing", shuffle_at_event_start: true },
  "During an event": { event: "started", waitTime: 12 },
  "Nobody is let in": { queue_is_full: true },
};

/**
 * @param {() => { html?: string, page?: string, message?: string, language?: string }} read as it is filled in; `page`: of the
 *   build
 */
export function createPreviews(read) {
  const note = h("p", { class: "outcome", role: "status" });
  const frames = h("div", { class: "previews" });
  const button = h("button", { type: "button", onclick: () => load() }, "Show the page in every state");

  async function load() {
    button.disabled = true;
    write(note, "");
    try {
      const { html, page, message, language } = read();
      const route = html ? await kept(html) : "client/v4/preview/built-in";
      const figures = Object.entries(STATES).map(([state, asked]) => {
        const frame = h("iframe", { title: state, sandbox: "", loading: "lazy", tabindex: 0 });
        frame.src = address(route, { ...asked, page, message: message || undefined, language });
        return h("figure", {}, h("figcaption", {}, state), frame);
      });
      place(frames, figures);
      write(button, "Show it again");
    } catch (error) {
      write(note, `The page cannot be shown: ${error.message}.`);
    }
    button.disabled = false;
  }

  return section(
    "previews",
    "The waiting page",
    h(
      "p",
      { class: "quiet" },
      "As it is filled in, saved or not, for somebody who comes at the end of the line.",
    ),
    h("p", {}, button),
    note,
    frames,
  );
}

/** The Worker keeps a template for a week, to be looked at. */
async function kept(html) {
  const { result } = await post(`${ROOMS}/preview`, undefined, { custom_html: html });
  return new URL(result.preview_url).pathname.replace(/^\/__anteroom\//, "");
}
