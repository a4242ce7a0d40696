// The form of a room or an event: what is filled in is checked by the Worker, shown as a difference, and saved when that was seen.
// Who was slower than somebody else is shown what they have changed.
import { Refusal } from "../api.js";
import { attribute, h, newId, place, show, write } from "../dom.js";
import { differencesOf, differenceTable } from "./difference.js";
import { groupsOf, isSame, valueAt } from "./fields.js";
import { createInput, labelled } from "./inputs.js";

/** So many groups are open from the beginning. */
const OPEN_GROUPS = 3;

/**
 * @typedef {object} Entry
 * @property {HTMLElement} element
 * @property {() => boolean} isChanged whether something would be lost
 * @property {(key: string) => any} value of a field, as it is filled in
 */

/**
 * @param {object} options
 * @param {import("./fields.js").Field[]} options.fields
 * @param {any} [options.base] as it is; without it a new one is made
 * @param {any} [options.draft] what a new one begins with
 * @param {(field: import("./fields.js").Field) => boolean} options.mayEdit
 * @param {(body: object, isTrial: boolean) => Promise<{ result: any, messages: { message: string }[] }>} options.send
 * @param {() => Promise<any>} [options.load] as it is now
 * @param {(result: any) => void} options.saved
 * @param {string} options.save what the last button says
 * @returns {Entry}
 */
export function createEntry({ fields, base: given, draft, mayEdit, send, load, saved, save }) {
  let base = given;
  const views = fields.map((field) => createView(field, mayEdit(field), () => edited()));
  const outcome = h("p", { class: "problem", role: "alert" });
  const review = h("div", {
    class: "review",
    tabindex: -1,
    role: "group",
    "aria-label": "Before it is saved",
  });
  const conflict = h("div", { class: "notice bad", role: "alert", hidden: true });
  const check = h("button", { class: "primary", type: "submit" }, "Check and see what changes");
  const discard = h("button", { type: "button", onclick: () => fill(base ?? draft ?? {}) }, "Discard");
  const bar = h("p", { class: "acts" }, check, " ", discard);
  const form = h(
    "form",
    { novalidate: true, class: "entry-form", onsubmit: submit },
    ...groupsOf(fields).map(([name, some], index) => {
      const inside = views.filter(({ field }) => some.includes(field));
      return h(
        "details",
        { open: index < OPEN_GROUPS },
        h("summary", {}, h("h2", {}, name)),
        ...inside.map(({ element }) => element),
      );
    }),
    conflict,
    outcome,
    views.some(({ isLocked }) => !isLocked) && bar,
    review,
  );

  function fill(entry) {
    for (const view of views) view.fill(valueAt(entry, view.field));
    edited();
  }

  /** What is filled in; nothing where something has no value: it then says why. */
  function read() {
    const wrong = views.filter((view) => !view.read());
    wrong[0]?.show();
    return wrong.length > 0 ? undefined : entryOf(views);
  }

  function edited() {
    place(review, []);
    show(conflict, false);
    write(outcome, "");
    show(bar, true);
    attribute(check, "disabled", base !== undefined && !isChanged());
  }

  const isChanged = () => views.some((view) => !view.isSame(base ?? draft ?? {}));

  /** Only what was filled in: what else there is stays. */
  function bodyOf(wanted) {
    const body = {};
    for (const { field, after } of differencesOf(fields, base ?? {}, wanted)) {
      const value = after === undefined ? null : after;
      if (field.path.length === 1) body[field.path[0]] = value;
      else body[field.path[0]] = { ...body[field.path[0]], [field.path[1]]: value };
    }
    return base ? { ...body, modified_on: base.modified_on } : body;
  }

  async function submit(event) {
    event?.preventDefault();
    write(outcome, "");
    for (const view of views) view.tell("");
    const wanted = read();
    if (!wanted) return;
    await tried(check, async () => {
      const { messages } = await send(bodyOf(wanted), true);
      showReview(wanted, messages);
    });
  }

  function showReview(wanted, messages) {
    const agree = h("button", { type: "button", class: "primary" }, save);
    agree.addEventListener("click", () =>
      tried(agree, async () => {
        const { result } = await send(bodyOf(wanted), false);
        base = result;
        saved(result);
      }),
    );
    const resume = () => {
      edited();
      check.focus();
    };
    const back = h("button", { type: "button", onclick: resume }, "Go on editing");
    place(review, [
      h("h2", {}, base ? "This changes" : "This is made"),
      differenceTable(
        differencesOf(fields, base ?? {}, wanted),
        base ? ["is", "will be"] : ["as usual", "will be"],
      ),
      ...messages.map(({ message }) => h("p", { class: "notice changed" }, message)),
      h("p", { class: "acts" }, agree, " ", back),
    ]);
    show(bar, false);
    review.focus();
  }

  /** Does what a button is for, and tells what the Worker has against it. */
  async function tried(button, act) {
    button.disabled = true;
    try {
      await act();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      edited();
      if (base && error.errors.some(({ source }) => source?.pointer === "/modified_on")) await showConflict();
      else tellErrors(error);
    } finally {
      attribute(button, "disabled", false);
    }
  }

  function tellErrors(refusal) {
    const left = [];
    let first;
    for (const error of refusal.errors) {
      const view = viewAt(error.source?.pointer);
      if (!view) left.push(error.message);
      view?.tell(sentence(error.message), error.source);
      first ??= view;
    }
    const said = refusal.errors.length === 0 ? [refusal.message] : left;
    const unknown =
      refusal.status === 0 ? " Whether this was changed is not known." : " Nothing was changed.";
    write(outcome, (said.map(sentence).join(" ") || "Something is wrong with what is marked.") + unknown);
    if (first) first.show();
    else outcome.scrollIntoView({ block: "center" });
  }

  const viewAt = (pointer = "") =>
    views
      .filter(({ field }) => `${pointer}/`.startsWith(`/${field.path.join("/")}/`))
      .sort((one, other) => other.field.path.length - one.field.path.length)[0];

  /** Somebody else was faster. */
  async function showConflict() {
    const latest = await load();
    const theirs = differencesOf(fields, base, latest);
    // What was not touched here is as they have it.
    const touched = views.filter((view) => !view.isSame(base));
    base = latest;
    for (const view of views.filter((view) => !touched.includes(view)))
      view.fill(valueAt(latest, view.field));
    const keep = () => {
      show(conflict, false);
      submit();
    };
    place(conflict, [
      h("p", {}, h("strong", {}, "Somebody else has changed this in between. Yours was not saved.")),
      theirs.length > 0
        ? differenceTable(theirs, ["was", "is now"])
        : h("p", {}, "Nothing that is shown here has another value now."),
      h(
        "p",
        { class: "acts" },
        h("button", { type: "button", class: "primary", onclick: keep }, "Check mine against it"),
        " ",
        h("button", { type: "button", onclick: () => fill(latest) }, "Discard mine"),
      ),
    ]);
    show(conflict, true);
    conflict.querySelector("button").focus();
  }

  fill(base ?? draft ?? {});
  return {
    element: form,
    isChanged: () => views.some(({ isLocked }) => !isLocked) && isChanged(),
    value: (key) => views.find(({ field }) => field.key === key)?.value(),
  };
}

