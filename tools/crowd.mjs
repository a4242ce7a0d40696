#!/usr/bin/env node
import { connect } from "node:net";
// A crowd to try a waiting room with: plays real visitors over HTTP and says whether the room kept its limits and
// the order. `npm run crowd -- --help` lists the options, crowd/measure.mjs defines the figures.
import { setTimeout as pause } from "node:timers/promises";

import { askForLimits } from "./crowd/ask.mjs";
import { Measure } from "./crowd/measure.mjs";
import { readOptions, UsageError } from "./crowd/options.mjs";
import { hints, progressLine, table, whatBroke } from "./crowd/print.mjs";
import { findToken, HEADER, prepare } from "./crowd/rehearsal.mjs";
import { runCrowd } from "./crowd/run.mjs";
import { Clock, newJar, openHttp } from "./crowd/world.mjs";
import { DEV_VARS } from "./toolchain.mjs";

const CONNECT_TIMEOUT_MS = 10_000;
/** npm passes Ctrl-C on, so one press may arrive twice; only a later one means "at once". */
const SAME_PRESS_MS = 500;

const out = (/** @type {string} */ text) => void process.stdout.write(text);
const err = (/** @type {string} */ text) => void process.stderr.write(text);

/** @returns {Promise<number>} The exit code. */
async function main() {
  const settings = readOptions(process.argv.slice(2), { out });
  if (!settings) return 0;
  await expectListener(settings.url);

  const { rehearsal, note } = await prepare(settings, {
    env: process.env,
    devVars: DEV_VARS,
    now: Date.now(),
  });
  if (rehearsal) settings.headers[HEADER] = rehearsal.header;
  if (!settings.quiet) err(`${note}\n`);

  const clock = new Clock();
  const http = openHttp({ connections: settings.connections, now: clock.now });
  const measure = new Measure(settings);
  const start = clock.now();
  /** @type {"" | "duration" | "signal"} */
  let stoppedBy = "";
  const stop = (/** @type {"duration" | "signal"} */ why) => {
    if (stoppedBy !== "") return;
    stoppedBy = why;
    clock.stop();
    void http.close();
  };
  const ended = new AbortController();
  const onSignal = () => {
    if (stoppedBy === "signal" && clock.now() - signalledAt > SAME_PRESS_MS) process.exit(130);
    signalledAt = clock.now();
    stop("signal");
  };
  let signalledAt = 0;
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  pause(settings.durationSeconds * 1000, undefined, { signal: ended.signal }).then(
    () => stop("duration"),
    () => {},
  );
  const token = findToken(settings.url, process.env, DEV_VARS)?.token;
  const asking = { url: settings.url, token, now: clock.now, signal: ended.signal };
  void askForLimits(measure.limits, asking);
  const progress = settings.quiet
    ? undefined
    : showProgress(settings.progressSeconds, () => {
        const seconds = (clock.now() - start) / 1000;
        return progressLine(measure.live(), {
          seconds,
          visitors: settings.visitors,
          limitActive: measure.limits.now.active,
        });
      });

  try {
    const world = { fetch: http.fetch, sleep: clock.sleep, now: clock.now, newJar };
    await runCrowd(settings, world, (event) => measure.add(event));
  } finally {
    progress?.end();
    ended.abort();
  }
  const end = clock.now();
  await http.close();

  const figures = measure.figures(end);
  if (figures.visitors.arrived === figures.visitors.unanswered && figures.requests.failed > 0) {
    const [reason] = Object.keys(figures.requests.failures);
    throw new UsageError(
      `error: option '--url' with '${settings.url}': not one request succeeded (${reason}). ` +
        "Open the address in a browser and give one that answers.",
    );
  }
  const seconds = (end - start) / 1000;
  return report(settings, figures, { seconds, stoppedBy, rehearsal, note }) ? 0 : 1;
}

/**
 * Prints what the crowd has seen.
 * @param {any} settings @param {any} figures
 * @param {{ seconds: number, stoppedBy: "" | "duration" | "signal", rehearsal: any, note: string }} run
 * @returns {boolean} whether the room kept its promises
 */
function report(settings, figures, { seconds, stoppedBy, rehearsal, note }) {
  const broken = whatBroke(figures);
  if (settings.json) {
    const { url, seed } = settings;
    const marked = rehearsal ? { name: rehearsal.name, until: rehearsal.until } : null;
    const result = {
      url,
      seed,
      seconds,
      stoppedBy: stoppedBy || null,
      rehearsal: marked,
      ...figures,
      broken,
    };
    out(`${JSON.stringify(result, null, 2)}\n`);
    for (const line of broken) err(`${line}\n`);
  } else {
    const early = { "": "", duration: " (stopped by --duration)", signal: " (interrupted)" }[stoppedBy];
    out(`${settings.url}, ${seconds.toFixed(1)} s${early}\n${table(figures)}\n`);
    out(`${note}\n`);
    for (const line of hints(figures)) out(`${line}\n`);
    for (const line of broken) out(`${line}\n`);
    if (broken.length === 0) out("Nothing was broken.\n");
  }
  return broken.length === 0;
}

/**
 * Shows a line: over the last one on a terminal, else below it, and there rarely: it may be a file.
 * @param {number | undefined} seconds between two lines @param {() => string} line
 */
function showProgress(seconds, line) {
  const terminal = process.stderr.isTTY;
  const show = () => err(terminal ? `\r\x1b[K${line()}` : `${line()}\n`);
  const timer = setInterval(show, 1000 * (seconds ?? (terminal ? 1 : 10)));
  return {
    end() {
      clearInterval(timer);
      show();
      if (terminal) err("\n");
    },
  };
}

/** A crowd in front of a closed door tells nothing: say so at once. @param {string} url */
async function expectListener(url) {
  const { hostname, port, protocol } = new URL(url);
  const socket = connect({
    host: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port || (protocol === "https:" ? 443 : 80)),
    timeout: CONNECT_TIMEOUT_MS,
  });
  try {
    await new Promise((resolve, reject) => {
      socket.once("connect", resolve).once("error", reject);
      socket.once("timeout", () => reject(Object.assign(new Error("no answer"), { code: "ETIMEDOUT" })));
    });
  } catch (error) {
    const reason = error instanceof Error && "code" in error ? error.code : error;
    throw new UsageError(
      `error: option '--url' with '${url}': nothing listens there (${reason}). ` +
        "Start the room first (npm start), or give the address where it runs.",
    );
  } finally {
    socket.destroy();
  }
}

// A reader that has gone (`| head`) is no reason to fail.
process.stdout.on("error", () => {});
process.stderr.on("error", () => {});
try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  err(`${error.message}\n`);
  process.exitCode = 2;
}
