// The fields of a room that are steered together: each with what it was deployed as, and what a draft would do.
import { attribute, h, newId, place, show, write } from "./dom.js";
import { moment, number, relative, title, value } from "./words.js";

/** Where a number may be larger than this, it is changed in steps. */
const STEPS_FROM = 1_000;
const STEPS = [
  [0.5, "½"],
  [0.9, "−10 %"],
  [1.1, "+10 %"],
];

/** What a field's value was deployed as, and what to do about it. The outcome is told where `outcome` is. */
export function createOrigins(field, control, outcome) {
  const clear = (properties = {}) =>
    h("button", {
      type: "button",
      disabled: !control.maySteer,
      onclick: () => control.send({ clear: [field] }, outcome, `${title(field)} is as deployed again.`),
      ...properties,
    });
  const text = h("span");
  const back = clear({ class: "link" });
  const meta = h("p", { class: "meta", id: newId("meta") }, text, " ", back);
  const notice = h("div", { class: "notice changed", hidden: true });
  const ask = (override, deployed) => {
    const steered = value(field, override.value);
    const keep = () => control.send({ keep: [field] }, outcome, `${title(field)} stays ${steered}.`);
    const use = clear();
    write(use, `Use the deployed ${deployed}`);
    place(notice, [
      h(
        "p",
        {},
        `▲ A deploy has changed this from ${value(field, override.deployed_then)} to ${deployed} beneath. In force is still ${steered}, by ${override.by}.`,
      ),
      h("button", { type: "button", disabled: !control.maySteer, onclick: keep }, `Keep ${steered}`),
      " ",
      use,
    ]);
  };
  return {
    meta,
    notice,
    update(state) {
      const override = state?.override;
      const deployed = value(field, state?.deployed);
      write(text, origin(state, deployed, control.now));
      show(back, Boolean(override) && !override.deploy_changed);
      write(back, `Back to the deployed ${field === "message" ? "one" : deployed}`);
      const isChanged = Boolean(override?.deploy_changed);
      show(notice, isChanged);
      const key = JSON.stringify(override ?? null);
      if (!isChanged || notice.dataset.key === key) return;
      notice.dataset.key = key;
      ask(override, deployed);
    },
  };
}

function origin(state, deployed, now) {
  if (!state) return "";
  const { override } = state;
  if (!override) return "As deployed.";
  const { by, at, until, reason } = override;
  const end = until ? `, until ${moment(until, now)} (${relative(until, now)})` : "";
  return `Deployed: ${deployed}. Steered by ${by}, ${relative(at, now)}${end}.${reason ? ` Why: ${reason}` : ""}`;
}

/**
 * A field of the form.
 * @param {string} field
 * @param {HTMLInputElement | HTMLTextAreaElement} input
 * @param {object} content how a text becomes a value, what is wrong with it, and the text of a value
 * @param {object} place
 * @param {import("./control.js").Control} place.control
 * @param {import("./form.js").Drafts} place.drafts
 * @param {HTMLElement} place.outcome
 * @param {object} [extras] what stands around and after the input, and how it is kept up to date
 */
function createEntry(field, input, { parse, problem, textOf }, { control, drafts, outcome }, extras = {}) {
  const { maySteer } = control;
  const id = newId(field);
  const from = createOrigins(field, control, outcome);
  const error = h("p", { class: "error", id: newId("error"), hidden: true });
  attribute(input, "id", id);
  attribute(input, "disabled", !maySteer);
  attribute(input, "aria-describedby", `${from.meta.id} ${error.id}${maySteer ? "" : " view-only"}`);
  const tell = (text) => {
    write(error, text);
    show(error, text !== "");
    attribute(input, "aria-invalid", text === "" ? false : "true");
  };
  const onInput = () => {
    const current = control.field(field)?.value;
    drafts.edit(field, input.value === textOf(current) ? undefined : input.value);
    tell(drafts.has(field) ? problem(input.value) : "");
  };
  input.addEventListener("input", onInput);
  const element = h(
    "div",
    { class: "field" },
    h("label", { for: id }, title(field)),
    extras.around?.(input) ?? input,
    error,
    from.meta,
    from.notice,
    ...(extras.after ?? []),
  );
  return {
    field,
    element,
    parse,
    problem,
    error: tell,
    focus: () => input.focus(),
    show: () => {
      from.notice.scrollIntoView({ block: "center" });
      from.notice.querySelector("button:not(:disabled)")?.focus({ preventScroll: true });
    },
    onInput,
    render() {
      const state = control.field(field);
      from.update(state);
      if (!drafts.has(field) && state && input.value !== textOf(state.value))
        input.value = textOf(state.value);
      element.classList.toggle("draft", drafts.has(field));
      element.classList.toggle("steered", Boolean(state?.override));
      attribute(input, "disabled", !maySteer || !state);
      extras.render?.(state);
    },
  };
}

