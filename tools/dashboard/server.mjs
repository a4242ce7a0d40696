/**
 * A server that speaks the operator API with rooms that are made up, and shows the dashboard as the Worker does: to
 * work on the dashboard (`npm run dashboard`), and for its tests.
 */
import { createHash, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { handle, newBook } from "../../src/edge/client/api.js";
import { openapi } from "../../src/edge/client/openapi.js";
import { createDashboard } from "../../src/edge/dashboard.js";
import { createWaitingRoom } from "../../src/edge/page/answer.js";
import { createLanguages } from "../../src/edge/page/languages.js";
import { readPages } from "../pages.mjs";
import { readDashboard } from "./assets.mjs";
import { makeRooms } from "./rooms.mjs";

const ROOT = "/__anteroom/";
const CLIENT = "client/v4/";
const MINUTE = 60_000;
/** Who may sign in, by token. */
export const TOKENS = {
  "may-steer-the-rooms": { name: "anna", role: "steer" },
  "may-view-the-rooms": { name: "wall", role: "view" },
  "may-configure-the-rooms": { name: "carla", role: "configure" },
};
const FIELDS = [
  "active_users",
  "waiting_users",
  "new_users",
  "total_active_users",
  "new_users_per_minute",
  "slots",
];
const PAGE = {
  language: "en-US",
  visitorLanguages: true,
  customPage: "",
  showPosition: true,
  showWait: true,
  showProgress: true,
};

const json = (status, body) =>
  new Response(JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json", "cache-control": "private, no-store" },
  });

const time = (text, otherwise) => {
  if (!text) return otherwise;
  return /^\d+$/.test(text) ? Number(text) : Date.parse(text);
};

/** What a room alone answers. */
const READ = {
  steering: (_operator, _parameters, room) => json(200, room.steering()),
  audit: (_operator, parameters, room) => {
    const before = Number(parameters.get("before") ?? Number.MAX_SAFE_INTEGER);
    const limit = Number(parameters.get("limit") ?? 100);
    const entries = room.audit.filter(({ id }) => id < before).reverse();
    return json(200, { room: room.name, entries: entries.slice(0, limit) });
  },
  history: (_operator, parameters, room) => {
    const now = Date.now();
    const to = time(parameters.get("to"), now);
    const from = time(parameters.get("from"), to - 60 * MINUTE);
    const asked = parameters.get("resolution") ?? "auto";
    const resolution = asked === "auto" ? (to - from > 24 * 60 * MINUTE ? "hour" : "minute") : asked;
    const fields = parameters.get("fields")?.split(",") ?? FIELDS;
    const rows = room.history(from, Math.min(to, now), resolution, fields);
    if (parameters.get("format") === "csv") {
      const lines = rows.map(([at, ...values]) => [new Date(at).toISOString(), ...values].join(","));
      const body = `${["time", ...fields].join(",")}\n${lines.join("\n")}\n`;
      const disposition = `attachment; filename="${room.name}.csv"`;
      return new Response(body, {
        headers: { "content-type": "text/csv", "content-disposition": disposition },
      });
    }
    const settled = Math.floor(now / MINUTE) * MINUTE;
    return json(200, {
      room: room.name,
      resolution,
      from,
      to,
      colo: null,
      fields,
      rows,
      settled_until: settled,
    });
  },
  news: (_operator, parameters, room) => {
    const to = time(parameters.get("to"), Date.now());
    return json(200, {
      room: room.name,
      news: room.news(time(parameters.get("from"), to - 60 * MINUTE), to),
    });
  },
};

/**
 * @param {{ port?: number, rooms?: ReturnType<typeof makeRooms>, problems?: string[], tick?: number }} [options]
 *   `tick`: milliseconds between two messages of the live connection
 */
