// Words in which `openapi.js` and `operators.js` describe values: JSON Schema in short.

const of = (type) => (description, more) => ({ type, ...(description && { description }), ...more });

export const text = of("string");
export const whole = of("integer");
export const number = of("number");
export const flag = of("boolean");
export const list = (items, description) => ({ type: "array", items, ...(description && { description }) });
export const ref = (name) => ({ $ref: `#/components/schemas/${name}` });
export const one = (names, description) => text(description, { enum: names });
/** Milliseconds since the epoch. */
export const moment = (description) => whole(description, { format: "int64" });
/** A time as text. */
export const date = (description, more) => text(description, { format: "date-time", ...more });
/** Any value. */
export const anything = (description) => (description ? { description } : {});
/** An object with other names than its describer knows. */
export const open = (description, values = {}) => ({
  type: "object",
  ...(description && { description }),
  additionalProperties: values,
});

const MAYBE = Symbol("may be left out");
/** A property that may be left out. */
export const maybe = (schema) => ({ ...schema, [MAYBE]: true });

/** Or null. */
export function orNull(schema) {
  const { type, enum: names } = schema;
  if (!type || Array.isArray(type)) return { anyOf: [schema, { type: "null" }] };
  return { ...schema, type: [type, "null"], ...(names && { enum: [...names, null] }) };
}

/** An object. What may not be left out is required. */
export const object = (properties, more) => ({
  type: "object",
  required: Object.keys(properties).filter((name) => !properties[name][MAYBE]),
  properties,
  ...more,
});

/** A text of which capitals do not matter. `x-enum`: the names, for forms. */
export function anyCase(names, description) {
  const letters = (name) => name.replace(/[a-z]/g, (letter) => `[${letter.toUpperCase()}${letter}]`);
  const said = [description, `${names.join(", ")}, in any case`].filter(Boolean).join("; ");
  return text(said, { pattern: `^(${names.map(letters).join("|")})$`, "x-enum": names });
}

export const json = (schema) => ({ "application/json": { schema } });
export const answer = (description, content) => ({ description, ...(content && { content }) });
export const asked = (name, schema, description) => ({
  name,
  in: "query",
  ...(description && { description }),
  schema,
});
