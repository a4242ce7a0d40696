// A room's bypass rules, in their order. An expression is checked by the Worker while it is written, and the place of a mistake is
// marked.
import { change, get, Refusal, remove } from "../api.js";
import { createAsking } from "../asking.js";
import { attribute, h, keyed, newId, place, show, write } from "../dom.js";
import { section } from "../tables.js";

/** An expression is checked once nothing was written for so long, in milliseconds. */
const PAUSE_MS = 400;
const NEW = { action: "bypass_waiting_room", expression: "", description: "", enabled: true };

/** @param {string} room the route of its API @param {boolean} mayEdit */
export function createRules(room, mayEdit) {
  let rules = [];
  const list = h("ol", { class: "rules" });
  const empty = h("p", { class: "quiet", hidden: true }, "This room has no rules: nobody goes past it.");
  const outcome = h("p", { class: "outcome", role: "status" });
  const adding = h("div");
  const add = h("button", { type: "button" }, "New rule");
  const control = {
    mayEdit,
    place: (id) => rules.findIndex((rule) => rule.id === id),
    isLast: (id) => rules.at(-1)?.id === id,
    /** Changes something. @param {string} [id] of a rule; without it a new one */
    async change(id, body, { isTrial = false, done = "" } = {}) {
      const route = `${room}/rules${id ? `/${id}` : ""}`;
      const trial = isTrial ? { dry_run: true } : undefined;
      const { result } = await (body ? change(id ? "PATCH" : "POST", route, trial, body) : remove(route));
      if (isTrial) return;
      put(result);
      write(outcome, done);
    },
  };
  const update = keyed(
    list,
    ({ id }) => id,
    ({ id }) => createRule(id, control),
  );

  function put(result) {
    rules = result;
    show(empty, rules.length === 0);
    update(rules);
  }

  function close() {
    place(adding, []);
    show(add, true);
    add.focus();
  }
  add.addEventListener("click", () => {
    const editor = createEditor(NEW, {
      check: (body) => control.change(undefined, body, { isTrial: true }),
      save: (body) =>
        control.change(undefined, body, { done: "The rule is made. It is in force within 3 seconds." }),
      close,
    });
    place(adding, [editor.element]);
    show(add, false);
    editor.focus();
  });

  get(`${room}/rules`).then(
    ({ result }) => put(result),
    ({ message }) => write(outcome, `${message}.`),
  );
  return section(
    "rules",
    "Bypass rules",
    h("p", { class: "quiet" }, "Whoever one of them holds for goes past the room: no cookie, not counted."),
    empty,
    list,
    mayEdit && add,
    adding,
    outcome,
  );
}

function createRule(id, control) {
  let rule;
  const text = h("code", { class: "expression" });
  const state = h("b");
  const note = h("p", { class: "meta" });
  const under = h("div");
  const tell = (message) => place(under, [h("p", { class: "problem", role: "alert" }, `${message}.`)]);
  const button = (label, body, done) => {
    const act = async () => {
      try {
        await control.change(id, body(), { done });
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        tell(error.message);
      }
    };
    return h("button", { type: "button", onclick: act }, label);
  };
  const to = (index) => ({ position: { index } });
  const up = button("Earlier", () => to(control.place(id)), "The rule has moved.");
  const down = button("Later", () => to(control.place(id) + 2), "The rule has moved.");
  const toggle = button("", () => ({ enabled: !rule.enabled }), "The rule is changed.");
  const edit = h("button", { type: "button" }, "Edit");
  edit.addEventListener("click", () => {
    const editor = createEditor(rule, {
      check: (body) => control.change(id, body, { isTrial: true }),
      save: (body) =>
        control.change(id, body, { done: "The rule is changed. It is in force within 3 seconds." }),
      close: () => {
        place(under, []);
        edit.focus();
      },
    });
    place(under, [editor.element]);
    editor.focus();
  });
  const drop = createAsking(control.mayEdit, {
    label: "Delete",
    question: () => `Delete the rule “${rule.description || rule.expression}”?`,
    yes: "Yes, delete it",
    danger: true,
    act: () =>
      control.change(id, undefined, { done: "The rule is deleted." }).catch(({ message }) => tell(message)),
  });
  return {
    element: h(
      "li",
      {},
      h("p", {}, text, " ", state),
      note,
      control.mayEdit && h("p", { class: "acts" }, edit, " ", toggle, " ", up, " ", down, " ", drop.element),
      under,
    ),
    update(next) {
      rule = next;
      write(text, rule.expression);
      write(note, rule.description);
      write(state, rule.enabled ? "" : "off");
      write(toggle, rule.enabled ? "Turn off" : "Turn on");
      attribute(up, "disabled", control.place(id) === 0);
      attribute(down, "disabled", control.isLast(id));
    },
  };
}