export async function startDashboard({ port = 0, rooms = makeRooms(), problems = [], tick = 1_000 } = {}) {
  const pages = await readPages();
  let dashboard = createDashboard(
    await readDashboard(),
    createWaitingRoom(pages),
    createLanguages(pages.languages),
  );
  /** What does not work now: `live`, `status`, `steering`, `history`, …; and which requests came. */
  const broken = new Set();
  const sockets = new Set();
  const asked = [];

  const read = {
    status: (operator, parameters) => statusAnswer(rooms, problems, operator, parameters),
    ...READ,
    preview: (_operator, parameters, room, request) =>
      dashboard.preview(
        JSON.stringify(PAGE),
        JSON.stringify(room.status()),
        parameters.get("language") ?? "",
        request,
      ),
  };

  const client = createClient(rooms);

  async function answer(request, body) {
    const { pathname, searchParams: parameters } = new URL(request.url);
    if (pathname === "/") return new Response(null, { status: 303, headers: { location: ROOT } });
    const name = pathname.slice(ROOT.length);
    const asset = dashboard.asset(pathname, parameters.get("v") ?? "");
    if (asset) return asset;
    const session = sessionAnswer(dashboard, request, name, body);
    if (session) return session;
    const token = /__anteroom_operator=([^;]+)/.exec(request.headers.get("cookie") ?? "")?.[1];
    const operator = TOKENS[token];
    if (name === "") {
      if (!operator) return dashboard.signIn(false, request);
      const status = parameters.has("figures")
        ? await read.status(operator, new URLSearchParams()).text()
        : "";
      return dashboard.page(operator.name, operator.role, status);
    }
    if (!operator) return json(401, { error: "Send a token as a bearer token, or sign in" });
    asked.push(`${request.method} ${name}${new URL(request.url).search}`);
    if (broken.has(name)) return json(503, { error: `The test has put ${name} out of order` });
    if (name.startsWith(CLIENT)) return client(operator, request, name.slice(CLIENT.length), body);
    if (name === "openapi.json") return json(200, openapi("none"));
    const room = rooms.get(parameters.get("room"));
    if (!Object.hasOwn(read, name)) return json(404, { error: "There is nothing here" });
    if (name !== "status" && !room) return json(404, { error: `There is no room ${parameters.get("room")}` });
    if (request.method === "GET") return read[name](operator, parameters, room, request);
    if (operator.role === "view") return json(403, { error: "This needs a token with the role steer" });
    const result = room.steer(JSON.parse(body), operator.name);
    for (const socket of sockets) if (socket.room === room) socket.tell();
    return json(result.status, result.body);
  }

  const server = serve(answer);
  server.on("upgrade", (request, stream) => {
    const { searchParams } = new URL(request.url, "http://here");
    const room = rooms.get(searchParams.get("room"));
    const isSignedIn = Object.keys(TOKENS).some((token) => request.headers.cookie?.includes(token));
    asked.push(`LIVE ${searchParams.get("room")}`);
    if (!room || !isSignedIn || broken.has("live"))
      return stream.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
    openSocket(stream, request.headers["sec-websocket-key"]);
    watchRoom(room, stream, sockets, tick);
  });
  await new Promise((listening, failed) => {
    server.on("error", failed);
    server.listen(port, "127.0.0.1", listening);
  });
  return {
    url: `http://127.0.0.1:${server.address().port}${ROOT}`,
    rooms,
    asked,
    /** Puts routes out of order, and takes all live connections down where `live` is one of them. */
    breaks: (...names) => {
      for (const name of names) broken.add(name);
      if (names.includes("live")) for (const { stream } of sockets) stream.destroy();
    },
    works: () => broken.clear(),
    /** Sends a message to all who look. */
    tells: (message) => {
      for (const room of message.type === "news" ? rooms.values() : []) room.tell(message.news);
      for (const { text } of sockets) text(JSON.stringify(message));
    },
    watchers: () => sockets.size,
    /** Takes changes of static/dashboard/ in. */
    reload: async () => {
      dashboard = createDashboard(
        await readDashboard(),
        createWaitingRoom(pages),
        createLanguages(pages.languages),
      );
    },
    close: async () => {
      for (const { stream } of sockets) stream.destroy();
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** A server that hands on each request with its body. */
function serve(answer) {
  return createServer(async (incoming, outgoing) => {
    try {
      const chunks = [];
      for await (const chunk of incoming) chunks.push(chunk);
      const url = `http://${incoming.headers.host}${incoming.url}`;
      const request = new Request(url, { method: incoming.method, headers: incoming.headers });
      const response = await answer(request, Buffer.concat(chunks).toString());
      outgoing.writeHead(response.status, [...response.headers].flat());
      if (response.body) Readable.fromWeb(response.body).pipe(outgoing);
      else outgoing.end();
    } catch (error) {
      outgoing.writeHead(500, { "content-type": "text/plain" }).end(`${error.stack}\n`);
    }
  });
}

/** The status of all rooms, or of the one that is asked for. */
function statusAnswer(rooms, problems, operator, parameters) {
  const name = parameters.get("room");
  const chosen = [...rooms.values()].filter((room) => !name || room.name === name);
  if (name && chosen.length === 0) return json(404, { error: `There is no room ${name}` });
  return json(200, { now: Date.now(), operator, problems, rooms: chosen.map((room) => room.status()) });
}

/** The API of rooms, by its own code: the rooms that are made up are as if deployed. Values are not judged. */
function createClient(rooms) {
  let book = newBook();
  const newId = () => randomUUID().replaceAll("-", "");
  const deployed = { rooms: [], events: [], rules: {}, crawlers: false, secrets: [] };
  for (const name of rooms.keys())
    deployed.rooms.push({
      id: newId(),
      name,
      variable: `ROOM_${name.toUpperCase()}`,
      fields: {
        host: "shop.example.com",
        path: `/${name}`,
        total_active_users: 1_000,
        new_users_per_minute: 200,
      },
      created: 0,
      modified: 0,
    });
  return ({ name: by, role }, { method, url }, path, body) => {
    const ask = {
      by,
      role,
      method,
      path,
      query: new URL(url).search.slice(1),
      body,
      base: "",
      now: Date.now(),
      newId,
    };
    const judged = { status: 200, body: {} };
    const outcome = handle(book, deployed, () => [], { ...ask, judged });
    book = outcome.written?.book ?? book;
    return json(outcome.status, outcome.body);
  };
}

/** Signs an operator in or out; nothing: the request is about something else. */
function sessionAnswer(dashboard, request, name, body) {
  if (name === "session/end") return redirect(`__anteroom_operator=; Path=${ROOT}; Max-Age=0`);
  if (name !== "session" || request.method !== "POST") return undefined;
  const token = new URLSearchParams(body).get("token") ?? "";
  if (!Object.hasOwn(TOKENS, token)) return dashboard.signIn(true, request);
  return redirect(`__anteroom_operator=${token}; Path=${ROOT}; HttpOnly; SameSite=Strict`);
}

/** Sends a room's status again and again for as long as the connection lives. */
function watchRoom(room, stream, sockets, tick) {
  const tell = () => send(stream, JSON.stringify({ type: "room", now: Date.now(), room: room.status() }));
  const socket = { room, stream, tell, text: (text) => send(stream, text) };
  sockets.add(socket);
  tell();
  const timer = setInterval(tell, tick);
  stream.on("error", () => stream.destroy());
  stream.on("close", () => {
    clearInterval(timer);
    sockets.delete(socket);
  });
  stream.on("data", (frames) => {
    // A client sends nothing but short texts, masked: `ping`, or that it goes.
    for (let at = 0; at + 1 < frames.length; at += 6 + (frames[at + 1] & 0x7f)) {
      if ((frames[at] & 0x0f) === 8) stream.end();
      else send(stream, "pong");
    }
  });
}

const redirect = (cookie) =>
  new Response(null, { status: 303, headers: { location: ROOT, "set-cookie": cookie } });

/** As much of RFC 6455 as a server of texts needs. */
function openSocket(stream, key) {
  const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  stream.write(
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
  );
}

function send(stream, text) {
  const payload = Buffer.from(text);
  const head = Buffer.alloc(payload.length < 126 ? 2 : payload.length < 65_536 ? 4 : 10);
  head[0] = 0x81;
  if (head.length === 2) head[1] = payload.length;
  else if (head.length === 4) {
    head[1] = 126;
    head.writeUInt16BE(payload.length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(payload.length), 2);
  }
  if (stream.writable) stream.write(Buffer.concat([head, payload]));
}
