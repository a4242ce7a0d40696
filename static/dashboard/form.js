// The fields of a room, changed together: drafts, what is wrong with them, and who else changed something meanwhile.
import { differencesOf, shown } from "./control.js";
import { h, place, show, write } from "./dom.js";
import { createField } from "./fields.js";
import { createLasting } from "./lasting.js";
import { section } from "./tables.js";
import { createUnread } from "./unread.js";
import { count, number, title, value } from "./words.js";

/** What is written and not in force yet, by field. */
export class Drafts extends Map {
  /** What was in force when the operator began to edit. */
  base;
  #control;
  #edited;

  /** @param {import("./control.js").Control} control @param {() => void} edited */
  constructor(control, edited) {
    super();
    this.#control = control;
    this.#edited = edited;
  }

  /** @param {string} field @param {string | undefined} draft nothing: it is as in force again */
  edit(field, draft) {
    if (this.size === 0) this.base = this.#control.steering;
    if (draft === undefined) this.delete(field);
    else this.set(field, draft);
    if (this.size === 0) this.base = undefined;
    this.#edited();
  }

  forget() {
    this.clear();
    this.base = undefined;
  }
}

/** The drafts as values, or nothing where one cannot be one: it then says why. */
function valuesOf(views, drafts) {
  const set = {};
  for (const view of views) {
    if (!drafts.has(view.field)) continue;
    const problem = view.problem(drafts.get(view.field));
    view.error(problem);
    if (problem) {
      view.focus();
      return undefined;
    }
    set[view.field] = view.parse(drafts.get(view.field));
  }
  return set;
}

/** Tells at the fields what the Worker has against their values. @param {import("./api.js").Refusal} refusal */
function tellErrors(views, refusal) {
  for (const { field, message, fix } of refusal.errors) {
    const view = views.find((one) => one.field === field);
    view?.error(`${capital(message)}${fix ? `: ${fix}` : ""}.`);
  }
  views.find((view) => refusal.errors.some(({ field }) => field === view.field))?.focus();
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Fills in that somebody else was faster: what they changed, and what can be done. */
function fillConflict(conflict, differences, { insist, discard }) {
  place(conflict, [
    h("p", {}, h("strong", {}, "Somebody else changed this room in between. Your change was not made.")),
    h("ul", {}, ...differences.map((text) => h("li", {}, text))),
    h(
      "p",
      {},
      h("button", { type: "button", class: "primary", onclick: insist }, "Put mine in force all the same"),
      " ",
      h("button", { type: "button", onclick: discard }, "Discard mine"),
    ),
  ]);
}

/** In how many data centers what is in force has arrived. */
function reach({ steering, latest }) {
  if (!steering) return { text: "", isAll: true };
  const { colos_in_force: reached = 0, colos = 0, version } = latest?.steering ?? steering;
  const isAll = reached >= colos;
  const text =
    colos === 0
      ? `Version ${version}: no data center is active, it is in force for the next visitor.`
      : `${isAll ? "✓" : "…"} In force in ${number(reached)} of ${count(colos, "colo")} (version ${version})`;
  return { text, isAll };
}

/** The elements of the form. */
function createElements(control, operator, { submit, forget }) {
  const inForce = h("p", { class: "in-force" });
  const outcome = h("p", { class: "outcome", role: "status" });
  const conflict = h("div", { class: "notice bad", role: "alert", hidden: true });
  const problem = h("span");
  const again = h("button", { type: "button", onclick: () => control.load() }, "Try again");
  const trouble = h("p", { class: "problem", hidden: true }, problem, again);
  const pending = h("p", { class: "pending" });
  const save = h("button", { class: "primary", type: "submit" }, "Put in force");
  const discard = h("button", { type: "button", onclick: forget }, "Discard");
  const lasting = createLasting(control.maySteer);
  const bar = h("div", { class: "save-bar", hidden: true }, pending, lasting.element, save, discard);
  const onsubmit = (event) => {
    event.preventDefault();
    submit();
  };
  const form = h("form", { novalidate: true, onsubmit }, conflict, bar);
  const locked = control.maySteer
    ? null
    : h(
        "p",
        { class: "notice", id: "view-only" },
        `You are signed in as ${operator} with the role view: you see everything and change nothing. A token with the role steer may.`,
      );
  const unread = createUnread(control, outcome);
  const panel = section("steering", "Steering", locked, unread.element, inForce, trouble, form, outcome);
  return { panel, form, unread, inForce, outcome, conflict, trouble, problem, pending, lasting, save, bar };
}

/**
 * @param {import("./control.js").Control} control
 * @param {string} operator name of whoever is signed in
 */
export function createForm(control, operator) {
  /** Made when it is known which fields there are. */
  let views = [];
  const drafts = new Drafts(control, () => {
    write(elements.outcome, "");
    control.tell();
  });
  const elements = createElements(control, operator, { submit: () => submit(), forget: () => forget() });
  const { outcome, conflict, lasting, save, bar } = elements;

  function forget() {
    drafts.forget();
    lasting.reset();
    show(conflict, false);
    for (const view of views) view.error("");
    control.tell();
    write(outcome, "");
  }

  async function submit() {
    const set = valuesOf(views, drafts);
    if (!set || Object.keys(set).length === 0) return;
    save.disabled = true;
    const said = Object.entries(set).map(
      ([field, content]) => `${title(field)} is now ${value(field, content)}`,
    );
    const asked = { set, ...lasting.parts, if_version: drafts.base.version };
    const refusal = await control.send(asked, outcome, `${said.join(". ")}.`);
    save.disabled = false;
    control.tell();
    if (!refusal) {
      const text = outcome.textContent;
      forget();
      write(outcome, text);
    } else if (refusal.status === 409) await showConflict();
    else tellErrors(views, refusal);
  }

  async function showConflict() {
    const before = drafts.base;
    await control.load();
    drafts.base = control.steering;
    const insist = () => {
      show(conflict, false);
      submit();
    };
    const differences = differencesOf(before, control.steering, control.now);
    fillConflict(conflict, differences, { insist, discard: forget });
    show(conflict, true);
    show(bar, false);
    conflict.querySelector("button").focus();
  }

  return {
    panel: elements.panel,
    outcome,
    /** The fields, as far as they are known. */
    views: () => views,
    render() {
      if (views.length === 0 && control.steering) {
        const place = { control, drafts, outcome };
        views = shown(control.steering).flatMap((field) => createField(field, place) ?? []);
        conflict.before(...views.map(({ element }) => element));
      }
      for (const view of views) view.render();
      elements.unread.render();
      show(elements.trouble, control.problem !== "");
      write(elements.problem, `What is in force could not be loaded: ${control.problem}. `);
      // What to do about a conflict is asked in its own place.
      show(bar, drafts.size > 0 && conflict.hidden);
      write(elements.pending, `${count(drafts.size, "change is", "changes are")} not in force yet.`);
      const { text, isAll } = reach(control);
      elements.inForce.classList.toggle("spreading", !isAll);
      write(elements.inForce, text);
    },
  };
}
