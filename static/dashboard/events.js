// The events of a room, and how to start and end them now.
import { createAsking } from "./asking.js";
import { attribute, h, keyed, show, write } from "./dom.js";
import { eventTime, section } from "./tables.js";
import { moment, number, relative } from "./words.js";

/** @param {import("./control.js").Control} control */
export function createEvents(control) {
  const list = h("ul", { class: "events" });
  const empty = h("p", { class: "quiet" }, "This room has no events. docs/events.md says how to plan one.");
  const outcome = h("p", { class: "outcome", role: "status" });
  const update = keyed(
    list,
    ({ name }) => name,
    ({ name }) => createEvent(name, control, outcome),
  );
  return {
    element: section("events", "Events", empty, list, outcome),
    render() {
      const known = control.steering?.events ?? [];
      show(empty, known.length === 0);
      update(known);
    },
  };
}

/** What can be done about an event. */
function createActs(name, control, outcome) {
  const act = (what, done) => control.send({ events: { [name]: what } }, outcome, done);
  const start = createAsking(control.maySteer, {
    label: "Start now",
    question: () =>
      `Start ${name} now? ${number(control.latest?.estimated_queued_users ?? 0)} people wait; they enter by their turn.`,
    yes: "Yes, start it",
    act: () => act("start", `${name} has started.`),
  });
  const end = createAsking(control.maySteer, {
    label: "End now",
    question: () => `End ${name} now? The room goes on as deployed, with its own limits.`,
    yes: "Yes, end it",
    act: () => act("end", `${name} has ended.`),
  });
  const clear = createAsking(control.maySteer, {
    label: "Back to the schedule",
    question: () => {
      const { phase, deployed_end } = control.steering.events.find((event) => event.name === name);
      const goesOn = phase === "over" && deployed_end > control.now;
      return goesOn
        ? `${name} was ended. Let it go on as planned, with its own limits, until ${moment(deployed_end, control.now)}?`
        : `Put ${name} back on its schedule, with the limits that are planned for now?`;
    },
    yes: "Yes, back to the schedule",
    act: () => act("clear", `${name} is on its schedule again.`),
  });
  return { start: start.element, end: end.element, clear: clear.element };
}

function createEvent(name, control, outcome) {
  const phase = h("span", { class: "phase" });
  const head = h("p", { class: "event-head" }, h("b", {}, name), " ", phase);
  const times = h("p", { class: "meta" });
  const steered = h("p", { class: "meta" });
  const { start, end, clear } = createActs(name, control, outcome);
  return {
    element: h("li", {}, head, times, steered, start, " ", end, " ", clear),
    update(event) {
      const { now } = control;
      write(phase, event.phase);
      attribute(phase, "data-phase", event.phase);
      write(times, `${eventTime(event.start, now)} to ${eventTime(event.end, now)}`);
      show(steered, event.steered);
      write(
        steered,
        event.steered
          ? `Steered${event.by ? ` by ${event.by}, ${relative(event.at, now)}${event.reason ? ` (${event.reason})` : ""}` : ""}. Planned: ${moment(event.deployed_start, now)} to ${moment(event.deployed_end, now)}.`
          : "",
      );
      show(start, ["upcoming", "prequeueing"].includes(event.phase));
      show(end, ["prequeueing", "active"].includes(event.phase));
      show(clear, event.steered);
    },
  };
}
