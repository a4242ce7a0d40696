// The waiting page's script: asks for the visitor's turn again and again, and shows what comes of it. The build embeds it
// in the page as one function, so nothing here but `anteroomTurnstile` is global.

/* global MAY_CONFIRM, MAY_PUSH: constants of the build, which leaves out what a room has no use for. */

const LONGEST_PAUSE_SECONDS = 60;
const LONGEST_CHECK_SECONDS = 10;
const SIGNAL_MS = 1200;

const element = (id) => document.getElementById(id);
const room = element("room");
const language = document.documentElement.lang;
const { words, times, ...first } = JSON.parse(room.dataset.words);

let { refreshSeconds } = first;
let lastCheckIn = Date.now();
let checkedInAt = first.now;
let failures = 0;
let checking = false;
let entering = false;
// The page leaves by itself: its visitor does not close it.
let going = false;
// What the Turnstile widget gives goes along with a check-in, at once if none is under way.
let token = "";

// Words and times

// Writing the same text again would make a screen reader say it again.
function write(id, text) {
  if (element(id).textContent !== text) element(id).textContent = text;
}

function fill(text, name, value) {
  return text.replace(`{${name}}`, value);
}

// As the Worker words it.
function duration(seconds) {
  const inMinutes = seconds === 60 || seconds >= 120;
  const [unit, size] = seconds >= 10_800 ? ["hour", 3_600] : inMinutes ? ["minute", 60] : ["second", 1];
  const style = { style: "unit", unit, unitDisplay: "long" };
  return new Intl.NumberFormat(language, style).format(Math.floor(seconds / size));
}

// A time of day, and of which zone: the visitor's clock may not be where the visitor is.
const CLOCK = { hour: "numeric", minute: "2-digit", timeZoneName: "short" };

function showTime() {
  const time = element("checked");
  const at = new Date(lastCheckIn);
  time.dateTime = at.toISOString();
  time.textContent = fill(
    times.lastCheck,
    "time",
    at.toLocaleTimeString(language, { ...CLOCK, second: "2-digit" }),
  );
}

function showInterval() {
  write("often", fill(times.checksItself, "duration", duration(refreshSeconds)));
}

// When the visitor may expect to enter, by the visitor's own clock.
function showExpected(range) {
  if (!range) return write("expected", "");
  const [from, to] = range.map((seconds) => new Date(Date.now() + seconds * 1000));
  const isToday = to.toDateString() === new Date().toDateString();
  const style = { ...CLOCK, ...(!isToday && { month: "long", day: "numeric" }) };
  const format = new Intl.DateTimeFormat(language, style);
  const time = format.formatRange ? format.formatRange(from, to) : format.format(to);
  write("expected", fill(times.expected, "time", time));
}

// The countdown to the beginning of an event

let startsAt = 0;
let countdown = 0;

function tick() {
  const left = Math.max(0, Math.ceil((startsAt - Date.now()) / 1000));
  const digits = (number) => number.toLocaleString(language, { minimumIntegerDigits: 2, useGrouping: false });
  const parts = [Math.floor(left / 3600), Math.floor(left / 60) % 60, left % 60];
  element("countdown").textContent = parts.map(digits).join(":");
}

function showCountdown(seconds) {
  clearInterval(countdown);
  element("begin").hidden = seconds === null;
  if (seconds === null) return;
  startsAt = Date.now() + seconds * 1000;
  const style = { ...CLOCK, month: "long", day: "numeric" };
  // To the minute: what comes of each answer differs by what it took to come.
  const start = new Date(Math.round(startsAt / 60000) * 60000);
  write("start", fill(times.prequeueStart, "time", start.toLocaleString(language, style)));
  countdown = setInterval(tick, 1000);
  tick();
}

// The pause until the next check-in, and the line that shows it

let timer = 0;
let movement;
let moves = true;

// Each pause starts from an answer, not from the timer before it: Chromium wakes a tab in the background once a minute
// for timers that start one another, but within a second for these.
function checkInAfter(seconds) {
  clearTimeout(timer);
  movement?.cancel();
  const checks = seconds > 0;
  element("line").hidden = !checks || !moves;
  element("often").hidden = element("still").hidden = !checks;
  if (!checks) return;
  timer = setTimeout(checkIn, seconds * 1000);
  movement = element("line").firstChild.animate?.([{ transform: "scaleX(0)" }, { transform: "scaleX(1)" }], {
    duration: seconds * 1000,
    fill: "forwards",
  });
  if (!moves) movement?.cancel();
}

function toggleMovement() {
  moves = !moves;
  write("still", moves ? words.stopAnimation : words.showAnimation);
  element("line").hidden = !moves;
  if (!moves) movement?.cancel();
}

// What an answer shows

let shownSeconds = first.waitSeconds ?? NaN;
let riseSeen = false;

