// How long a change is to hold, and why it is made.
import { h, newId, show } from "./dom.js";

/** What may be chosen, as `POST steering` wants it. */
const DURATIONS = {
  "": "until it is cleared",
  "15m": "for 15 minutes",
  "30m": "for 30 minutes",
  "1h": "for 1 hour",
  "2h": "for 2 hours",
  "4h": "for 4 hours",
  "8h": "for 8 hours",
};
export const LONGEST_REASON = 200;

/** @param {boolean} maySteer */
export function createLasting(maySteer) {
  const [untilId, reasonId] = [newId("until"), newId("reason")];
  const options = Object.entries(DURATIONS).map(([value, text]) => h("option", { value }, text));
  const until = h("select", { id: untilId, disabled: !maySteer }, ...options);
  const holds = h("span", {}, h("label", { for: untilId }, "It holds"), " ", until);
  const reason = h("input", {
    id: reasonId,
    type: "text",
    maxlength: LONGEST_REASON,
    autocomplete: "off",
    disabled: !maySteer,
  });
  const why = h("span", {}, h("label", { for: reasonId }, "Why"), " ", reason);
  return {
    element: h("p", { class: "lasting" }, holds, " ", why),
    /** Whether what is asked can end by itself. @param {boolean} may */
    mayEnd: (may) => show(holds, may),
    /** The parts of an order. */
    get parts() {
      const said = { until: holds.hidden ? "" : until.value, reason: reason.value.trim() };
      return Object.fromEntries(Object.entries(said).filter(([, text]) => text !== ""));
    },
    reset() {
      until.value = "";
      reason.value = "";
    },
  };
}
