// The Workers that are compared: how each is set up, what its visitors send, and what they must get. An answer that is
// not what the row's name says ends the bench, since its figure would be one of something else.
import { createHmac } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { clock } from "../tests/edge/clock.mjs";
import {
  ADMIN_TOKEN,
  CLASSES,
  KEY,
  openTicket,
  room,
  roomInMinute,
  sealTicket,
} from "../tests/edge/world.mjs";
import { LANES, Wrong } from "./load.mjs";

// What is measured takes real time.
clock.goReal();

const MINUTE = 60_000;
const COOKIE = "__anteroom";

/**
 * @typedef {object} Variant
 * @property {string} name
 * @property {string} group Rows of a group belong together.
 * @property {string} title
 * @property {number} [goal] As a ratio to the pass-through Worker.
 * @property {(built: Built) => object} worker See `Runtime.start`.
 * @property {boolean} reachesOrigin Whether each of its requests is one of the origin's.
 * @property {(load: import("./load.mjs").Load) => Promise<void>} begin Once, before everything else.
 * @property {(load: import("./load.mjs").Load) => Promise<void>} beginTurn
 * @property {(lane: number) => object} next A request; `check` gets it back with its answer.
 * @property {(answer: import("./load.mjs").Answer, request: object) => void} check Throws {@link Wrong}.
 * @property {(load: import("./load.mjs").Load) => Promise<void>} end Once, after the last round.
 *
 * @typedef {object} Built Modules as Miniflare takes them.
 * @property {object[]} passThrough
 * @property {object[]} rustPassThrough
 * @property {object[]} anteroom
 * @property {object[]} queueIt
 */

const NOTHING = async () => {};

/** @returns {Variant} */
function variant(parts) {
  return {
    reachesOrigin: true,
    begin: NOTHING,
    beginTurn: NOTHING,
    end: NOTHING,
    ...parts,
  };
}

function fail(what, answer) {
  const { status, headers, setCookie, body } = answer;
  const text = body.toString().replace(/\s+/g, " ").slice(0, 80);
  throw new Wrong(
    `${what}: status ${status}, ${JSON.stringify({ ...headers, "set-cookie": setCookie })}, "${text}"`,
  );
}

function expectOrigin(answer) {
  if (!answer.fromOrigin) fail("this should be the origin's answer", answer);
}

/** A page below the room's path. */
const PAGE = "/sale/shoes/42?colour=red";

// The two that decide nothing.

const untouched = {
  next: () => ({ path: PAGE }),
  check(answer) {
    expectOrigin(answer);
    if (answer.setCookie) fail("nobody should set a cookie here", answer);
  },
};

const passThroughs = [
  variant({
    name: "js",
    group: "pass-through",
    title: "JavaScript",
    worker: ({ passThrough }) => ({ modules: passThrough }),
    ...untouched,
  }),
  variant({
    name: "rust",
    group: "pass-through",
    title: "Rust",
    worker: ({ rustPassThrough }) => ({ modules: rustPassThrough }),
    ...untouched,
  }),
];

// Anteroom.

const ROOM = "sale";
/** The longest there is, so that nobody's session ends during a bench. */
const SESSION_MINUTES = 30;
/** How long an active user's cookie stays as it is. */
const SLOT_MS = (SESSION_MINUTES * MINUTE) / 240;

function anteroom(limits) {
  return ({ anteroom }) => ({
    modules: anteroom,
    durableObjects: Object.fromEntries(
      Object.entries(CLASSES).map(([binding, className]) => [binding, { className, useSQLite: true }]),
    ),
    bindings: {
      COOKIE_KEYS: KEY,
      ADMIN_TOKEN,
      // Slow machines are no outage.
      OBJECT_DEADLINE_MS: "5000",
      ROOM_SALE: room(`/${ROOM}`, { session_duration: SESSION_MINUTES, ...limits }),
    },
  });
}

const OPEN = { total_active_users: 2_000_000_000, new_users_per_minute: 2_000_000_000 };
const FULL = { total_active_users: 1, new_users_per_minute: 1 };

/** The ticket of an answer; the answer is wrong when there is none. */
function ticketOf(answer) {
  const value = new RegExp(`^${COOKIE}=([^;]+)`).exec(answer.setCookie ?? "")?.[1];
  try {
    return { value, ...openTicket(ROOM, value) };
  } catch {
    return fail("this should set a ticket", answer);
  }
}

const withTicket = (value, request) => ({ path: PAGE, cookie: `${COOKIE}=${value}`, ...request });

function activeTicket(id, lastCheckIn) {
  return sealTicket(ROOM, { id, lastCheckIn, acceptedAt: lastCheckIn - 5 * MINUTE });
}

/** Whoever comes without a ticket gets one: the room does its work. */
async function expectRoom(load) {
  ticketOf(await load.send({ path: PAGE }));
}

