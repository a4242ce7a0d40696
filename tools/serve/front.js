// What stands before the room where there is no Cloudflare: it says what Cloudflare's network says of a visitor, and takes off
// what visitors say of themselves. It runs in workerd; tools/serve/config.mjs puts it there, in one isolate with the room.
import { BlockList, isIP, isIPv6 } from "node:net";
import room from "./index.js";

export * from "./index.js";

/** What only a trusted proxy may say of a request. */
const TOLD = ["forwarded", "true-client-ip", "x-forwarded-host", "x-forwarded-port"];

/** The ranges of trusted proxies, made with the first request. @type {BlockList | undefined} */
let proxies;

/** @param {string[]} ranges such as `10.0.0.0/8` */
function listOf(ranges) {
  const list = new BlockList();
  for (const range of ranges) {
    const [address, bits] = range.split("/");
    list.addSubnet(address, Number(bits), family(address));
  }
  return list;
}

const family = (address) => (isIPv6(address) ? "ipv6" : "ipv4");

/** An address without its port and brackets, and without the prefix of an IPv4 address on an IPv6 socket. */
const plain = (text) =>
  text
    .trim()
    .replace(/^\[(.*)\](:\d+)?$/, "$1")
    .replace(/^([^:]+):\d+$/, "$1")
    .replace(/^::ffff:(?=[\d.]+$)/i, "");

/** Who opens a Unix socket has no address; the socket's file says who may. */
const isTrusted = (address) => address === "" || proxies.check(address, family(address));

/** The nearest address that is no trusted proxy's. @param {string} peer @param {string} told `X-Forwarded-For` */
function visitorOf(peer, told) {
  const chain = told.split(",").map(plain);
  let visitor = peer;
  while (isTrusted(visitor) && isIP(chain.at(-1) ?? "")) visitor = chain.pop();
  return visitor;
}

/** The request as it would come from the network. */
function seen(request) {
  const peer = plain(request.cf.clientIp ?? "");
  const believed = isTrusted(peer);
  const told = (believed && request.headers.get("x-forwarded-for")) || "";
  const secure = believed && request.headers.get("x-forwarded-proto") === "https";
  const sent = new Request(secure ? request.url.replace(/^http:/, "https:") : request.url, request);
  const { headers } = sent;
  for (const name of [...headers.keys()]) if (name.startsWith("cf-")) headers.delete(name);
  if (!believed) for (const name of TOLD) headers.delete(name);
  const visitor = visitorOf(peer, told);
  headers.set("cf-connecting-ip", visitor);
  headers.set("x-real-ip", visitor);
  headers.set("x-forwarded-for", [told, peer].filter(Boolean).join(", "));
  return sent;
}

export default {
  fetch(request, env, context) {
    proxies ??= listOf(env.TRUSTED_PROXIES);
    return room.fetch(seen(request), env, context);
  },
};
