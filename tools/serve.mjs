/** `anteroom serve`: the room on this machine, without Cloudflare: workerd in front of a site. docs/serve.md */
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { connect, createServer, isIP } from "node:net";
import { join, resolve } from "node:path";
import { parseArgs, parseEnv } from "node:util";
import { check } from "./check.mjs";
import { build, setup } from "./made.mjs";
import { configOf } from "./serve/config.mjs";
import { DEV_VARS, Failure, main, PROJECT, ROOT, underNode22 } from "./toolchain.mjs";

const HELP = `Usage: anteroom serve --origin http://127.0.0.1:3000 [options]

Serves the rooms of wrangler.toml on this machine, in front of a site, without Cloudflare. It becomes workerd, so it is one
process, in the foreground. SIGTERM ends it when what is under way is answered. Whatever ends it, nobody loses a place.

  --origin URL         the site; it gets requests with the host that visitors asked for. Left out: the var ORIGIN says it
  --listen ADDRESS     where visitors come in: 127.0.0.1:8080 (the default), :8080 for all addresses, [::1]:8080,
                       unix:/run/anteroom/http
  --storage DIRECTORY  what must outlive a restart (default: $STATE_DIRECTORY, else .anteroom/storage)
  --trust-proxy RANGE  an address, or a range such as 10.0.0.0/8, of proxies in front of it, whose X-Forwarded-For and
                       X-Forwarded-Proto are believed; may be repeated
  --config FILE        another wrangler.toml
  --env NAME           an environment of it

Secrets come from .dev.vars, and from the environment, which goes first.`;

/** What the environment may have for the room. */
const SECRET =
  /^(COOKIE_KEYS|ADMIN_TOKEN|OPERATOR_TOKENS|ADMISSION_KEY|DRAW_KEY|VAPID_PRIVATE_KEY|(TURNSTILE_SECRET|WEBHOOK_SECRET|WEBHOOK_URL)(_\w+)?)$/;
/** In the storage, from where workerd is started: a socket's path has hardly 100 bytes. */
const PLACES = { objects: "objects", lock: "lock" };
/** The Worker's directory in the storage, made anew with each start. */
const WORKER = "worker";
/** How long a site may take to be there when it is looked for, in milliseconds. */
const LOOK_MS = 2_000;

function readOptions() {
  const text = { type: "string" };
  const options = {
    ...{
      origin: text,
      listen: { ...text, default: "127.0.0.1:8080" },
      storage: text,
      config: text,
      env: text,
    },
    "trust-proxy": { ...text, multiple: true, default: [] },
  };
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    throw new Failure(`${error.message}\nanteroom serve --help lists the options`, 2);
  }
}

/** @param {string} given @returns {{ address: string, at: import("node:net").ListenOptions }} for workerd, and for Node */
function readListen(given) {
  if (/^unix:./.test(given)) {
    const path = resolve(given.slice("unix:".length));
    return { address: `unix:${path}`, at: { path } };
  }
  const [, bracketed, named, port] = given.match(/^(?:\[([\da-f:]+)\]|([\w.-]*|\*)):(\d{1,5})$/i) ?? [];
  if (!(Number(port) <= 65_535))
    throw new Failure(`--listen ${given}: write an address and a port such as 127.0.0.1:8080, or :8080`, 2);
  const host = bracketed ?? named;
  if (host === "" || host === "*") return { address: `*:${port}`, at: { port: Number(port) } };
  return { address: given, at: { host, port: Number(port) } };
}

/** @param {string} given @returns {URL} */
function readOrigin(given) {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (!/^https?:$/.test(url?.protocol) || url.href !== `${url.origin}/`)
    throw new Failure(`--origin ${given}: write scheme, host and port such as http://127.0.0.1:3000`, 2);
  return url;
}

/** @param {string} given @returns {string} a range with its bits */
function readRange(given) {
  const [, address, bits] = given.match(/^([\da-f.:]+)(?:\/(\d{1,3}))?$/i) ?? [];
  const most = { 4: 32, 6: 128 }[isIP(address ?? "")];
  if (!most || Number(bits) > most)
    throw new Failure(`--trust-proxy ${given}: write an address, or a range such as 10.0.0.0/8`, 2);
  return `${address}/${bits ?? most}`;
}

/** What wrangler.toml says, of an environment if one is named. */
async function readProject({ config = join(PROJECT, "wrangler.toml"), env }) {
  const { parse } = await import("smol-toml");
  const whole = parse(readFileSync(resolve(PROJECT, config), "utf8"));
  const project = env === undefined ? whole : { ...whole, ...whole.env[env] };
  if (project.services?.length > 0)
    throw new Failure(
      "wrangler.toml has [[services]]: there are no other Workers on this machine. Give --origin, or a room its origin, " +
        "and take them out",
      2,
    );
  return project;
}