/** Active users whose cookies stay as they are: each has been seen in this slot already. */
function withinSlot() {
  /** @type {{ slot: number, value: string }[]} */
  const visitors = [];
  let renewed = 0;
  let answered = 0;
  return {
    begin: expectRoom,
    next(lane) {
      const now = Date.now();
      const slot = Math.floor(now / SLOT_MS);
      if (visitors[lane]?.slot !== slot)
        visitors[lane] = { slot, value: activeTicket(BigInt(lane + 1), now) };
      return withTicket(visitors[lane].value);
    },
    check(answer) {
      expectOrigin(answer);
      answered += 1;
      // Nobody can help that a slot ends between the visitor's clock and the Worker's.
      if (answer.setCookie) renewed += 1;
      if (renewed > LANES + answered / 100) fail("the cookie should stay as it is", answer);
    },
  };
}

/** Active users who come back after a minute, each once: every answer sets a cookie. */
function afterSlot() {
  let last = 0n;
  return {
    next() {
      last += 1n;
      return withTicket(activeTicket(last, Date.now() - MINUTE), { id: last });
    },
    check(answer, { id }) {
      expectOrigin(answer);
      const ticket = ticketOf(answer);
      const moved = ticket.lastCheckIn > Date.now() - MINUTE / 2;
      if (ticket.id !== id || !ticket.acceptedAt || !moved)
        fail("the visitor's own ticket should be renewed", answer);
    },
  };
}

/** Waiting visitors of a full room, who check in again and again. */
function waiting(isStatus) {
  const COUNT = 16 * LANES;
  const headers = isStatus ? { "anteroom-status": "1" } : {};
  /** @type {{ id: bigint, bucket: number, value: string }[]} */
  const visitors = [];
  let user;
  let turn = 0;
  const keep = (visitor, answer) => {
    const { id, bucket, acceptedAt, value } = ticketOf(answer);
    if (acceptedAt) fail("nobody should be let in", answer);
    if (visitor.id && (visitor.id !== id || visitor.bucket !== bucket))
      fail("everybody should keep the place", answer);
    Object.assign(visitor, { id, bucket, value });
  };
  const check = (answer, { visitor }) => {
    const isWaiting = answer.status === 200 && answer.headers.anteroom === "waiting";
    const says = isStatus
      ? answer.body.includes('"admitted":false')
      : answer.headers.refresh && answer.body.includes("</html>");
    if (!isWaiting || !says) fail(`this should be the waiting ${isStatus ? "status" : "page"}`, answer);
    keep(visitor, answer);
  };
  return {
    async begin(load) {
      const first = await load.send({ path: PAGE });
      expectOrigin(first);
      user = ticketOf(first).value;
      await load.run(
        COUNT,
        () => {
          const visitor = {};
          visitors.push(visitor);
          return { path: PAGE, headers, visitor };
        },
        check,
      );
    },
    /** The one user stays active, so that the room stays full. */
    async beginTurn(load) {
      const answer = await load.send(withTicket(user));
      expectOrigin(answer);
      if (answer.setCookie) user = ticketOf(answer).value;
    },
    next(lane) {
      // Each lane has visitors of its own: nobody asks again before the last answer.
      turn += 1;
      const visitor = visitors[lane + LANES * (Math.floor(turn / LANES) % (COUNT / LANES))];
      return withTicket(visitor.value, { headers, visitor });
    },
    check,
  };
}

/**
 * New visitors of an open room: each takes a number, gets a ticket and goes to the origin.
 * @param {boolean} isToldSoon Whether the room counts them within seconds; `leases` takes its time while it is calm.
 */
function arriving(isToldSoon) {
  const ids = new Set();
  const state = async (load) => {
    const answer = await load.send({
      path: "/__anteroom/status",
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
    });
    const isStatus = answer.headers["content-type"] === "application/json";
    const { rooms = [] } = isStatus ? JSON.parse(answer.body.toString()) : {};
    if (!rooms[0]?.state) fail("this should be the room's state", answer);
    return rooms[0].state;
  };
  const expectNumbers = async (load) => {
    const { unnumbered } = await state(load);
    if (unnumbered > 0)
      throw new Wrong(`${unnumbered} visitors were let in without a number: the objects failed`);
  };
  return {
    async beginTurn(load) {
      await expectNumbers(load);
      // Whoever asks for a number of a minute that ends meanwhile may have to ask again.
      await roomInMinute(3_000);
    },
    next: () => ({ path: PAGE }),
    check(answer) {
      expectOrigin(answer);
      const { id, acceptedAt } = ticketOf(answer);
      if (!acceptedAt || ids.has(id)) fail("everybody should be let in, with a ticket of their own", answer);
      ids.add(id);
    },
    /** All of them are counted, and nobody twice. */
    async end(load) {
      await expectNumbers(load);
      let { active } = await state(load);
      for (let looks = 0; isToldSoon && active < ids.size && looks < 10; looks += 1) {
        await sleep(2_000);
        ({ active } = await state(load));
      }
      if (active > ids.size || (isToldSoon && active < ids.size)) {
        throw new Wrong(`${ids.size} visitors were let in, but the room counts ${active}`);
      }
    },
  };
}

/** So many rooms are made at run time, each on a host of its own. */
const MADE = 100;
const CLIENT = "/__anteroom/client/v4/zones/main/waiting_rooms";

