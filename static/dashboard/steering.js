// Steering: what is in force beside what is deployed, who changed it, and how to change it. Nothing is changed by one slip:
// switches and events ask once more, in place; fields are gathered and put in force together.
import { Control } from "./control.js";
import { h, show, write } from "./dom.js";
import { createEvents } from "./events.js";
import { createForm } from "./form.js";
import { createPlanned } from "./planned.js";
import { createSwitches } from "./switches.js";
import { title } from "./words.js";

/**
 * @param {object} options
 * @param {string} options.room its name
 * @param {string} options.operator name of whoever is signed in
 * @param {boolean} options.maySteer
 * @param {() => void} options.changed something was changed
 */
export function createSteering({ room, operator, maySteer, changed }) {
  const control = new Control({ room, maySteer, changed });
  const form = createForm(control, operator);
  const switches = createSwitches(control, form.outcome);
  const events = createEvents(control);
  const planned = createPlanned(control);
  const attention = createAttention(control, form);
  for (const part of [form, switches, events, planned, attention]) control.listen(() => part.render());
  return {
    panel: form.panel,
    stage: h("div", { class: "switches" }, attention.element, ...switches.elements),
    events: events.element,
    planned: planned.element,
    load: () => control.load(),
    /** The room as it is now. */
    update: (latest, time) => control.update(latest, time),
  };
}

/** Says that a deploy has changed what lies beneath something steered, and leads there. */
function createAttention(control, form) {
  // The switches are beside this and say it themselves.
  const changed = () => form.views().filter(({ field }) => control.field(field)?.override?.deploy_changed);
  const beneath = h("p");
  const look = h("button", { type: "button", onclick: () => changed()[0]?.show() }, "Look at it");
  const element = h("div", { class: "notice changed beneath", hidden: true }, beneath, look);
  return {
    element,
    render() {
      show(element, changed().length > 0);
      const fields = changed().map(({ field }) => title(field));
      write(beneath, `▲ A deploy has changed ${fields.join(", ")} beneath what is steered.`);
    },
  };
}