/** @returns {{ vars: Record<string, unknown>, secrets: Record<string, string> }} */
function readVars(project, origin) {
  const here = Object.entries(process.env).filter(([name]) => SECRET.test(name));
  const file = existsSync(DEV_VARS) ? parseEnv(readFileSync(DEV_VARS, "utf8")) : {};
  const secrets = { ...file, ...Object.fromEntries(here) };
  if (!secrets.COOKIE_KEYS)
    throw new Failure(
      `COOKIE_KEYS is not set, and without it no room works. Write a line COOKIE_KEYS="…" into ${DEV_VARS}, or set it in ` +
        "the environment: openssl rand -base64 32 makes a key",
      2,
    );
  if (origin) delete secrets.ORIGIN;
  else if (!(secrets.ORIGIN ?? project.vars.ORIGIN))
    throw new Failure("Where is the site? Give --origin http://127.0.0.1:3000", 2);
  const taken = (name) => name in secrets || (origin && name === "ORIGIN");
  return { secrets, vars: Object.fromEntries(Object.entries(project.vars).filter(([name]) => !taken(name))) };
}

/** Goes into the storage, where nobody else is: two on one storage would each give away what there is. */
async function enter(storage) {
  try {
    mkdirSync(join(storage, PLACES.objects), { recursive: true, mode: 0o700 });
    accessSync(storage, constants.W_OK);
    process.chdir(storage);
  } catch (error) {
    throw new Failure(`--storage ${storage} cannot be written: ${error.message}`);
  }
  if ((await refusal({ path: PLACES.lock })) === undefined)
    throw new Failure(`--storage ${storage} is in use by another anteroom serve: end that first`);
  rmSync(PLACES.lock, { force: true });
}

/** Puts the Worker into the storage. @param {string} directory @returns {Promise<string[]>} its modules */
async function place(directory) {
  rmSync(directory, { recursive: true, force: true });
  const modules = await build(directory);
  cpSync(join(ROOT, "tools", "serve", "front.js"), join(directory, "front.js"));
  return ["front.js", ...modules];
}

/** @param {import("node:net").NetConnectOpts} where @returns {Promise<string | undefined>} why nobody answers there */
const refusal = (where) =>
  new Promise((done) => {
    const socket = connect({ ...where, timeout: LOOK_MS });
    const end = (why) => () => {
      socket.destroy();
      done(why);
    };
    socket.once("connect", end(undefined)).once("timeout", end("timeout"));
    socket.once("error", (error) => done(error.code));
  });

/** workerd would say it as well, but not as plainly. */
async function expectFree(at, given) {
  if (at.path) {
    if ((await refusal(at)) === undefined)
      throw new Failure(`--listen ${given}: somebody listens there already`);
    return rmSync(at.path, { force: true });
  }
  const code = await new Promise((done) => {
    const server = createServer().once("error", ({ code }) => done(code));
    server.listen(at, () => server.close(() => done(undefined)));
  });
  const why = {
    EADDRINUSE: "is in use: end what uses it, or choose another",
    EACCES: "may not be used by you",
  };
  if (code) throw new Failure(`--listen ${given} ${why[code] ?? `cannot be listened at: ${code}`}`);
}

async function serve() {
  const options = readOptions();
  const origin = options.origin === undefined ? undefined : readOrigin(options.origin);
  const { address: listen, at } = readListen(options.listen);
  const trusted = options["trust-proxy"].map(readRange);
  await setup();
  await underNode22();
  await check(
    ["config", "env"].flatMap((name) => (options[name] === undefined ? [] : [`--${name}`, options[name]])),
  );
  const project = await readProject(options);
  const { vars, secrets } = readVars(project, origin);
  await expectFree(at, options.listen);
  const storage = resolve(
    PROJECT,
    options.storage ?? process.env.STATE_DIRECTORY ?? join(".anteroom", "storage"),
  );
  await enter(storage);
  const modules = await place(join(storage, WORKER));
  const config = configOf({
    ...{ listen, origin, trusted, vars, project },
    secrets: Object.keys(secrets),
    places: { ...PLACES, modules },
  });
  writeFileSync(join(storage, WORKER, "config.capnp"), config);
  const site = origin && (await refusal({ host: origin.hostname, port: origin.port || 80 }));
  if (site)
    console.error(`Warning: nothing answers at ${origin.origin} (${site}): visitors get errors until then`);
  console.log(
    `Serving at ${options.listen}, in front of ${origin?.origin ?? "ORIGIN"}, whatever the check says of routes. Storage: ${storage}`,
  );
  const { default: module } = await import("workerd");
  // It says so itself, by a line of JSON for each socket that it listens on.
  const args = ["serve", "--control-fd=1", `${WORKER}/config.capnp`, "config"];
  process.removeAllListeners("warning");
  process.execve(module.default, [module.default, ...args], { ...process.env, ...secrets });
}

main(import.meta.url, serve, { help: HELP });