function show(answer) {
  refreshSeconds = answer.refreshSeconds;
  if (refreshSeconds > 0) {
    showInterval();
    write("kept", fill(times.keptFor, "duration", duration(answer.keptSeconds)));
  }
  // Only a check that came without a ticket can tell: once refused, they are refused.
  if (answer.cookieless) element("cookies").hidden = false;
  if (answer.continueLink) element("continue").href = answer.continueLink;
  element("message").hidden = !answer.message;
  write("message-text", answer.message);
  const progress = element("progress");
  progress.hidden = answer.progress === null;
  // Answers may overtake each other.
  if (answer.progress !== null) progress.value = Math.max(progress.value, answer.progress);
  if (isConfirmed(answer.waitSeconds)) showWait(answer);
}

// A wait that rises for one answer only is noise of the estimate: a rise is shown when a second answer confirms it.
// (Nothing is greater than NaN, which stands for a wait that is not known.)
function isConfirmed(waitSeconds) {
  const rises = waitSeconds > shownSeconds;
  const confirmed = !rises || riseSeen;
  riseSeen = rises;
  return confirmed;
}

function showWait(answer) {
  shownSeconds = answer.waitKnown ? answer.waitSeconds : NaN;
  room.dataset.state = answer.door;
  document.title = answer.title;
  write("label", answer.waitLabel);
  write("wait", answer.waitText);
  write("note", answer.waitNote);
  write("people", answer.peopleText);
  showExpected(answer.expectedIn);
  showCountdown(answer.startsIn);
}

// Asks for the page itself, not for what it shows. With a fragment in the address, `replace` would only scroll.
function go() {
  going = true;
  if (location.href.includes("#")) location.reload();
  else location.replace(location.href);
}

// The signal that it is the visitor's turn, for whoever has asked for one

let sound;
let wantsSignal = false;

// Browsers let a page sound and notify only after a click. One without sound or notifications is asked all the same:
// the other one, or a phone's vibration, is left.
async function tellMe() {
  sound ??= globalThis.AudioContext && new AudioContext();
  element("tell").hidden = true;
  write("tells", words.tellsMe);
  wantsSignal = true;
  const { Notification } = globalThis;
  if (Notification?.permission === "default") await Notification.requestPermission();
  if (MAY_PUSH && first.push && Notification?.permission === "granted") subscribe().catch(() => {});
}

// Push messages, for whoever closes the page

let subscription;
let isBrought = false;

async function subscribe() {
  // It serves nothing but our own paths: what the site's own service workers do is their matter.
  const workers = await navigator.serviceWorker.register("/__anteroom/push.js", { scope: "/__anteroom/" });
  const worker = workers.installing ?? workers.waiting ?? workers.active;
  await new Promise((resolve) => {
    const look = () => worker.state === "activated" && resolve();
    worker.addEventListener("statechange", look);
    look();
  });
  subscription = await workers.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: first.push,
  });
  checkIn();
}

// Between two check-ins: the ticket that comes back is the newest one.
async function bringSubscription() {
  if (!subscription || isBrought) return;
  const response = await fetch(location.href, {
    method: "POST",
    headers: { "content-type": "application/x-anteroom-push" },
    body: JSON.stringify(subscription),
    credentials: "same-origin",
    redirect: "manual",
    signal: AbortSignal.timeout?.(LONGEST_CHECK_SECONDS * 1000),
  }).catch(() => {});
  // What is refused is not brought again.
  isBrought = response?.status < 500;
  if (response?.status === 204) write("tells", words.tellsByPush);
}

// Two soft notes.
function play() {
  if (!sound) return;
  sound.resume();
  for (const [start, frequency] of [
    [0, 523],
    [0.3, 784],
  ]) {
    const note = new OscillatorNode(sound, { frequency });
    const volume = new GainNode(sound, { gain: 0 });
    const at = sound.currentTime + start;
    volume.gain.linearRampToValueAtTime(0.2, at + 0.04);
    volume.gain.exponentialRampToValueAtTime(0.001, at + 0.8);
    note.connect(volume).connect(sound.destination);
    note.start(at);
    note.stop(at + 0.9);
  }
}

function signal(turn) {
  play();
  navigator.vibrate?.([200, 100, 200]);
  if (globalThis.Notification?.permission !== "granted") return;
  try {
    const notification = new Notification(turn, { body: document.title, lang: language, tag: "anteroom" });
    notification.onclick = () => focus();
  } catch {
    // Chromium on Android lets only service workers notify.
  }
}

function enter() {
  entering = true;
  const turn = showTurn(words.turnNote);
  if (!wantsSignal) return go();
  signal(turn);
  // What sounds ends with the page.
  setTimeout(go, SIGNAL_MS);
}

// It is the turn of a visitor who has to say so, within some seconds.
let hasTurn = false;

