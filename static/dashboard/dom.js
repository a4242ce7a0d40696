// Elements, made and changed in few words. What does not change is not written again: a screen reader would say it again.

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element. A property that begins with `on` is a listener, `true` and `false` set and leave out an attribute.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Node | string | null | undefined | false)} children
 */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** The same for a picture's parts. */
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else attribute(element, name, value);
  }
  element.append(
    ...children.flat().filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** Sets an attribute, or takes it away (`false`, `null`), where that changes anything. */
export function attribute(element, name, value) {
  if (value === false || value === null || value === undefined) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

/** Writes a text where it is another one than before. */
export function write(element, text) {
  const next = text ?? "";
  if (element.textContent !== next) element.textContent = next;
}

/** Shows or hides. */
export function show(element, isShown) {
  if (element.hidden === isShown) element.hidden = !isShown;
}

/** Puts children in place where they differ from those before. */
export function place(element, children) {
  const wanted = children.filter(Boolean);
  const isSame =
    wanted.length === element.childNodes.length &&
    wanted.every((child, index) => element.childNodes[index] === child);
  if (!isSame) element.replaceChildren(...wanted);
}

/**
 * Keeps a list of elements in step with a list of things: elements stay with their thing, so that focus does too.
 * @template Item
 * @param {Element} parent
 * @param {(item: Item) => string | number} keyOf
 * @param {(item: Item) => { element: Element, update: (item: Item) => void }} make
 */
export function keyed(parent, keyOf, make) {
  let known = new Map();
  /** @param {Item[]} items */
  return (items) => {
    const next = new Map();
    for (const item of items) {
      const key = keyOf(item);
      const one = known.get(key) ?? make(item);
      one.update(item);
      next.set(key, one);
    }
    known = next;
    place(
      parent,
      [...next.values()].map(({ element }) => element),
    );
  };
}

let made = 0;
/** An id that nothing else on the page has. */
export function newId(name) {
  made += 1;
  return `${name}-${made}`;
}