const parseNumber = (text) => Number(text.replace(/[\s,_']/g, ""));

/** A whole number; what it may be, the Worker has said. */
function createNumber(field, place) {
  const { control, drafts } = place;
  const { least, most } = control.field(field);
  const input = h("input", { type: "text", inputmode: "numeric", autocomplete: "off", size: 9 });
  const problem = (text) => {
    const content = parseNumber(text);
    if (text.trim() === "" || !Number.isInteger(content)) return "Must be a whole number.";
    if (content < least || content > most) return `Must be from ${number(least)} to ${number(most)}.`;
    return "";
  };
  const hint = h("p", { class: "hint" });
  let view;
  const step = ([factor, label]) =>
    h(
      "button",
      {
        type: "button",
        disabled: !control.maySteer,
        "aria-label": `${title(field)} ${label}`,
        onclick: () => {
          const content = parseNumber(input.value);
          if (!Number.isFinite(content)) return;
          input.value = String(Math.min(most, Math.max(least, Math.round(content * factor))));
          view.onInput();
        },
      },
      label,
    );
  const steppers = most > STEPS_FROM ? STEPS.map(step) : [];
  const content = {
    parse: parseNumber,
    problem,
    textOf: (given) => (given === undefined ? "" : String(given)),
  };
  view = createEntry(field, input, content, place, {
    around: (inner) => h("div", { class: "entry" }, inner, ...steppers),
    after: [hint],
    render(state) {
      for (const button of steppers) attribute(button, "disabled", !control.maySteer || !state);
      const draft = drafts.get(field);
      const isNumber = draft !== undefined && !problem(draft);
      write(hint, isNumber ? effect(field, parseNumber(draft), control) : following(field, control));
    },
  });
  return view;
}

/** Where limits follow the origin, another one than that is in force. */
function following(field, { latest, steering }) {
  const limit = latest?.limits?.[field];
  const set = steering?.fields[field]?.value;
  return limit !== undefined && set !== undefined && limit !== set
    ? `In force is ${number(limit)} now: the limits follow the origin.`
    : "";
}

/** What a limit would do. */
function effect(field, content, { latest }) {
  if (field !== "total_active_users" || !latest || latest.error) return "";
  const active = latest.estimated_total_active_users;
  if (content < active)
    return `${number(active)} are active. Nobody is thrown out: new users enter when ${number(active - content + 1)} have left.`;
  const waiting = latest.estimated_queued_users;
  const free = content - active;
  return waiting > 0
    ? `Makes room for ${number(Math.min(free, waiting))} of ${number(waiting)} who wait, at the rate of the room.`
    : "";
}

const parseLine = (text) => text.replace(/\s+/g, " ").trim();

/** A line that visitors read. */
function createLine(field, place) {
  const { control, drafts } = place;
  const { longest } = control.field(field);
  const input = h("textarea", { rows: 2, autocomplete: "off" });
  const left = h("span", { class: "left" });
  const seenAs = h("blockquote", { class: "said" });
  const problem = (text) =>
    [...parseLine(text)].length > longest ? `Must have at most ${longest} characters.` : "";
  const preview = h(
    "div",
    { class: "as-seen", hidden: true },
    h("p", { class: "meta" }, "Visitors will read:"),
    seenAs,
  );
  return createEntry(field, input, { parse: parseLine, problem, textOf: (content) => content ?? "" }, place, {
    after: [left, preview],
    render() {
      const draft = drafts.get(field);
      const isDraft = draft !== undefined;
      write(left, isDraft ? `${[...parseLine(draft)].length} of ${longest} characters, one line` : "");
      show(preview, isDraft);
      write(seenAs, isDraft ? parseLine(draft) || "(no message)" : "");
    },
  });
}

/** A part of all visitors, in percent. It means something in a room that observes the others. */
function createShare(field, place) {
  const { control } = place;
  const input = h("input", { type: "text", inputmode: "decimal", autocomplete: "off", size: 9 });
  const percent = (text) => Number(text.trim().replace(",", ".").replace(/\s*%$/, ""));
  const content = {
    parse: (text) => Math.round(percent(text) * 10_000) / 1_000_000,
    problem: (text) =>
      text.trim() !== "" && percent(text) >= 0 && percent(text) <= 100 ? "" : "Must be from 0 to 100 %.",
    textOf: (share) => (share === undefined ? "" : String(Math.round(share * 1_000_000) / 10_000)),
  };
  const view = createEntry(field, input, content, place, {
    around: (inner) => h("div", { class: "entry" }, inner, " %"),
    render: () => show(view.element, control.field("mode")?.value === "observe"),
  });
  return view;
}

/** The entry for a field of what is in force, by what its value is; none for a switch. */
export function createField(field, place) {
  const known = place.control.field(field);
  if (field === "enforce_share") return createShare(field, place);
  if (known.most !== undefined) return createNumber(field, place);
  return known.longest === undefined ? undefined : createLine(field, place);
}