function offer({ seconds, note }) {
  const turn = showTurn(note);
  showCountdown(seconds);
  write("start", "");
  if (!hasTurn && wantsSignal) signal(turn);
  hasTurn = true;
  // Then it is over.
  clearTimeout(timer);
  timer = setTimeout(checkIn, (seconds + 1) * 1000);
}

function showTurn(note) {
  if (MAY_PUSH) subscription?.unsubscribe();
  clearInterval(countdown);
  room.dataset.state = "open";
  const [initial = "", ...rest] = words.turn;
  const turn = `${initial.toLocaleUpperCase(language)}${rest.join("")}`;
  document.title = `${turn} – ${words.title}`;
  write("label", words.turnLabel);
  write("wait", words.turn);
  write("note", note);
  for (const id of ["people", "expected", "tells", "trouble"]) write(id, "");
  // Also for addresses that answer with a download or nothing at all, and so leave this page standing.
  element("enter").hidden = false;
  for (const id of ["begin", "progress", "line", "often", "still", "tell", "elsewhere"])
    element(id).hidden = true;
  return turn;
}

// Check-ins

function failed() {
  failures += 1;
  write("trouble", words.trouble);
  const pause = Math.min(refreshSeconds * 2 ** (failures - 1), LONGEST_PAUSE_SECONDS);
  // Spread out, so that the pages of a room that was away for a moment do not all come back at once.
  checkInAfter(pause * (0.8 + 0.4 * Math.random()));
}

// The room's answer, and whether anything has answered as it should.
async function ask(brought) {
  try {
    const response = await fetch(location.href, {
      headers: {
        "anteroom-status": "1",
        accept: "application/json",
        ...(brought && { "anteroom-turnstile": brought }),
        ...(shownSeconds >= 0 && { "anteroom-shown": `${shownSeconds}` }),
      },
      cache: "no-store",
      credentials: "same-origin",
      redirect: "manual",
      signal: AbortSignal.timeout?.(LONGEST_CHECK_SECONDS * 1000),
    });
    const isJson = response.headers.get("content-type")?.includes("json");
    const answer = isJson ? await response.json() : undefined;
    return { answer, fails: response.status === 429 || response.status >= 500 };
  } catch {
    return { fails: true };
  }
}

async function checkIn() {
  if (checking || entering) return;
  checking = true;
  going = false;
  if (MAY_PUSH) await bringSubscription();
  const brought = token;
  const { answer, fails } = await ask(brought);
  checking = false;
  if (fails) return failed();
  if (answer?.admitted === true) return enter();
  if (MAY_CONFIRM && answer?.admitted === "turn") return offer(answer);
  // Not the room's answer: the room is gone, or something before it asks for a look. A real visit finds out.
  if (answer?.admitted !== false) {
    checkInAfter(refreshSeconds);
    return go();
  }
  failures = 0;
  const isNew = token !== brought;
  if (!isNew && !answer.bringAgain) token = "";
  write("trouble", "");
  lastCheckIn = Date.now();
  checkedInAt = answer.now;
  showTime();
  show(answer);
  if (token && isNew) checkIn();
  else checkInAfter(refreshSeconds);
}

function checkInWhenStale() {
  if (refreshSeconds > 0 && Date.now() - lastCheckIn > refreshSeconds * 1000) checkIn();
}

// Back from the browser's own cache of pages: what is shown is old, and a check that was under way is lost.
function comeBack({ persisted }) {
  if (!persisted) return;
  checking = entering = going = false;
  checkIn();
}

// Closing the page gives the place back; coming back in time keeps it. By the time of the last check-in the room sees
// whether a newer page waits on: this one is also left when it is loaded anew.
function leave({ persisted }) {
  if (going || persisted || !(refreshSeconds > 0)) return;
  navigator.sendBeacon?.(
    location.href,
    new Blob([], { type: `application/x-anteroom-leave;at=${checkedInAt}` }),
  );
}

globalThis.anteroomTurnstile = (given) => {
  token = given;
  checkIn();
};
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) checkInWhenStale();
});
addEventListener("online", checkInWhenStale);
addEventListener("pageshow", comeBack);
addEventListener("pagehide", leave);
// The Refresh header is for visitors without script. Stopping the page while its load event runs cancels the reload
// in Chromium, Firefox and WebKit; a moment later WebKit ignores it.
addEventListener("load", () => stop());
element("still").addEventListener("click", toggleMovement);
element("tell").addEventListener("click", tellMe);
element("tell").hidden = !(refreshSeconds > 0);
if (!navigator.cookieEnabled) element("cookies").hidden = false;
showTime();
showExpected(first.expectedIn);
showCountdown(first.startsIn);
if (refreshSeconds > 0) showInterval();
checkInAfter(refreshSeconds);