const sentence = (text) => (/[.!?]$/.test(text) ? text : `${text}.`);

/** What is filled in, as an entry. */
function entryOf(views) {
  const entry = {};
  for (const { field, value } of views) {
    const content = value();
    if (content === undefined) continue;
    if (field.path.length === 1) entry[field.path[0]] = content;
    else entry[field.path[0]] = { ...entry[field.path[0]], [field.path[1]]: content };
  }
  return entry;
}

/** A field of the form. @param {() => void} edited */
function createView(field, mayEdit, edited) {
  const input = createInput(field, { isLocked: !mayEdit });
  const error = h("p", { class: "error", id: newId("error"), hidden: true });
  const element = labelled(field, input, error);
  const described = input.focus.getAttribute("aria-describedby");
  const tell = (text) => {
    write(error, text);
    show(error, text !== "");
    attribute(input.focus, "aria-invalid", text === "" ? false : "true");
    attribute(
      input.focus,
      "aria-describedby",
      [text && error.id, described].filter(Boolean).join(" ") || false,
    );
  };
  const contentOf = () => {
    try {
      return input.get();
    } catch {
      return undefined;
    }
  };
  element.addEventListener("input", () => {
    tell("");
    edited();
  });
  return {
    field,
    element,
    isLocked: !mayEdit,
    tell,
    value: contentOf,
    fill(value) {
      tell("");
      input.set(value);
    },
    /** Whether there is a value; it says what is wrong where there is none. */
    read() {
      try {
        input.get();
        return true;
      } catch ({ message }) {
        tell(`${field.label} ${message}.`);
        return false;
      }
    },
    isSame(entry) {
      try {
        return isSame(input.get(), valueAt(entry, field));
      } catch {
        return false;
      }
    },
    show() {
      element.closest("details").open = true;
      input.focus.focus();
    },
  };
}
