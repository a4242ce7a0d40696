// What a field is filled in with, by its kind. Nothing is judged here but what has no other way to the Worker: a text that is no
// number, a time that is none. All else the Worker judges, by its own table.
import { attribute, h, newId } from "../dom.js";

/** Times are in the operator's zone. */
const pad = (value) => String(value).padStart(2, "0");

/**
 * @typedef {object} Input
 * @property {HTMLElement} element
 * @property {HTMLElement} focus what takes the focus
 * @property {(value: any) => void} set shows a value; undefined: none
 * @property {() => any} get undefined: nothing is said. It throws an `Error` with a sentence where there is no value
 */

/**
 * @param {import("./fields.js").Field} field
 * @param {{ isLocked: boolean }} options
 * @returns {Input}
 */
export function createInput(field, { isLocked }) {
  const input = KINDS[field.kind](field, isLocked);
  return { focus: input.element, ...input };
}

function placeholder({ normal, usual, example, inherits }) {
  if (inherits) return "as in the room";
  const known = asText(normal) || usual;
  return known ?? (asText(example) && `such as ${asText(example)}`);
}
/** A list stands in lines. */
const asText = (value) => {
  if (Array.isArray(value)) return value.map(asText).join("\n");
  return typeof value === "object" ? JSON.stringify(value) : String(value ?? "");
};

