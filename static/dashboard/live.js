// What goes on in a room, as it happens: over a WebSocket, or by asking every two seconds where there is none.
import { get, liveAddress } from "./api.js";

const POLL_MS = 2_000;
/** Timeout of opening a WebSocket. */
const SLOW_MS = 4_000;
const PING_MS = 15_000;
/** A connection that is silent for this time is dead. */
const DEAF_MS = 35_000;
/** Nothing changes in a quiet room, so nothing comes. It is asked all the same at this interval. */
const QUIET_MS = 60_000;
const LONGEST_PAUSE_MS = 30_000;
/** Nobody looks at a tab that is hidden for this time. */
const HIDDEN_MS = 5 * 60_000;

/**
 * @typedef {"connecting" | "live" | "polling" | "lost" | "paused"} Mode
 * @param {string} name of the room
 * @param {{ room: (room: object, now: number) => void, news: (news: object[]) => void, mode: (mode: Mode, reason: string) => void }} told
 * @returns {() => void} ends it
 */
export function watchRoom(name, told) {
  const watch = new Watch(name, told);
  watch.start();
  return () => watch.stop();
}

class Watch {
  #name;
  #told;
  #socket;
  #isOpen = false;
  #isOver = false;
  #isPaused = false;
  #failures = 0;
  #heardAt = 0;
  #roomAt = 0;
  #polling = false;
  #timers = { retry: 0, poll: 0, hidden: 0, slow: 0, ping: 0 };

  constructor(name, told) {
    this.#name = name;
    this.#told = told;
  }

  start() {
    this.#timers.ping = setInterval(() => this.#ping(), PING_MS);
    document.addEventListener("visibilitychange", this.#onVisibility);
    addEventListener("online", this.#onOnline);
    this.#told.mode("connecting", "");
    this.#connect();
  }

  stop() {
    this.#isOver = true;
    clearInterval(this.#timers.ping);
    clearTimeout(this.#timers.hidden);
    document.removeEventListener("visibilitychange", this.#onVisibility);
    removeEventListener("online", this.#onOnline);
    this.#drop();
  }

  #takeRoom(room, now) {
    this.#roomAt = Date.now();
    this.#told.room(room, now);
  }

  #connect() {
    clearTimeout(this.#timers.retry);
    if (this.#isOver || this.#isPaused) return;
    let mine;
    try {
      mine = new WebSocket(liveAddress(this.#name));
    } catch {
      this.#failed();
      return;
    }
    this.#socket?.close();
    this.#socket = mine;
    this.#heardAt = Date.now();
    // Something on the way may neither let it through nor refuse it.
    clearTimeout(this.#timers.slow);
    this.#timers.slow = setTimeout(() => !this.#isOpen && !this.#polling && this.#poll(), SLOW_MS);
    mine.onopen = () => {
      this.#heardAt = Date.now();
    };
    mine.onmessage = ({ data }) => {
      this.#heardAt = Date.now();
      if (mine === this.#socket && data !== "pong") this.#take(read(data));
    };
    mine.onclose = () => {
      if (mine === this.#socket) this.#failed();
    };
  }

  #take(message) {
    if (message?.type === "room") {
      if (!this.#isOpen) {
        this.#isOpen = true;
        this.#failures = 0;
        clearTimeout(this.#timers.poll);
        this.#polling = false;
      }
      this.#told.mode("live", "");
      this.#takeRoom(message.room, message.now);
    } else if (message?.type === "news") this.#told.news(message.news);
  }

  #failed() {
    this.#socket = undefined;
    this.#isOpen = false;
    if (this.#isOver || this.#isPaused) return;
    this.#failures += 1;
    const pause = Math.min(LONGEST_PAUSE_MS, 1_000 * 2 ** (this.#failures - 1));
    // Spread out: not all dashboards come back at the same moment.
    this.#timers.retry = setTimeout(() => this.#connect(), pause * (0.7 + 0.6 * Math.random()));
    if (!this.#polling) this.#poll();
  }

  async #ask() {
    const { rooms, now } = await get("status", { room: this.#name });
    const room = rooms.find((one) => one.name === this.#name);
    if (!this.#isOver && room) this.#takeRoom(room, now);
  }

  /** Meanwhile the connection may have come back, or nobody may look any more. */
  #isWanted() {
    return !this.#isOver && !this.#isPaused && !this.#isOpen;
  }

  async #poll() {
    clearTimeout(this.#timers.poll);
    if (!this.#isWanted()) return;
    this.#polling = true;
    try {
      await this.#ask();
      if (this.#isWanted()) this.#told.mode("polling", "");
    } catch ({ message, status }) {
      if (this.#isWanted()) this.#told.mode("lost", message);
      if (status === 401) {
        this.stop();
        return;
      }
    }
    if (this.#isWanted()) this.#timers.poll = setTimeout(() => this.#poll(), POLL_MS);
    else this.#polling = false;
  }

  #ping() {
    if (!this.#isOpen || this.#isPaused) return;
    const now = Date.now();
    if (now - this.#heardAt > DEAF_MS) {
      const deaf = this.#socket;
      this.#failed();
      deaf?.close();
      return;
    }
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send("ping");
    if (now - this.#roomAt > QUIET_MS) this.#ask().catch(() => {});
  }

  #pause() {
    this.#isPaused = true;
    this.#drop();
    this.#told.mode("paused", "");
  }

  #drop() {
    clearTimeout(this.#timers.retry);
    clearTimeout(this.#timers.poll);
    clearTimeout(this.#timers.slow);
    this.#polling = false;
    this.#isOpen = false;
    const old = this.#socket;
    this.#socket = undefined;
    old?.close();
  }

  #onVisibility = () => {
    clearTimeout(this.#timers.hidden);
    if (document.hidden) this.#timers.hidden = setTimeout(() => this.#pause(), HIDDEN_MS);
    else if (this.#isPaused) {
      this.#isPaused = false;
      this.#failures = 0;
      this.#told.mode("connecting", "");
      this.#connect();
    }
  };

  /** The network is back: no need to wait for the next attempt. */
  #onOnline = () => {
    if (!this.#isOpen && !this.#isPaused) this.#connect();
  };
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
