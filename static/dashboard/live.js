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
  let socket;
  let isOpen = false;
  let isOver = false;
  let isPaused = false;
  let failures = 0;
  let heardAt = 0;
  let roomAt = 0;
  let polling = false;
  const timers = { retry: 0, poll: 0, hidden: 0, slow: 0 };

  const takeRoom = (room, now) => {
    roomAt = Date.now();
    told.room(room, now);
  };

  function connect() {
    clearTimeout(timers.retry);
    if (isOver || isPaused) return;
    let mine;
    try {
      mine = new WebSocket(liveAddress(name));
    } catch {
      return failed();
    }
    socket?.close();
    socket = mine;
    heardAt = Date.now();
    // Something on the way may neither let it through nor refuse it.
    clearTimeout(timers.slow);
    timers.slow = setTimeout(() => !isOpen && !polling && poll(), SLOW_MS);
    mine.onopen = () => {
      heardAt = Date.now();
    };
    mine.onmessage = ({ data }) => {
      heardAt = Date.now();
      if (mine !== socket || data === "pong") return;
      const message = read(data);
      if (message?.type === "room") {
        if (!isOpen) {
          isOpen = true;
          failures = 0;
          clearTimeout(timers.poll);
          polling = false;
        }
        told.mode("live", "");
        takeRoom(message.room, message.now);
      } else if (message?.type === "news") told.news(message.news);
    };
    mine.onclose = () => {
      if (mine === socket) failed();
    };
  }

  function failed() {
    socket = undefined;
    isOpen = false;
    if (isOver || isPaused) return;
    failures += 1;
    const pause = Math.min(LONGEST_PAUSE_MS, 1_000 * 2 ** (failures - 1));
    // Spread out: not all dashboards come back at the same moment.
    timers.retry = setTimeout(connect, pause * (0.7 + 0.6 * Math.random()));
    if (!polling) poll();
  }

  async function ask() {
    const { rooms, now } = await get("status", { room: name });
    const room = rooms.find((one) => one.name === name);
    if (!isOver && room) takeRoom(room, now);
  }

  /** Meanwhile the connection may have come back, or nobody may look any more. */
  const isWanted = () => !isOver && !isPaused && !isOpen;

  async function poll() {
    clearTimeout(timers.poll);
    if (!isWanted()) return;
    polling = true;
    try {
      await ask();
      if (isWanted()) told.mode("polling", "");
    } catch ({ message, status }) {
      if (isWanted()) told.mode("lost", message);
      if (status === 401) return stop();
    }
    if (isWanted()) timers.poll = setTimeout(poll, POLL_MS);
    else polling = false;
  }

  const watch = setInterval(() => {
    if (!isOpen || isPaused) return;
    const now = Date.now();
    if (now - heardAt > DEAF_MS) {
      const deaf = socket;
      failed();
      deaf?.close();
      return;
    }
    if (socket?.readyState === WebSocket.OPEN) socket.send("ping");
    if (now - roomAt > QUIET_MS) ask().catch(() => {});
  }, PING_MS);

  function pause() {
    isPaused = true;
    drop();
    told.mode("paused", "");
  }

  function drop() {
    clearTimeout(timers.retry);
    clearTimeout(timers.poll);
    clearTimeout(timers.slow);
    polling = false;
    isOpen = false;
    const old = socket;
    socket = undefined;
    old?.close();
  }

  function onVisibility() {
    clearTimeout(timers.hidden);
    if (document.hidden) timers.hidden = setTimeout(pause, HIDDEN_MS);
    else if (isPaused) {
      isPaused = false;
      failures = 0;
      told.mode("connecting", "");
      connect();
    }
  }
  document.addEventListener("visibilitychange", onVisibility);
  // The network is back: no need to wait for the next attempt.
  const onOnline = () => !isOpen && !isPaused && connect();
  addEventListener("online", onOnline);

  function stop() {
    isOver = true;
    clearInterval(watch);
    clearTimeout(timers.hidden);
    document.removeEventListener("visibilitychange", onVisibility);
    removeEventListener("online", onOnline);
    drop();
  }

  told.mode("connecting", "");
  connect();
  return stop;
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