/** @type {Record<string, (field: import("./fields.js").Field, isLocked: boolean) => Input>} */
const KINDS = {
  text: (field, disabled) => line(field, { disabled }),
  long: (field, disabled) =>
    field.key === "custom_page_html" ? page(field, disabled) : line(field, { disabled, rows: 3 }, "textarea"),
  number(field, disabled) {
    const one = line(field, { disabled, inputmode: "decimal", size: 9 });
    return {
      ...one,
      set: (value) => one.set(value === undefined ? undefined : String(value)),
      get() {
        const text = one.get();
        const value = Number(text?.replace(/[\s,_']/g, ""));
        if (text !== undefined && !Number.isFinite(value)) throw new Error("must be a number");
        return text === undefined ? undefined : value;
      },
    };
  },
  /** A switch where there is one value or the other; a choice of three where it can also be as in the room. */
  flag(field, disabled) {
    if (field.inherits) {
      const one = choice(["true", "false"], { true: "yes", false: "no" }, "as in the room", disabled);
      return {
        ...one,
        set: (value) => one.set(value === undefined ? undefined : String(value)),
        get: () => ({ true: true, false: false })[one.get()],
      };
    }
    const element = h("input", { type: "checkbox", disabled });
    let given;
    return {
      element,
      set(value) {
        given = value;
        element.checked = value ?? field.normal ?? false;
      },
      // What was not said stays unsaid while it is as usual.
      get: () =>
        given === undefined && element.checked === (field.normal ?? false) ? undefined : element.checked,
    };
  },
  choice(field, disabled) {
    const isNumber = ["integer", "number"].includes(field.schema.type);
    const none = field.inherits
      ? "as in the room"
      : field.normal === undefined
        ? "not set"
        : `${field.normal}, as usual`;
    const one = choice(field.choices, {}, field.isRequired ? undefined : none, disabled);
    return {
      ...one,
      // Capitals do not matter to the Worker.
      set: (value) =>
        one.set(
          value === undefined
            ? undefined
            : (field.choices.find((name) => name === `${value}`.toLowerCase()) ?? `${value}`),
        ),
      get: () => (isNumber && one.get() !== undefined ? Number(one.get()) : one.get()),
    };
  },
  time(_field, disabled) {
    const element = h("input", { type: "datetime-local", step: 1, disabled });
    let given;
    const shown = (text) => {
      const at = new Date(text);
      const date = [at.getFullYear(), pad(at.getMonth() + 1), pad(at.getDate())].join("-");
      return `${date}T${[at.getHours(), at.getMinutes(), at.getSeconds()].map(pad).join(":")}`;
    };
    return {
      element,
      set(value) {
        given = value;
        element.value = value === undefined ? "" : shown(value);
      },
      get() {
        if (element.validity.badInput) throw new Error("must be a day and a time");
        if (element.value === "") return undefined;
        // A time that was not touched stays as it was written.
        const second = (text) => Math.floor(Date.parse(text) / 1_000);
        return given && second(given) === second(element.value) ? given : withOffset(element.value);
      },
    };
  },
  lines(field, disabled) {
    const one = line(field, { disabled, rows: 2 }, "textarea");
    let given;
    return {
      ...one,
      set(value) {
        given = value;
        one.set(value?.join("\n"));
      },
      get() {
        const lines = (one.get() ?? "").split("\n").map((text) => text.trim());
        const some = lines.filter(Boolean);
        // An empty list that was said is another thing than none.
        return some.length > 0 ? some : given?.length === 0 ? [] : undefined;
      },
    };
  },
  /** A host and a path in each line. */
  routes(field, disabled) {
    const one = KINDS.lines({ ...field, example: ["shop.example.com/sale"] }, disabled);
    return {
      ...one,
      set: (value) => one.set(value?.map(({ host, path }) => `${host}${path ?? "/"}`)),
      get: () =>
        one.get()?.map((text) => {
          const at = text.indexOf("/");
          return at < 0 ? { host: text } : { host: text.slice(0, at), path: text.slice(at) };
        }),
    };
  },
  group(field, isLocked) {
    const parts = field.parts.map((part) => ({
      part,
      input: createInput(part, { isLocked }),
    }));
    const element = h(
      "div",
      { class: "group", role: "group" },
      ...parts.map(({ part, input }) => labelled(part, input)),
    );
    let given;
    return {
      element,
      focus: parts[0].input.focus,
      set(value) {
        given = value;
        for (const { part, input } of parts) input.set(value?.[part.key]);
      },
      get() {
        const known = parts.map(({ part }) => part.key);
        const unknown = Object.entries(given ?? {}).filter(([name]) => !known.includes(name));
        const said = parts
          .map(({ part, input }) => [part.key, input.get()])
          .filter(([, value]) => value !== undefined);
        // In the order in which they came, so that nothing seems to be changed that is not.
        const all = Object.fromEntries([...unknown, ...said]);
        const names = [...new Set([...Object.keys(given ?? {}), ...Object.keys(all)])].filter(
          (name) => name in all,
        );
        return names.length > 0 ? Object.fromEntries(names.map((name) => [name, all[name]])) : undefined;
      },
    };
  },
  json(field, disabled) {
    const one = line(field, { disabled, rows: 3, class: "code" }, "textarea");
    return {
      ...one,
      set: (value) => one.set(value === undefined ? undefined : JSON.stringify(value, null, 1)),
      get() {
        const text = one.get();
        try {
          return text === undefined ? undefined : JSON.parse(text);
        } catch (error) {
          throw new Error(`must be JSON: ${error.message}`);
        }
      },
    };
  },
};

function line(field, properties, tag = "input") {
  const element = h(tag, {
    ...(tag === "input" && { type: "text" }),
    autocomplete: "off",
    spellcheck: field.key.endsWith("message") || field.key === "description" ? "true" : "false",
    placeholder: placeholder(field),
    ...properties,
  });
  let given;
  return {
    element,
    set(value) {
      given = value;
      element.value = value ?? "";
    },
    // An empty text that was said is another thing than none.
    get: () => (element.value === "" && given !== "" ? undefined : element.value),
  };
}

/** A template, written here or loaded from a file. */
function page(field, disabled) {
  const one = line(field, { disabled, rows: 8, class: "code" }, "textarea");
  const file = h("input", {
    type: "file",
    accept: ".html,.mustache,text/html",
    "aria-label": `${field.label}, from a file`,
    disabled,
    onchange: async () => {
      one.element.value = (await file.files[0]?.text()) ?? one.element.value;
      file.value = "";
      one.element.dispatchEvent(new Event("input", { bubbles: true }));
    },
  });
  return { ...one, element: h("div", {}, one.element, !disabled && file), focus: one.element };
}

/** @param {string | undefined} none what it says where nothing is said; undefined: something must be */
function choice(names, words, none, disabled) {
  const options = names.map((name) => h("option", { value: name }, words[name] ?? name));
  const element = h(
    "select",
    { disabled },
    ...(none === undefined ? [] : [h("option", { value: "" }, none)]),
    ...options,
  );
  return {
    element,
    set(value) {
      // What the Worker has and the form does not know is not lost.
      if (value !== undefined && ![...element.options].some((option) => option.value === value))
        element.append(h("option", { value }, value));
      element.value = value ?? "";
    },
    get: () => (element.value === "" ? undefined : element.value),
  };
}

/** A label, and a line of help, for a field's input. @param {Input} input */
export function labelled(field, { element, focus }, ...more) {
  const [id, helpId] = [newId("field"), newId("help")];
  const help = field.help && h("p", { class: "meta", id: helpId }, field.help);
  const isGroup = element.getAttribute("role") === "group";
  if (isGroup) attribute(element, "aria-labelledby", id);
  else attribute(focus, "id", id);
  attribute(isGroup ? element : focus, "aria-describedby", help ? helpId : false);
  const name = [field.label, field.isRequired && h("span", { class: "needed" }, " needed")];
  const label = isGroup ? h("span", { id, class: "label" }, ...name) : h("label", { for: id }, ...name);
  const isSwitch = focus.type === "checkbox" && !isGroup;
  return h(
    "div",
    { class: isSwitch ? "field flag" : "field" },
    ...(isSwitch ? [element, " ", label] : [label, element]),
    ...more,
    help,
  );
}

/** A time of the operator's zone, with its offset. */
function withOffset(local) {
  const minutes = -new Date(local).getTimezoneOffset();
  const sign = minutes < 0 ? "-" : "+";
  const size = Math.abs(minutes);
  const whole = local.length === 16 ? `${local}:00` : local;
  return `${whole}${sign}${pad(Math.floor(size / 60))}:${pad(size % 60)}`;
}
