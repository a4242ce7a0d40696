// Steering: what is in force beside what is deployed, who changed it, and how to change it. Nothing is changed by one slip:
// switches and events ask once more, in place; fields are gathered and put in force together.
import { get, post, Refusal } from "./api.js";
import { attribute, h, newId, place, show, write } from "./dom.js";
import { eventTime, section } from "./tables.js";
import { count, FIELDS, moment, number, relative, title, value } from "./words.js";

/** What a field may be; the Worker says the last word. */
const NUMBERS = {
  total_active_users: { least: 1, most: 2_147_483_647, steps: true },
  new_users_per_minute: { least: 1, most: 2_147_483_647, steps: true },
  session_duration: { least: 1, most: 30 },
  refresh_interval_seconds: { least: 5, most: 60 },
};
const LONGEST_MESSAGE = 500;

/**
 * @param {object} options
 * @param {string} options.room its name
 * @param {string} options.operator name of whoever is signed in
 * @param {boolean} options.maySteer
 * @param {() => void} options.changed something was changed
 */
export function createSteering({ room: name, operator, maySteer, changed }) {
  /** The latest answer of `GET steering`. */
  let steering;
  let latest;
  let now = Date.now();
  let seen = "";
  /** What was in force when the operator began to edit. */
  let base;
  const drafts = new Map();

  const fieldViews = Object.keys(NUMBERS).map((field) => numberField(field));
  const message = messageField();
  const all = [...fieldViews, message];
  const inForce = h("p", { class: "in-force" });
  const outcome = h("p", { class: "outcome", role: "status" });
  const conflict = h("div", { class: "notice bad", role: "alert", hidden: true });
  const trouble = h("p", { class: "problem", hidden: true });
  const pending = h("p", { class: "pending" });
  const save = h("button", { class: "primary", type: "submit" }, "Put in force");
  const discard = h("button", { type: "button", onclick: () => forget() }, "Discard");
  const bar = h("div", { class: "save-bar", hidden: true }, pending, save, discard);
  const form = h(
    "form",
    {
      novalidate: true,
      onsubmit: (event) => {
        event.preventDefault();
        submit();
      },
    },
    ...all.map((view) => view.element),
    conflict,
    bar,
  );
  const locked = maySteer
    ? null
    : h(
        "p",
        { class: "notice", id: "view-only" },
        `You are signed in as ${operator} with the role view: you see everything and change nothing. A token with the role steer may.`,
      );
  const panel = section("steering", "Steering", locked, inForce, trouble, form, outcome);

  const switchOutcome = h("p", { class: "outcome", role: "status" });
  const switches = [queueAllSwitch(), suspendedSwitch()];
  const beneath = h("p");
  const attention = h(
    "div",
    { class: "notice changed beneath", hidden: true },
    beneath,
    h("button", { type: "button", onclick: () => all.find(isChangedBeneath)?.show() }, "Look at it"),
  );
  const stage = h(
    "div",
    { class: "switches" },
    attention,
    ...switches.map((view) => view.element),
    switchOutcome,
  );
  const isChangedBeneath = ({ field }) => steering?.fields[field]?.override?.deploy_changed ?? false;
  const events = eventList();

  /** Loads what is in force, and tells what has changed since. */
  async function load() {
    try {
      steering = await get("steering", { room: name });
      show(trouble, false);
    } catch ({ message: text }) {
      show(trouble, true);
      place(trouble, [
        `What is in force could not be loaded: ${text}. `,
        h("button", { type: "button", onclick: load }, "Try again"),
      ]);
    }
    render();
  }

  /**
   * @param {object} asked as `POST steering` wants it
   * @param {HTMLElement} where the outcome is told
   * @param {string} done what to say then
   * @returns {Promise<Refusal | undefined>} what the Worker had against it
   */
  async function send(asked, where, done) {
    write(where, "");
    where.classList.remove("bad");
    try {
      steering = await post("steering", { room: name }, asked);
      write(where, done);
      render();
      changed();
      return undefined;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.status !== 409) {
        where.classList.add("bad");
        write(
          where,
          error.status === 0
            ? `${error.message}: it is not known whether this was changed.`
            : error.errors.length > 0
              ? `Nothing was changed. ${error.errors.map(sentence).join(" ")}`
              : `Nothing was changed. ${error.message}.`,
        );
      }
      return error;
    }
  }

  function forget() {
    drafts.clear();
    base = undefined;
    show(conflict, false);
    for (const view of all) view.error("");
    render();
    write(outcome, "");
  }

  function edit(field, draft) {
    if (drafts.size === 0) base = steering;
    if (draft === undefined) drafts.delete(field);
    else drafts.set(field, draft);
    if (drafts.size === 0) base = undefined;
    write(outcome, "");
    render();
  }

  /** The drafts as values, or nothing where one cannot be one: it then says why. */
  function values() {
    const set = {};
    for (const view of all) {
      if (!drafts.has(view.field)) continue;
      const problem = view.problem(drafts.get(view.field));
      view.error(problem);
      if (problem) {
        view.focus();
        return undefined;
      }
      set[view.field] = view.parse(drafts.get(view.field));
    }
    return set;
  }

  async function submit() {
    const set = values();
    if (!set || Object.keys(set).length === 0) return;
    save.disabled = true;
    const said = Object.entries(set).map(
      ([field, content]) => `${FIELDS[field]} is now ${value(field, content)}`,
    );
    const refusal = await send({ set, if_version: base.version }, outcome, `${said.join(". ")}.`);
    save.disabled = false;
    render();
    if (!refusal) {
      const text = outcome.textContent;
      forget();
      write(outcome, text);
      return;
    }
    if (refusal.status === 409) return showConflict();
    for (const { field, message: text, fix } of refusal.errors) {
      const view = all.find((one) => one.field === field);
      view?.error(`${capital(text)}${fix ? `: ${fix}` : ""}.`);
    }
    all.find((view) => refusal.errors.some(({ field }) => field === view.field))?.focus();
  }

  /** Somebody else was faster: what they changed, and what can be done. */
  async function showConflict() {
    const before = base;
    await load();
    base = steering;
    const differences = differencesOf(before, steering, now);
    place(conflict, [
      h("p", {}, h("strong", {}, "Somebody else changed this room in between. Your change was not made.")),
      h("ul", {}, ...differences.map((text) => h("li", {}, text))),
      h(
        "p",
        {},
        h(
          "button",
          {
            type: "button",
            class: "primary",
            onclick: () => {
              show(conflict, false);
              submit();
            },
          },
          "Put mine in force all the same",
        ),
        " ",
        h("button", { type: "button", onclick: forget }, "Discard mine"),
      ),
    ]);
    show(conflict, true);
    show(bar, false);
    conflict.querySelector("button").focus();
  }

  function render() {
    const isKnown = Boolean(steering);
    for (const view of [...all, ...switches]) view.render(isKnown ? steering.fields[view.field] : undefined);
    events.render();
    // The switches are beside this and say it themselves.
    const changedBeneath = all.filter(isChangedBeneath);
    show(attention, changedBeneath.length > 0);
    write(
      beneath,
      `▲ A deploy has changed ${changedBeneath.map(({ field }) => FIELDS[field]).join(", ")} beneath what is steered.`,
    );
    // What to do about a conflict is asked in its own place.
    show(bar, drafts.size > 0 && conflict.hidden);
    write(pending, `${count(drafts.size, "change is", "changes are")} not in force yet.`);
    const { colos_in_force: reached = 0, colos = 0, version } = latest?.steering ?? steering ?? {};
    const isAll = reached >= colos;
    inForce.classList.toggle("spreading", !isAll);
    write(
      inForce,
      !isKnown
        ? ""
        : colos === 0
          ? `Version ${version}: no data center is active, it is in force for the next visitor.`
          : isAll
            ? `✓ In force in ${number(reached)} of ${count(colos, "colo")} (version ${version})`
            : `… In force in ${number(reached)} of ${count(colos, "colo")} (version ${version})`,
    );
  }

  /** What a field's value was deployed as, and what to do about it. */
  function origins(field) {
    const text = h("span");
    const clear = h("button", {
      type: "button",
      class: "link",
      disabled: !maySteer,
      onclick: () => send({ clear: [field] }, outcome, `${FIELDS[field]} is as deployed again.`),
    });
    const meta = h("p", { class: "meta", id: newId("meta") }, text, " ", clear);
    const notice = h("div", { class: "notice changed", hidden: true });
    return {
      meta,
      notice,
      update(state) {
        const override = state?.override;
        const deployed = value(field, state?.deployed);
        write(
          text,
          !state
            ? ""
            : override
              ? `Deployed: ${deployed}. Steered by ${override.by}, ${relative(override.at, now)}.`
              : "As deployed.",
        );
        show(clear, Boolean(override) && !override.deploy_changed);
        write(clear, `Back to the deployed ${field === "message" ? "one" : deployed}`);
        const isChanged = Boolean(override?.deploy_changed);
        show(notice, isChanged);
        const key = JSON.stringify(override ?? null);
        if (!isChanged || notice.dataset.key === key) return;
        notice.dataset.key = key;
        const steered = value(field, override.value);
        place(notice, [
          h(
            "p",
            {},
            `▲ A deploy has changed this from ${value(field, override.deployed_then)} to ${deployed} beneath. In force is still ${steered}, by ${override.by}.`,
          ),
          h(
            "button",
            {
              type: "button",
              disabled: !maySteer,
              onclick: () => send({ keep: [field] }, outcome, `${FIELDS[field]} stays ${steered}.`),
            },
            `Keep ${steered}`,
          ),
          " ",
          h(
            "button",
            {
              type: "button",
              disabled: !maySteer,
              onclick: () => send({ clear: [field] }, outcome, `${FIELDS[field]} is as deployed again.`),
            },
            `Use the deployed ${deployed}`,
          ),
        ]);
      },
    };
  }

  function entry(field, input, { parse, problem, textOf }, extras = {}) {
    const id = newId(field);
    const from = origins(field);
    const error = h("p", { class: "error", id: newId("error"), hidden: true });
    attribute(input, "id", id);
    attribute(input, "disabled", !maySteer);
    attribute(input, "aria-describedby", `${from.meta.id} ${error.id}${maySteer ? "" : " view-only"}`);
    const tell = (text) => {
      write(error, text);
      show(error, text !== "");
      attribute(input, "aria-invalid", text === "" ? false : "true");
    };
    const onInput = () => {
      const current = steering?.fields[field]?.value;
      edit(field, input.value === textOf(current) ? undefined : input.value);
      tell(drafts.has(field) ? problem(input.value) : "");
    };
    input.addEventListener("input", onInput);
    const element = h(
      "div",
      { class: "field" },
      h("label", { for: id }, FIELDS[field]),
      ...(extras.before ?? []),
      extras.around?.(input) ?? input,
      error,
      from.meta,
      from.notice,
      ...(extras.after ?? []),
    );
    return {
      field,
      element,
      parse,
      problem,
      error: tell,
      focus: () => input.focus(),
      show: () => {
        from.notice.scrollIntoView({ block: "center" });
        from.notice.querySelector("button:not(:disabled)")?.focus({ preventScroll: true });
      },
      onInput,
      render(state) {
        from.update(state);
        if (!drafts.has(field) && state && input.value !== textOf(state.value))
          input.value = textOf(state.value);
        element.classList.toggle("draft", drafts.has(field));
        element.classList.toggle("steered", Boolean(state?.override));
        attribute(input, "disabled", !maySteer || !state);
        extras.render?.(state);
      },
    };
  }

  function numberField(field) {
    const { least, most, steps } = NUMBERS[field];
    const input = h("input", { type: "text", inputmode: "numeric", autocomplete: "off", size: 9 });
    const parse = (text) => Number(text.replace(/[\s,_']/g, ""));
    const problem = (text) => {
      const content = parse(text);
      if (text.trim() === "" || !Number.isInteger(content)) return "Must be a whole number.";
      if (content < least || content > most) return `Must be from ${number(least)} to ${number(most)}.`;
      return "";
    };
    const hint = h("p", { class: "hint" });
    let view;
    const steppers = [];
    const step = (factor, label) => {
      const button = h(
        "button",
        {
          type: "button",
          disabled: !maySteer,
          "aria-label": `${FIELDS[field]} ${label}`,
          onclick: () => {
            const content = parse(input.value);
            if (!Number.isFinite(content)) return;
            input.value = String(Math.min(most, Math.max(least, Math.round(content * factor))));
            view.onInput();
          },
        },
        label,
      );
      steppers.push(button);
      return button;
    };
    view = entry(
      field,
      input,
      { parse, problem, textOf: (content) => (content === undefined ? "" : String(content)) },
      {
        around: (content) =>
          h(
            "div",
            { class: "entry" },
            content,
            ...(steps ? [step(0.5, "½"), step(0.9, "−10 %"), step(1.1, "+10 %")] : []),
          ),
        after: [hint],
        render(state) {
          for (const button of steppers) attribute(button, "disabled", !maySteer || !state);
          const draft = drafts.get(field);
          write(hint, draft === undefined || problem(draft) ? following(field) : effect(field, parse(draft)));
        },
      },
    );
    return view;
  }

  /** Where limits follow the origin, another one than that is in force. */
  function following(field) {
    const limit = latest?.limits?.[field];
    const set = steering?.fields[field]?.value;
    return limit !== undefined && set !== undefined && limit !== set
      ? `In force is ${number(limit)} now: the limits follow the origin.`
      : "";
  }

  /** What a limit would do. */
  function effect(field, content) {
    if (field !== "total_active_users" || !latest || latest.error) return "";
    const active = latest.estimated_total_active_users;
    if (content < active)
      return `${number(active)} are active. Nobody is thrown out: new users enter when ${number(active - content + 1)} have left.`;
    const waiting = latest.estimated_queued_users;
    const free = content - active;
    return waiting > 0
      ? `Makes room for ${number(Math.min(free, waiting))} of ${number(waiting)} who wait, at the rate of the room.`
      : "";
  }

  function messageField() {
    const input = h("textarea", { rows: 2, autocomplete: "off" });
    const left = h("span", { class: "left" });
    const seenAs = h("blockquote", { class: "said" });
    const parse = (text) => text.replace(/\s+/g, " ").trim();
    const problem = (text) =>
      [...parse(text)].length > LONGEST_MESSAGE ? `Must have at most ${LONGEST_MESSAGE} characters.` : "";
    const preview = h(
      "div",
      { class: "as-seen", hidden: true },
      h("p", { class: "meta" }, "Visitors will read:"),
      seenAs,
    );
    return entry(
      "message",
      input,
      { parse, problem, textOf: (content) => content ?? "" },
      {
        after: [left, preview],
        render() {
          const draft = drafts.get("message");
          write(
            left,
            draft === undefined
              ? ""
              : `${[...parse(draft)].length} of ${LONGEST_MESSAGE} characters, one line`,
          );
          show(preview, draft !== undefined);
          write(seenAs, draft === undefined ? "" : parse(draft) || "(no message)");
        },
      },
    );
  }

  /** A button that asks once more, in place. The question takes the focus; Escape takes it back. */
  function asking({ label, question, yes, act, danger = false, describe }) {
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
      agree,
      " ",
      cancel,
    );
    const close = () => {
      show(box, false);
      show(button, true);
      button.focus();
    };
    button.addEventListener("click", () => {
      write(ask, question());
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

  /** A switch, and how it came to be where it is. */
  function flip(field, { on, off, note }) {
    const from = origins(field);
    const state = h("p", { class: "state" });
    const act = async (content) => {
      const refusal = await send(
        // Where it was deployed so, nothing has to stand above it.
        {
          ...(steering?.fields[field].deployed === content
            ? { clear: [field] }
            : { set: { [field]: content } }),
          if_version: steering?.version,
        },
        switchOutcome,
        content ? on.done : off.done,
      );
      if (refusal?.status !== 409) return;
      const before = steering;
      await load();
      switchOutcome.classList.add("bad");
      write(
        switchOutcome,
        `Nothing was changed: somebody else was faster. ${differencesOf(before, steering, now).join(". ")}. Look, and try again.`,
      );
    };
    const turnOn = asking({
      label: on.label,
      question: on.question,
      yes: on.yes,
      act: () => act(true),
      danger: true,
    });
    const turnOff = asking({ label: off.label, question: off.question, yes: off.yes, act: () => act(false) });
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
      field,
      element,
      render(content) {
        from.update(content);
        const isOn = Boolean(content?.value);
        write(state, content ? (isOn ? note.on : note.off) : "");
        element.classList.toggle("on", isOn);
        show(turnOn.element, !isOn);
        show(turnOff.element, isOn);
        for (const { button } of [turnOn, turnOff]) attribute(button, "disabled", !maySteer || !content);
      },
    };
  }

  function queueAllSwitch() {
    const inside = () =>
      count(latest?.estimated_total_active_users ?? 0, "active user stays", "active users stay");
    return flip("queue_all", {
      on: {
        label: "Queue everybody",
        question: () =>
          `From now on nobody new enters ${name}; ${inside()} in, everybody else waits. Queue everybody?`,
        yes: "Yes, queue everybody",
        done: "Everybody is queued.",
      },
      off: {
        label: "Let people in again",
        question: () =>
          `${count(latest?.estimated_queued_users ?? 0, "person waits", "people wait")} and will enter by their turn, within the limits. Let them in?`,
        yes: "Yes, let them in",
        done: "People enter again.",
      },
      note: { on: "■ Everybody is queued", off: "○ New users may enter" },
    });
  }

  function suspendedSwitch() {
    return flip("suspended", {
      on: {
        label: "Suspend the room",
        question: () =>
          `The room is switched off: everybody, also who waits, goes straight to the origin, without any limit. Suspend ${name}?`,
        yes: "Yes, suspend it",
        done: "The room is suspended.",
      },
      off: {
        label: "Switch the room on",
        question: () => `The room counts visitors again and holds its limits. Switch ${name} on?`,
        yes: "Yes, switch it on",
        done: "The room is on.",
      },
      note: { on: "– The room is suspended", off: "○ The room is on" },
    });
  }

  function eventList() {
    const list = h("ul", { class: "events" });
    const empty = h("p", { class: "quiet" }, "This room has no events. docs/events.md says how to plan one.");
    const told = h("p", { class: "outcome", role: "status" });
    const element = section("events", "Events", empty, list, told);
    const views = new Map();
    const make = (event) => {
      const { name: title } = event;
      const head = h("p", { class: "event-head" }, h("b", {}, title), " ");
      const phase = h("span", { class: "phase" });
      head.append(phase);
      const times = h("p", { class: "meta" });
      const steered = h("p", { class: "meta" });
      const act = (what, done) => send({ events: { [title]: what } }, told, done);
      const start = asking({
        label: "Start now",
        question: () =>
          `Start ${title} now? ${number(latest?.estimated_queued_users ?? 0)} people wait; they enter by their turn.`,
        yes: "Yes, start it",
        act: () => act("start", `${title} has started.`),
      });
      const end = asking({
        label: "End now",
        question: () => `End ${title} now? The room goes on as deployed, with its own limits.`,
        yes: "Yes, end it",
        act: () => act("end", `${title} has ended.`),
      });
      const clear = h(
        "button",
        {
          type: "button",
          class: "link",
          disabled: !maySteer,
          onclick: () => act("clear", `${title} is on its schedule again.`),
        },
        "Back to the schedule",
      );
      const item = h("li", {}, head, times, steered, start.element, " ", end.element, " ", clear);
      return {
        element: item,
        update(one) {
          write(phase, one.phase);
          attribute(phase, "data-phase", one.phase);
          write(times, `${eventTime(one.start, now)} to ${eventTime(one.end, now)}`);
          show(steered, one.steered);
          write(
            steered,
            one.steered
              ? `Steered${one.by ? ` by ${one.by}, ${relative(one.at, now)}` : ""}. Planned: ${moment(one.deployed_start, now)} to ${moment(one.deployed_end, now)}.`
              : "",
          );
          show(start.element, ["upcoming", "prequeueing"].includes(one.phase));
          show(end.element, ["prequeueing", "active"].includes(one.phase));
          show(clear, one.steered);
        },
      };
    };
    return {
      element,
      render() {
        const known = steering?.events ?? [];
        show(empty, known.length === 0);
        for (const event of known) {
          if (!views.has(event.name)) views.set(event.name, make(event));
          views.get(event.name).update(event);
        }
        place(
          list,
          known.map(({ name: title }) => views.get(title).element),
        );
      },
    };
  }

  return {
    panel,
    stage,
    events: events.element,
    load,
    /** The room as it is now. */
    update(room, time) {
      latest = room;
      now = time;
      // Somebody steered, a deploy came, an event went on: what is in force has to be asked for.
      const key = JSON.stringify([
        room.steering?.version,
        room.steering?.overrides,
        room.deployed,
        room.events,
        room.error,
      ]);
      if (key !== seen) {
        seen = key;
        load();
      } else render();
    },
  };
}

/** What the Worker has against a value. */
const sentence = ({ field, message, fix }) => `${title(field)} ${message}${fix ? `: ${fix}` : ""}.`;
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** What differs between two answers of `GET steering`, as sentences. */
export function differencesOf(before, after, now) {
  const found = Object.keys(FIELDS).flatMap((field) => {
    const [old, current] = [before?.fields?.[field], after?.fields?.[field]];
    if (!old || !current || old.value === current.value) return [];
    const who = current.override;
    const how = who ? `${who.by} set it, ${relative(who.at, now)}` : "it is as deployed";
    return [`${FIELDS[field]}: ${value(field, current.value)}, it was ${value(field, old.value)} (${how})`];
  });
  for (const event of after?.events ?? []) {
    const old = before?.events?.find(({ name }) => name === event.name);
    if (old && (old.start !== event.start || old.end !== event.end))
      found.push(
        `Event ${event.name} was ${event.steered ? `steered by ${event.by}` : "put back on its schedule"}`,
      );
  }
  return found.length > 0 ? found : ["Nothing that is shown here has another value now"];
}