/** Makes them; then the Worker knows them. */
async function makeRooms(load) {
  for (let number = 0; number < MADE; number += 1) {
    const body = { name: `room-${number}`, host: `shop-${number}.test`, path: `/sale/${number}`, ...OPEN };
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" };
    const answer = await load.send({ method: "POST", path: CLIENT, headers, body: JSON.stringify(body) });
    if (answer.status !== 200) fail("this should make a room", answer);
  }
}

const anterooms = [
  variant({
    name: "uncovered",
    title: "covered by no room",
    goal: 1.25,
    worker: anteroom(OPEN),
    begin: expectRoom,
    ...untouched,
    next: () => ({ path: "/other/shoes/42?colour=red" }),
  }),
  variant({
    name: "no-room",
    title: `on a host without a room, of ${MADE} made at run time`,
    goal: 1.25,
    worker: anteroom({ ...OPEN, host: "sale.test" }),
    ...untouched,
    begin: makeRooms,
  }),
  variant({
    name: "admitted",
    title: "admitted, cookie unchanged",
    goal: 1.25,
    worker: anteroom(OPEN),
    ...withinSlot(),
  }),
  variant({
    name: "renewed",
    title: "admitted, cookie renewed",
    goal: 1.25,
    worker: anteroom(OPEN),
    ...afterSlot(),
  }),
  variant({
    name: "page",
    title: "waiting, page",
    goal: 1.4,
    reachesOrigin: false,
    worker: anteroom(FULL),
    ...waiting(false),
  }),
  variant({
    name: "status",
    title: "waiting, JSON status",
    goal: 1.4,
    reachesOrigin: false,
    worker: anteroom(FULL),
    ...waiting(true),
  }),
  variant({
    name: "new",
    title: "new, let in by leases",
    goal: 4,
    worker: anteroom(OPEN),
    ...arriving(false),
  }),
  variant({
    name: "new-counters",
    title: "new, let in by counters",
    goal: 4,
    worker: anteroom({ ...OPEN, slot_strategy: "counters" }),
    ...arriving(true),
  }),
].map((variant) => ({ ...variant, group: "Anteroom" }));

// Queue-it's connector.

const EVENT = "sale";
const SECRET = "a-secret-of-the-bench-and-of-nothing-else-0123456789";
const QUEUE_COOKIE = `QueueITAccepted-SDFrts345E-V3_${EVENT}`;

/** A session cookie as the connector writes it. */
function queueCookie(secret = SECRET) {
  const queueId = "3f2d9a7c-6b1e-4d08-9c55-0e8f7a6b5c4d";
  const issueTime = Math.floor(Date.now() / 1000);
  const hash = createHmac("sha256", secret).update(`${EVENT}${queueId}queue${issueTime}`).digest("hex");
  const value = `EventId=${EVENT}&QueueId=${queueId}&RedirectType=queue&IssueTime=${issueTime}&Hash=${hash}`;
  return `${QUEUE_COOKIE}=${encodeURIComponent(value)}`;
}

function integration(ExtendCookieValidity) {
  const part = {
    ValidatorType: "UrlValidator",
    UrlPart: "PagePath",
    Operator: "Contains",
    ValueToCompare: "/sale",
    IsNegative: false,
    IsIgnoreCase: true,
  };
  return {
    Version: 1,
    Integrations: [
      {
        Name: "sale",
        ActionType: "Queue",
        EventId: EVENT,
        QueueDomain: "queue.test",
        CookieDomain: "",
        LayoutName: "",
        Culture: "",
        CookieValidityMinute: 20,
        ExtendCookieValidity,
        RedirectLogic: "AllowTParameter",
        ForcedTargetUrl: "",
        QueuePathPrefix: "",
        Triggers: [{ LogicalOperator: "Or", TriggerParts: [part] }],
      },
    ],
  };
}

function connector(renews) {
  let cookie;
  return {
    worker: ({ queueIt }) => ({
      modules: queueIt,
      compatibilityFlags: ["nodejs_compat"],
      bindings: { INTEGRATION: JSON.stringify(integration(renews)), SECRET },
    }),
    async begin(load) {
      const answer = await load.send({ path: PAGE, cookie: queueCookie("another secret") });
      if (answer.status !== 302) fail("a forged session should be sent to the queue", answer);
    },
    async beginTurn() {
      cookie = queueCookie();
    },
    next: () => ({ path: PAGE, cookie }),
    check(answer) {
      expectOrigin(answer);
      if (renews !== `${answer.setCookie}`.startsWith(QUEUE_COOKIE)) {
        fail(`the session's cookie should ${renews ? "be renewed" : "stay as it is"}`, answer);
      }
    },
  };
}

const connectors = [
  variant({ name: "queue-it", title: "admitted, cookie unchanged", ...connector(false) }),
  variant({ name: "queue-it-renewed", title: "admitted, cookie renewed", ...connector(true) }),
].map((variant) => ({ ...variant, group: "Queue-it's connector" }));

/** @type {Variant[]} The first is what the others are compared with. */
export const VARIANTS = [...passThroughs, ...anterooms, ...connectors];
