// A button that asks once more.
import { h, show, write } from "./dom.js";

/** A button that asks once more, in place. The question takes the focus; Escape takes it back. */
export function createAsking(maySteer, { label, question, yes, act, danger = false, describe, more }) {
  const button = h(
    "button",
    {
      type: "button",
      class: danger ? "danger" : "",
      disabled: !maySteer,
      "aria-describedby": maySteer ? (describe ?? false) : "view-only",
    },
    label,
  );
  const ask = h("p");
  const agree = h("button", { type: "button", class: danger ? "primary danger" : "primary" }, yes);
  const cancel = h("button", { type: "button" }, "Cancel");
  const box = h(
    "div",
    { class: "confirm", role: "group", "aria-label": "Are you sure?", hidden: true },
    ask,
    more,
    agree,
    " ",
    cancel,
  );
  const close = () => {
    show(box, false);
    show(button, true);
    button.focus();
  };
  button.addEventListener("click", async () => {
    button.disabled = true;
    // It may have to be asked what would happen.
    const text = await Promise.resolve(question()).catch(({ message }) => `${label}? ${message}.`);
    button.disabled = false;
    write(ask, text);
    show(button, false);
    show(box, true);
    agree.focus();
  });
  cancel.addEventListener("click", close);
  box.addEventListener("keydown", ({ key }) => key === "Escape" && close());
  agree.addEventListener("click", async () => {
    agree.disabled = true;
    await act();
    agree.disabled = false;
    close();
  });
  return { element: h("span", { class: "asking" }, button, box), button };
}
