// One probe: a connection to the origin, a request, and as much of the answer as is looked at, with the moments at
// which each stage was over. `health/judge.rs` says what it means. The platform's clock stands still between two waits
// for I/O, and each moment is taken right after one.
import { connect } from "cloudflare:sockets";

/** How many bytes are kept, and the most that are read. */
const KEPT = 65_536;
const READ = 1_048_576;

/** How it ended: `Ended` in judge.rs, in its order. */
const COMPLETE = 0;
const TIMED_OUT = 1;
const FAILED = 2;
const CUT = 3;

/**
 * @param {string} host
 * @param {number} port
 * @param {boolean} secure Over TLS: the certificate must be for `host`, the platform knows no other way.
 * @param {string} request Empty: the connection is all that is asked for.
 * @param {string} url The same for `fetch()`.
 * @param {string} cookie For `fetch()` alone, which may lead through the waiting room; may be empty.
 * @param {number} timeout In milliseconds.
 */
export async function probe(host, port, secure, request, url, cookie, timeout) {
  const began = Date.now();
  const result = await timed(timeout, (seen) => overSocket(host, port, secure, request, seen));
  // The platform closes its own addresses, behind which proxied hosts are, to sockets, and says so in these words; so
  // it does when nobody listens there, and then fetch() fails as well.
  if (!request || result.ended !== FAILED || !/specified address|TCP Loop|using fetch/i.test(result.message))
    return asList(result);
  const left = timeout - (Date.now() - began);
  return asList(await timed(Math.max(left, 1), (seen) => overFetch(url, request, cookie, seen)), true);
}

function asList({ ended, tcp, tls, first, total, received, kept }, byFetch = false) {
  const bytes = new Uint8Array(kept.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of kept) {
    bytes.set(part, at);
    at += part.length;
  }
  return [ended, byFetch, tcp, tls, first, total, received, bytes];
}

/** Does the work, but not for longer than it may take; whatever happens, nothing stays open. */
async function timed(timeout, work) {
  const began = Date.now();
  const seen = {
    ended: FAILED,
    message: "",
    received: 0,
    kept: [],
    mark: (stage) => {
      seen[stage] ??= Date.now() - began;
    },
    close: () => {},
  };
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(() => resolve(TIMED_OUT), timeout);
  });
  try {
    seen.ended = await Promise.race([work(seen), late]);
    if (seen.ended === COMPLETE || seen.ended === CUT) seen.mark("total");
  } catch (error) {
    seen.message = `${error?.message ?? error}`.slice(0, 200);
  } finally {
    clearTimeout(timer);
    seen.close();
  }
  // What still arrives is not part of it.
  return { ...seen, kept: [...seen.kept] };
}

const nothing = () => {};

/** A socket that is closed at the end, and whose failures are told by what waits for it alone. */
function closedAtEnd(socket, seen) {
  socket.opened.catch(nothing);
  socket.closed.catch(nothing);
  seen.close = () => socket.close().catch(nothing);
  return socket;
}

async function overSocket(hostname, port, secure, request, seen) {
  const secureTransport = secure ? "starttls" : "off";
  let socket = closedAtEnd(connect({ hostname, port }, { secureTransport }), seen);
  await socket.opened;
  seen.mark("tcp");
  if (!request) return COMPLETE;
  if (secure) socket = closedAtEnd(socket.startTls(), seen);
  const sent = socket.writable.getWriter().write(new TextEncoder().encode(request));
  if (secure) {
    // `opened` of such a socket does not wait for the handshake; what is written does.
    await sent;
    seen.mark("tls");
  }
  // Else a server that answers before it has read all still counts.
  sent.catch(nothing);
  return read(socket.readable.getReader(), seen, new Whole(request));
}

async function overFetch(url, request, cookie, seen) {
  const [first, ...lines] = request.trimEnd().split("\r\n");
  const headers = new Headers();
  for (const line of lines) {
    const colon = line.indexOf(": ");
    const name = line.slice(0, colon);
    if (!/^(host|connection|accept-encoding)$/i.test(name)) headers.append(name, line.slice(colon + 2));
  }
  if (cookie) headers.append("cookie", cookie);
  const stop = new AbortController();
  seen.close = () => stop.abort();
  const method = first.split(" ", 1)[0];
  const init = { method, headers, redirect: "manual", cache: "no-store", signal: stop.signal };
  const answer = await fetch(url, init);
  seen.mark("first");
  const location = answer.headers.get("location");
  const head = `HTTP/1.1 ${answer.status} \r\n${location ? `location: ${location}\r\n` : ""}\r\n`;
  keep(seen, new TextEncoder().encode(head));
  return answer.body ? read(answer.body.getReader(), seen) : COMPLETE;
}

function keep(seen, bytes) {
  const before = seen.received;
  seen.received += bytes.length;
  if (before < KEPT) seen.kept.push(bytes.slice(0, KEPT - before));
}

/** Reads to the end, or until it is enough. */
async function read(reader, seen, whole) {
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return COMPLETE;
    if (!value.length) continue;
    seen.mark("first");
    keep(seen, value);
    if (whole?.is(seen, value)) return COMPLETE;
    if (seen.received >= READ || whole?.isEndless(seen)) return CUT;
  }
}

/**
 * Whether all of an answer is there though its connection is open: it was asked to be closed, but not every server
 * does as it is asked.
 */
class Whole {
  #text = "";
  #tail = "";
  #start;
  #length;

  constructor(request) {
    this.isHead = request.startsWith("HEAD ");
  }

  is(seen, bytes) {
    const text = new TextDecoder("latin1").decode(bytes);
    this.#tail = (this.#tail + text).slice(-7);
    if (this.#start === undefined) {
      this.#text = (this.#text + text).slice(0, KEPT);
      // Only where an empty line may have come: answers that trickle in would be searched again and again.
      if (/\n\r?\n/.test(this.#text.slice(-text.length - 3))) this.#readHead();
      if (this.#start === undefined) return false;
    }
    if (this.#length === "chunked") return /(^|\r\n)0\r\n\r\n$/.test(this.#tail);
    return this.#length !== undefined && seen.received >= this.#start + this.#length;
  }

  /** Whether its head is longer than what is kept. */
  isEndless(seen) {
    return this.#start === undefined && seen.received >= KEPT;
  }

  #readHead() {
    for (let from = 0; ; ) {
      const rest = this.#text.slice(from);
      const end = /\n\r?\n/.exec(rest);
      if (!end) return;
      const head = rest.slice(0, end.index + end[0].length);
      from += head.length;
      const [, code] = /^HTTP\/1\.\d (\d\d\d)/.exec(head) ?? [];
      if (/^1(?!01)/.test(code)) continue;
      this.#start = from;
      if (this.isHead || code === "204" || code === "304") this.#length = 0;
      else if (/^transfer-encoding:.*chunked/im.test(head)) this.#length = "chunked";
      else {
        const [, length] = /^content-length:[ \t]*(\d+)[ \t]*\r?$/im.exec(head) ?? [];
        this.#length = length === undefined ? undefined : Number(length);
      }
      return;
    }
  }
}
