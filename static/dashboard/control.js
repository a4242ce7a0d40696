// What is in force in a room: asked for, and changed.
import { get, post, Refusal } from "./api.js";
import { write } from "./dom.js";
import { FIELDS, relative, title, value } from "./words.js";

/** What is in force in a room, and how to change it. Whoever shows it listens. */
export class Control {
  /** The latest answer of `GET steering`. */
  steering;
  /** The room's part of the latest status. */
  latest;
  now = Date.now();
  /** Why the latest answer could not be had. */
  problem = "";
  #seen = "";
  #listeners = [];
  #changed;

  /**
   * @param {object} options
   * @param {string} options.room its name
   * @param {boolean} options.maySteer
   * @param {() => void} options.changed something was changed
   */
  constructor({ room, maySteer, changed }) {
    this.name = room;
    this.maySteer = maySteer;
    this.#changed = changed;
  }

  /** @param {() => void} listener is called whenever there may be something else to show */
  listen(listener) {
    this.#listeners.push(listener);
  }

  tell() {
    for (const listener of this.#listeners) listener();
  }

  /** What is known of a field; nothing before the first answer. */
  field(field) {
    return this.steering?.fields[field];
  }

  /** Loads what is in force, and tells what has changed since. */
  async load() {
    try {
      const loaded = await get("steering", { room: this.name });
      // What was asked before the last change may be answered after it.
      if (!(loaded.version < this.steering?.version)) this.steering = loaded;
      this.problem = "";
    } catch ({ message }) {
      this.problem = message;
    }
    this.tell();
  }

  /**
   * @param {object} asked as `POST steering` wants it
   * @param {HTMLElement} where the outcome is told
   * @param {string} done what to say then
   * @returns {Promise<Refusal | undefined>} what the Worker had against it
   */
  async send(asked, where, done) {
    write(where, "");
    where.classList.remove("bad");
    try {
      this.steering = await post("steering", { room: this.name }, asked);
      write(where, done);
      this.tell();
      this.#changed();
      return undefined;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (error.status !== 409) {
        where.classList.add("bad");
        write(where, refused(error));
      }
      return error;
    }
  }

  /** The room as it is now. */
  update(room, time) {
    this.latest = room;
    this.now = time;
    // Somebody steered, a deploy came, an event went on: what is in force has to be asked for.
    const key = JSON.stringify([
      room.steering?.version,
      room.steering?.overrides,
      room.steering?.unread,
      room.deployed,
      room.events,
      room.error,
    ]);
    if (key !== this.#seen) {
      this.#seen = key;
      this.load();
    } else this.tell();
  }
}

/** What the Worker has against a value. */
const sentence = ({ field, message, fix }) => `${title(field)} ${message}${fix ? `: ${fix}` : ""}.`;

/** That nothing was changed, and why. */
function refused(error) {
  if (error.status === 0) return `${error.message}: it is not known whether this was changed.`;
  return error.errors.length > 0
    ? `Nothing was changed. ${error.errors.map(sentence).join(" ")}`
    : `Nothing was changed. ${error.message}.`;
}

/** The fields that can be steered, in the order in which they are shown. */
export function shown(steering) {
  const known = Object.keys(FIELDS);
  const place = (field) => (known.includes(field) ? known.indexOf(field) : known.length);
  return Object.keys(steering?.fields ?? {}).sort((one, other) => place(one) - place(other));
}

/** What differs between two answers of `GET steering`, as sentences. */
export function differencesOf(before, after, now) {
  const found = shown(after).flatMap((field) => {
    const [old, current] = [before?.fields?.[field], after?.fields?.[field]];
    if (!old || !current || old.value === current.value) return [];
    const who = current.override;
    const how = who ? `${who.by} set it, ${relative(who.at, now)}` : "it is as deployed";
    return [`${title(field)}: ${value(field, current.value)}, it was ${value(field, old.value)} (${how})`];
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