/**
 * Where a rule is written.
 * @param {object} rule as it is
 * @param {{ check: (body: object) => Promise<void>, save: (body: object) => Promise<void>, close: () => void }} acts
 */
function createEditor(rule, { check, save, close }) {
  const expression = h("textarea", { rows: 3, class: "code", spellcheck: "false", autocomplete: "off" });
  const description = h("input", { type: "text", autocomplete: "off" });
  const enabled = h("input", { type: "checkbox" });
  expression.value = rule.expression;
  description.value = rule.description;
  enabled.checked = rule.enabled;
  const verdict = h("p", { class: "error", role: "status", id: newId("verdict") });
  const marked = h("pre", { class: "marked", hidden: true, "aria-hidden": "true" });
  const agree = h("button", { class: "primary", type: "submit" }, "Save the rule");
  attribute(expression, "aria-describedby", verdict.id);
  const body = () => ({
    action: rule.action,
    expression: expression.value,
    description: description.value,
    enabled: enabled.checked,
  });
  let timer;
  let asked = 0;

  function tell(text, { column } = {}) {
    verdict.classList.toggle("good", text === GOOD);
    write(verdict, text);
    attribute(expression, "aria-invalid", text === "" || text === GOOD ? false : "true");
    show(marked, column !== undefined);
    if (column === undefined) return;
    // By characters, as the Worker counts them.
    const characters = [...expression.value];
    const at = Math.min(column - 1, characters.length);
    const part = (from, to) => characters.slice(from, to).join("");
    place(
      marked,
      [part(0, at), h("mark", {}, characters[at]?.trim() ? characters[at] : "␣"), part(at + 1)].map(asNode),
    );
  }

  async function judge() {
    asked += 1;
    const mine = asked;
    if (expression.value.trim() === "") return tell("");
    try {
      await check(body());
      if (mine === asked) tell(GOOD);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (mine === asked) refused(error);
    }
  }

  function refused({ errors, message }) {
    const [one = { message }] = errors;
    const { column } = one.source ?? {};
    // The excerpt below is drawn here, and where it is stands once.
    const [line] = one.message.split("\n");
    const text = column === undefined ? line : `Character ${column}: ${line.replace(/^.*?column \d+: /, "")}`;
    tell(/[.!?]$/.test(text) ? text : `${text}.`, one.source);
  }

  expression.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(judge, PAUSE_MS);
  });
  async function submit(event) {
    event.preventDefault();
    clearTimeout(timer);
    asked += 1;
    agree.disabled = true;
    try {
      await save(body());
      close();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refused(error);
      expression.focus();
    }
    agree.disabled = false;
  }
  const named = (label, input) => {
    input.id = newId("rule");
    return h("div", { class: "field" }, h("label", { for: input.id }, label), input);
  };
  enabled.id = newId("rule");
  return {
    element: h(
      "form",
      { class: "rule-form", novalidate: true, onsubmit: submit },
      named("Expression", expression),
      marked,
      verdict,
      named("What it is for", description),
      h("p", { class: "field flag" }, enabled, " ", h("label", { for: enabled.id }, "It holds")),
      h("p", { class: "acts" }, agree, " ", h("button", { type: "button", onclick: close }, "Cancel")),
    ),
    focus: () => expression.focus(),
  };
}

const GOOD = "✓ The expression can be read.";
const asNode = (part) => (typeof part === "string" ? document.createTextNode(part) : part);
