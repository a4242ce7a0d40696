// The switches of a room: nobody new enters, the room is off, and, where it may, it only observes.
import { createAsking } from "./asking.js";
import { differencesOf } from "./control.js";
import { attribute, h, show, write } from "./dom.js";
import { createOrigins } from "./fields.js";
import { createLasting } from "./lasting.js";
import { count } from "./words.js";

/** A room that is off queues nobody, whatever else is set. */
const isSuspended = (control) => control.field("suspended")?.value === true;
const laterOf = (control) => (isSuspended(control) ? " when the room is on again" : "");

/**
 * What the switches are called and ask, by field.
 * @param {import("./control.js").Control} control
 */
export const switchesOf = (control) => ({
  queue_all: {
    on: {
      label: "Queue everybody",
      question: () => {
        if (isSuspended(control))
          return `${control.name} is suspended and queues nobody. Queue everybody when it is on again?`;
        const inside = count(
          control.latest?.estimated_total_active_users ?? 0,
          "active user stays",
          "active users stay",
        );
        return `From now on nobody new enters ${control.name}; ${inside} in, everybody else waits. Queue everybody?`;
      },
      yes: "Yes, queue everybody",
      get done() {
        return `Everybody is queued${laterOf(control)}.`;
      },
    },
    off: {
      label: "Let people in again",
      question: () =>
        isSuspended(control)
          ? `${control.name} is suspended and queues nobody. Let people in when it is on again, too?`
          : `${count(control.latest?.estimated_queued_users ?? 0, "person waits", "people wait")} and will enter by their turn, within the limits. Let them in?`,
      yes: "Yes, let them in",
      get done() {
        return `People enter again${laterOf(control)}.`;
      },
    },
    note: {
      get on() {
        return `■ Everybody is queued${laterOf(control)}`;
      },
      off: "○ New users may enter",
    },
  },
  suspended: {
    on: {
      label: "Suspend the room",
      question: () =>
        `The room is switched off: everybody, also who waits, goes straight to the origin, without any limit. Suspend ${control.name}?`,
      yes: "Yes, suspend it",
      done: "The room is suspended.",
    },
    off: {
      label: "Switch the room on",
      question: () => `The room counts visitors again and holds its limits. Switch ${control.name} on?`,
      yes: "Yes, switch it on",
      done: "The room is on.",
    },
    note: { on: "– The room is suspended", off: "○ The room is on" },
  },
  mode: {
    values: ["enforce", "observe"],
    on: {
      label: "Only observe",
      question: () =>
        `From now on everybody passes, also who waits, without any limit. ${control.name} goes on judging and counting. Only observe?`,
      yes: "Yes, only observe",
      done: "The room only observes.",
    },
    off: {
      label: "Go live",
      question: () =>
        `From now on the limits hold: ${count(control.latest?.estimated_queued_users ?? 0, "person", "people")} on the site would wait, and will see the waiting page with the next request. Go live with ${control.name}?`,
      yes: "Yes, go live",
      done: "The room is live.",
    },
    note: { on: "– The room only observes: everybody passes", off: "○ The room is live" },
  },
});

/** A switch that means nothing to most rooms is there where it was deployed or steered. */
const concerns = (field, state) => field !== "mode" || [state?.deployed, state?.value].includes("observe");

/** Turns a switch, and tells what came of it. */
async function turn(field, content, done, control, { outcome, lasting }) {
  const { steering } = control;
  // Where it was deployed so, nothing has to stand above it.
  const asked =
    control.field(field)?.deployed === content ? { clear: [field] } : { set: { [field]: content } };
  const order = { ...asked, ...lasting.parts, if_version: steering?.version };
  const refusal = await control.send(order, outcome, done);
  if (!refusal) lasting.reset();
  if (refusal?.status !== 409) return;
  await control.load();
  const differences = differencesOf(steering, control.steering, control.now).join(". ");
  outcome.classList.add("bad");
  write(outcome, `Nothing was changed: somebody else was faster. ${differences}. Look, and try again.`);
}

/** A switch, and how it came to be where it is. */
function createSwitch(
  field,
  { on, off, note, values: [whenOff, whenOn] = [false, true] },
  control,
  { outcome, ofForm },
) {
  const from = createOrigins(field, control, ofForm);
  const state = h("p", { class: "state" });
  const asking = (words, content) => {
    const lasting = createLasting(control.maySteer);
    return createAsking(control.maySteer, {
      ...words,
      question() {
        lasting.mayEnd(control.field(field)?.deployed !== content);
        return words.question();
      },
      act: () => turn(field, content, words.done, control, { outcome, lasting }),
      danger: content === whenOn,
      more: lasting.element,
    });
  };
  const turnOn = asking(on, whenOn);
  const turnOff = asking(off, whenOff);
  const element = h(
    "div",
    { class: "switch" },
    state,
    turnOn.element,
    turnOff.element,
    from.meta,
    from.notice,
  );
  return {
    element,
    render() {
      const content = control.field(field);
      from.update(content);
      const isOn = content?.value === whenOn;
      show(element, concerns(field, content));
      write(state, content ? (isOn ? note.on : note.off) : "");
      element.classList.toggle("on", isOn);
      show(turnOn.element, !isOn);
      show(turnOff.element, isOn);
      for (const { button } of [turnOn, turnOff])
        attribute(button, "disabled", !control.maySteer || !content);
    },
  };
}

/**
 * @param {import("./control.js").Control} control
 * @param {HTMLElement} ofForm where the outcome of what is asked beside a switch is told
 */
export function createSwitches(control, ofForm) {
  const outcome = h("p", { class: "outcome", role: "status" });
  const switches = Object.entries(switchesOf(control)).map(([field, words]) =>
    createSwitch(field, words, control, { outcome, ofForm }),
  );
  return {
    elements: [...switches.map(({ element }) => element), outcome],
    render() {
      for (const view of switches) view.render();
    },
  };
}
