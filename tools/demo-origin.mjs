// The site behind the demo's waiting room: a small shop. All that it knows of the room is that whoever has ordered is done
// (the command revoke).
//
// Standalone: node tools/demo-origin.mjs --port 9000
// In a program: const { url, close } = await startDemoOrigin();

import { createHash, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const PRODUCTS = [
  {
    name: "Reading lamp",
    price: 48,
    stock: 12,
    text: "A warm light for long evenings. Brass, with a linen shade.",
  },
  {
    name: "Oak stool",
    price: 85,
    stock: 7,
    text: "Three legs and no wobble. Made for halls and other places to wait in.",
  },
  {
    name: "Umbrella stand",
    price: 36,
    stock: 21,
    text: "Glazed stoneware. Holds six umbrellas, or one very large fern.",
  },
];

const STYLE = `
:root { color-scheme: light dark; --paper: #f7f2e8; --card: #fffdf8; --ink: #20302e; --quiet: #56625f; --rule: #d9d2c3; --link: #8f4a12; --strong: #2c5b55; --on-strong: #fff; --soft: #b9cdc3; --brass: #e6b35a }
@media (prefers-color-scheme: dark) { :root { --paper: #101817; --card: #172321; --ink: #f1ebdf; --quiet: #a9b5b0; --rule: #2b3937; --link: #ffc46b; --strong: #b9dccd; --on-strong: #10211e; --soft: #223534; --brass: #d59f45 } }
* { box-sizing: border-box; margin: 0 }
body { background: var(--paper); color: var(--ink); font: 1rem/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif }
header, main, footer { max-width: 60rem; margin: 0 auto; padding: 1.25rem 1.5rem }
header { display: flex; flex-wrap: wrap; gap: .5rem 1.5rem; align-items: baseline; border-bottom: 1px solid var(--rule) }
header a { color: var(--ink) }
.name, h1, h2 { font-family: "Iowan Old Style", "Palatino Linotype", Palatino, P052, Georgia, serif; font-weight: 400; line-height: 1.15; letter-spacing: -.01em }
.name { font-size: 1.4rem; margin-right: auto; text-decoration: none }
h1 { font-size: clamp(2rem, 1.4rem + 3vw, 3.2rem); margin: 1.25rem 0 .75rem }
h2 { font-size: 1.35rem }
a { color: var(--link) }
a:focus-visible, button:focus-visible { outline: 3px solid var(--link); outline-offset: 3px; border-radius: 2px }
.lead { max-width: 40rem; font-size: 1.1rem }
.shelf { list-style: none; padding: 0; margin: 2rem 0; display: grid; gap: 1.25rem; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)) }
.shelf li { background: var(--card); border: 1px solid var(--rule); border-radius: .75rem; overflow: hidden; padding-bottom: 1.1rem }
.shelf h2, .shelf p { padding: 0 1.1rem }
.shelf svg { display: block; width: 100%; height: 9rem; background: var(--soft); margin-bottom: 1rem }
.thing { fill: var(--strong) } .bright { fill: var(--brass) }
.room { background: var(--card); border-left: 4px solid var(--brass); padding: 1.1rem 1.25rem; margin: 2rem 0; max-width: 46rem }
.room ol { padding-left: 1.2rem; margin-top: .5rem }
.buy { border: 0; font: inherit; display: inline-block; margin: 1.25rem 0; padding: .6rem 1.2rem; border-radius: .5rem; background: var(--strong); color: var(--on-strong); text-decoration: none; font-weight: 600 }
footer, .quiet { color: var(--quiet); font-size: .9375rem }
footer { border-top: 1px solid var(--rule); margin-top: 2rem }
`;

const PICTURES = [
  '<path class="thing" d="M98 118h4V70h-4zM78 118h44v6H78z"/><path class="bright" d="M82 30h36l14 40H68z"/>',
  '<path class="thing" d="M62 52h76v10H62zM72 62h8l-8 62h-8zM120 62h8l8 62h-8zM96 62h8v62h-8z"/>',
  '<path class="thing" d="M78 62h44l-6 62H84z"/><path class="bright" d="M90 62V26a7 7 0 0 1 14 0h-4a3 3 0 0 0-6 0v36zM108 62V36h4v26z"/>',
];

const escaped = (text) => String(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

// Not by URL: it refuses some of what a client may send, `//` for one.
const pathOf = (request) => request.url.split("?", 1)[0];

/** A page of the shop around `content`. */
function page(title, content, request) {
  const time = new Date().toISOString();
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escaped(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/style.css">
</head>
<body>
<header><a class="name" href="/">Hall &amp; Hearth</a> <nav aria-label="Shop"><a href="/">All things</a> · <a href="/checkout">Basket</a></nav></header>
<main>${content}</main>
<footer><p>The shop answered <code>${escaped(request.method)} ${escaped(request.url)}</code> at <time datetime="${time}">${time.slice(11, 19)} UTC</time>.</p></footer>
</body>
</html>
`;
}

function front({ activeUsers, sessionMinutes }) {
  const people = activeUsers === 1 ? "1 user" : `${activeUsers} users`;
  const minutes = sessionMinutes === 1 ? "1 minute" : `${sessionMinutes} minutes`;
  const shelf = PRODUCTS.map(
    (product, index) => `<li><svg viewBox="0 0 200 150" aria-hidden="true">${PICTURES[index]}</svg>
<h2><a href="/product/${index + 1}">${product.name}</a></h2><p>€ ${product.price}</p></li>`,
  ).join("\n");
  return `<h1>Good things for the hall</h1>
<p class="lead">You are inside. A lamp, a stool and a place for the umbrella: everything that makes waiting pleasant.</p>
<ul class="shelf">${shelf}</ul>
<section class="room" aria-labelledby="demo">
<h2 id="demo">This is a demo of a waiting room</h2>
<p>This shop holds ${people} at a time. You are one of them.</p>
<ol>
<li>Open more private windows, or other browsers, at this address until the shop is full: the next one gets the waiting page. (Windows of the same private session share one place.)</li>
<li>Each page you look at keeps you inside for ${minutes} more. Stop looking around for longer than that and your place is free for whoever waits.</li>
<li>The first in line is then let in by the waiting page itself.</li>
</ol>
</section>
<p class="quiet">Also here: <a href="/api/stock">the stock as JSON</a> and <a href="/stream">a slow answer</a> that arrives line by line.</p>`;
}

const product = (index) => {
  const { name, price, stock, text } = PRODUCTS[index];
  return `<h1>${name}</h1><p class="lead">${text}</p><p>€ ${price} · ${stock} left</p>
<p><a class="buy" href="/checkout">Put it in the basket</a></p><p><a href="/">Back to all things</a></p>`;
};

const CHECKOUT = `<h1>Your basket</h1><p class="lead">This is where a real shop would take your order. Nobody who was let in is thrown out here while they are busy.</p>
<form method="post" action="/order"><button class="buy">Order now</button></form>
<p><a href="/">Back to all things</a></p>`;

const ORDERED = `<h1>Thank you</h1><p class="lead">That was the last step. Your place in the shop is free for the next one in line.</p>
<p><a href="/">Back to all things</a></p>`;

/** Answers one request. */
function answer(request, response, demo) {
  const pathname = pathOf(request);
  const send = (status, type, body, headers = {}) => {
    response.writeHead(status, {
      "content-type": type,
      "content-length": Buffer.byteLength(body),
      ...headers,
    });
    response.end(request.method === "HEAD" ? undefined : body);
  };
  const html = (status, title, content, headers = {}) => {
    // Two cookies of the shop's own: the room must hand both on untouched.
    const cookies = ["shop_seen=yes; Path=/; SameSite=Lax"];
    if (!/(^|; )shop_session=/.test(request.headers.cookie ?? "")) {
      cookies.unshift(`shop_session=${randomUUID()}; Path=/; HttpOnly; SameSite=Lax`);
    }
    send(status, "text/html; charset=utf-8", page(title, content, request), {
      "cache-control": "no-cache",
      "set-cookie": cookies,
      ...headers,
    });
  };

  const number = /^\/product\/(\d{1,3})$/.exec(pathname)?.[1];
  if (pathname === "/" || pathname === demo.path) html(200, "Hall & Hearth", front(demo));
  else if (number && PRODUCTS[number - 1])
    html(200, `${PRODUCTS[number - 1].name} – Hall & Hearth`, product(number - 1));
  else if (pathname === "/checkout") html(200, "Your basket – Hall & Hearth", CHECKOUT);
  else if (pathname === "/order" && request.method === "POST")
    html(200, "Thank you – Hall & Hearth", ORDERED, { "anteroom-command": "revoke" });
  else if (pathname === "/style.css")
    send(200, "text/css; charset=utf-8", STYLE, { "cache-control": "max-age=60" });
  else if (pathname === "/api/stock") {
    const stock = PRODUCTS.map(({ name, stock: left }) => ({ name, left }));
    send(200, "application/json", JSON.stringify({ at: new Date().toISOString(), stock }), {
      "cache-control": "no-store",
    });
  } else if (pathname === "/stream") stream(request, response);
  else html(404, "Not here – Hall & Hearth", '<h1>Not here</h1><p><a href="/">Back to all things</a></p>');
}

/** Five lines, half a second apart: shows that answers are passed on as they arrive. */
function stream(request, response) {
  // Not compressed: the local platform's gzip holds everything back until the end.
  response.writeHead(200, {
    "content-type": "text/plain; charset=utf-8",
    "content-encoding": "identity",
    "cache-control": "no-store",
  });
  if (request.method === "HEAD") return response.end();
  let line = 0;
  const next = () => {
    line += 1;
    response.write(`line ${line} of 5 at ${new Date().toISOString()}\n`);
    if (line < 5) return;
    clearInterval(timer);
    response.end();
  };
  const timer = setInterval(next, 500);
  next();
  response.on("close", () => clearInterval(timer));
}

// The WebSocket echo at /socket: enough of RFC 6455 for short messages, which is all that a demo sends.
const SOCKET_KEY_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const LONGEST_MESSAGE = 125;
const TEXT = 1;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

const frame = (kind, payload) => Buffer.concat([Buffer.from([0x80 | kind, payload.length]), payload]);

/** Takes over an upgrade request and sends every message back. */
function echo(request, socket) {
  socket.on("error", () => socket.destroy());
  const key = request.headers["sec-websocket-key"];
  if (pathOf(request) !== "/socket" || !key) {
    socket.end("HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    return;
  }
  const accept = createHash("sha1")
    .update(key + SOCKET_KEY_SUFFIX)
    .digest("base64");
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`,
  );
  let received = Buffer.alloc(0);
  socket.on("data", (chunk) => {
    received = Buffer.concat([received, chunk]);
    while (received.length >= 6) {
      const kind = received[0] & 0x0f;
      const final = (received[0] & 0x80) !== 0;
      const masked = (received[1] & 0x80) !== 0;
      const length = received[1] & 0x7f;
      // 1009: too long for this demo, or in parts. Browsers always mask what they send.
      if (!final || !masked || length > LONGEST_MESSAGE)
        return void socket.end(frame(CLOSE, Buffer.from([0x03, 0xf1])));
      if (received.length < 6 + length) return;
      const mask = received.subarray(2, 6);
      const payload = Buffer.from(received.subarray(6, 6 + length));
      for (let index = 0; index < length; index += 1) payload[index] ^= mask[index % 4];
      received = received.subarray(6 + length);
      if (kind === CLOSE) return void socket.end(frame(CLOSE, payload));
      if (kind === PING) socket.write(frame(PONG, payload));
      else if (kind !== PONG) socket.write(frame(kind || TEXT, payload));
    }
  });
}

/**
 * Starts the shop. `activeUsers` and `sessionMinutes` are what its front page says about the room in front of it; the page is at
 * `path` too, where that room is. Port 0 takes a free one.
 */
export async function startDemoOrigin({
  port = 0,
  host = "127.0.0.1",
  activeUsers = 5,
  sessionMinutes = 1,
  path = "/",
} = {}) {
  const server = createServer((request, response) =>
    answer(request, response, { activeUsers, sessionMinutes, path }),
  );
  const sockets = new Set();
  server.on("upgrade", (request, socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    echo(request, socket);
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const close = () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      // Neither kept connections nor open sockets may hold up the end.
      server.closeAllConnections();
      for (const socket of sockets) socket.destroy();
    });
  return { url: `http://${host.includes(":") ? `[${host}]` : host}:${server.address().port}`, close };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values } = parseArgs({
    options: { port: { type: "string", default: "9000" }, host: { type: "string", default: "127.0.0.1" } },
  });
  try {
    const { url } = await startDemoOrigin({ port: Number(values.port), host: values.host });
    console.log(`The demo shop is at ${url}`);
  } catch (error) {
    console.error(`The demo shop could not start: ${error.message}`);
    process.exitCode = 1;
  }
}
