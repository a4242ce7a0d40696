// What goes on in the room now: its state in words and the five figures.
import { attribute, h, show, write } from "./dom.js";
import { count, duration, MINUTE, number, situation } from "./words.js";

/** Not by colour alone: each state has a shape too. */
const SHAPES = { open: "○", queueing: "◐", event: "◇", shut: "■", off: "–", bad: "▲", silent: "·" };

export function createNow() {
  const shape = h("span", { class: "shape", "aria-hidden": "true" });
  const word = h("span", { class: "word" });
  const sentence = h("span", { class: "sentence" });
  const heading = h("h1", { id: "status" }, shape, word, sentence);
  const why = h("p", { class: "why" });
  const figures = {
    active: figure("Active users"),
    slots: figure("Free slots"),
    waiting: figure("Waiting"),
    entering: figure("New this minute"),
    wait: figure("Longest wait"),
  };
  const meter = h("div", { class: "meter", "aria-hidden": "true" }, h("i"));
  figures.active.element.append(meter);
  const list = h("dl", { class: "figures" }, ...Object.values(figures).map(({ element }) => element));
  const stage = h("div", { class: "stage" });
  const element = h("section", { class: "now", "aria-labelledby": "status" }, heading, why, list, stage);

  return {
    element,
    /** Where the switches are put. */
    stage,
    /** @param {object} room @param {number} now by the server's clock */
    update(room, now) {
      const found = situation(room, now);
      attribute(element, "data-tone", found.tone);
      write(shape, SHAPES[found.tone]);
      write(word, found.word);
      write(sentence, found.sentence);
      write(why, found.why);
      show(list, !room.error);
      if (room.error) return;
      const { limits } = room;
      const active = room.estimated_total_active_users;
      figures.active.set(number(active), `of ${number(limits.total_active_users)}`);
      const part = Math.min(100, (100 * active) / Math.max(1, limits.total_active_users));
      meter.firstChild.style.width = `${part.toFixed(1)}%`;
      figures.slots.set(
        number(room.slots),
        room.suspended
          ? "everybody goes past"
          : room.observing
            ? "everybody passes"
            : room.queue_all || room.held
              ? "nobody new enters"
              : room.status === "event_prequeueing"
                ? "for when the event starts"
                : room.slots === 0
                  ? "none free"
                  : "may enter at once",
      );
      const people = (room.buckets ?? []).reduce((sum, { present }) => sum + present, 0);
      figures.waiting.set(
        number(room.estimated_queued_users),
        room.estimated_queued_users > 0
          ? people > 0
            ? `${number(people)} seen lately`
            : `in ${count(room.buckets?.length ?? 0, "bucket")}`
          : "nobody",
      );
      figures.entering.set(
        number(room.new_users_this_minute),
        `${number(room.new_users_last_minute)} last minute, limit ${number(limits.new_users_per_minute)}`,
      );
      const longest = Math.max(...(room.buckets ?? []).map((bucket) => bucket.wait_seconds ?? -1), -1);
      const isUnknown = longest < 0 && room.estimated_queued_users > 0;
      figures.wait.set(
        longest >= 0
          ? duration(longest * 1000)
          : room.max_estimated_time_minutes > 0
            ? duration(room.max_estimated_time_minutes * MINUTE)
            : isUnknown
              ? "?"
              : "0 min",
        isUnknown && longest < 0 && room.max_estimated_time_minutes === 0
          ? "not known while nobody enters"
          : longest > 0 || room.max_estimated_time_minutes > 0
            ? "for who comes now"
            : "nobody waits",
      );
    },
  };
}

function figure(label) {
  const big = h("span", { class: "big" });
  const small = h("span", { class: "small" });
  const element = h("div", { class: "figure" }, h("dt", {}, label), h("dd", {}, big, " ", small));
  return {
    element,
    set(value, note) {
      write(big, value);
      write(small, note);
    },
  };
}
