// What is stored of operators' changes and this version cannot read: said, and cleared.
import { createAsking } from "./asking.js";
import { h, show, write } from "./dom.js";

const INSTEAD = {
  closed: "Nobody new enters.",
  last_known: "What the data centers were told last is in force.",
  ignored: "It is ignored.",
};

/** @param {{ names: string[], effect: keyof typeof INSTEAD }} unread as in the status */
export const sentence = ({ names, effect }) =>
  `This version cannot read what is stored here: ${names.join(", ")}. ${INSTEAD[effect]} Deploy the version that stored it, or clear it.`;

/**
 * @param {import("./control.js").Control} control
 * @param {HTMLElement} outcome
 */
export function createUnread(control, outcome) {
  const said = h("p");
  const names = () => control.steering?.unread?.names ?? [];
  const { element: clear } = createAsking(control.maySteer, {
    label: "Clear it",
    question: () => `What operators have changed there is as deployed then. Clear ${names().join(", ")}?`,
    yes: "Yes, clear it",
    danger: true,
    act: () =>
      control.send(
        { clear: names(), if_version: control.steering.version },
        outcome,
        "What could not be read is cleared.",
      ),
  });
  const element = h("div", { class: "notice bad", role: "alert", hidden: true }, said, clear);
  return {
    element,
    render() {
      const unread = control.steering?.unread;
      show(element, Boolean(unread));
      if (unread) write(said, sentence(unread));
    },
  };
}
