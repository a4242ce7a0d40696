// The command line: every option, its default, and what is said when it is wrong.
import { Command, CommanderError, InvalidArgumentError, Option } from "commander";

/** A mistake of whoever called us, told in one line. */
export class UsageError extends Error {}

const NOTES = `
Examples:
  npm run crowd -- --visitors 200 --rate 20 --url http://localhost:8787
  npm run crowd -- --limit-active 5 --limit-new 10 --json

Exit code: 0 nothing was broken; 1 a limit or the order was; 2 the call was wrong or nothing answered.
Visitors are marked with ANTEROOM_TOKEN, the token of an operator whose role is steer; on this machine with the one that
npm start made. docs/rehearsal.md says how to rehearse a sale.

With the token the room is asked for its limits, and each moment is judged by those in force then, whoever changed them.
Without it by those given; a limit that is neither said nor given is not checked. What counts as active, new and passed over: tools/crowd/measure.mjs`;

/**
 * @typedef {import("./run.mjs").Crowd & { sessionSeconds: number, limitActive?: number, limitNew?: number,
 *   rehearsal?: string | false, maxPassedOverPercent: number, durationSeconds: number, connections: number, json: boolean,
 *   progressSeconds?: number, quiet: boolean }} Settings
 */

/**
 * @param {string[]} args What follows the name of the program.
 * @param {{ out: (text: string) => void }} io Where help goes.
 * @returns {Settings | undefined} Nothing when the user only wanted help.
 */
export function readOptions(args, { out }) {
  let complaint = "";
  const program = new Command("npm run crowd --")
    .description(
      "Plays visitors of a waiting room over HTTP and checks whether it kept its limits and the order.",
    )
    .option("--url <url>", "the page they open", readUrl, "http://localhost:8787/")
    .option("--visitors <count>", "how many come", whole(1, 100_000, 200), 200)
    .option("--rate <per second>", "how many arrive per second", number(0.001, 10_000, 20), 20)
    .addOption(
      new Option("--arrivals <pattern>", "at random moments, or one by one")
        .choices(["poisson", "even"])
        .default("poisson"),
    )
    .option("--pages <mean>", "pages that a visitor views", number(1, 1000, 3), 3)
    .option("--think <seconds>", "mean time between two pages", number(0, 86_400, 10), 10)
    .option("--patience <seconds>", "leave the queue after so long (default: never)", number(0, 86_400, 300))
    .option("--session <seconds>", "the room's session duration", number(1, 86_400, 60), 60)
    .option("--limit-active <users>", "the limit, where the room does not say it", whole(1, 1e9, 5))
    .option("--limit-new <users>", "the limit of new users per minute, likewise", whole(1, 1e9, 10))
    .option(
      "--max-passed-over <percent>",
      "of the queued, before the order counts as broken",
      number(0, 100, 2),
      2,
    )
    .option("--duration <seconds>", "stop after so long", number(1, 86_400, 600), 3600)
    .option("--connections <count>", "sockets at most", whole(1, 10_000, 256), 256)
    .option("--seed <number>", "the same seed makes the same crowd", whole(0, 2 ** 32 - 1, 1), 1)
    .option("--header <name: value>", "send this too; may be repeated", readHeader)
    .option(
      "--rehearsal <name>",
      "mark them with it in the room's history (default: date and time)",
      readName,
    )
    .option("--no-rehearsal", "do not mark them: the history takes them for real visitors")
    .option("--json", "print the result as JSON", false)
    .option(
      "--progress <seconds>",
      "a line of progress so often (default: 1 on a terminal, else 10)",
      number(0.1, 3600, 10),
    )
    .option("--quiet", "no progress line", false)
    .addHelpText("after", NOTES)
    .configureOutput({
      writeOut: out,
      writeErr: (text) => {
        complaint += text;
      },
    })
    .exitOverride();
  try {
    program.parse(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return undefined;
    throw new UsageError(`${complaint.trim()}\nSee every option with --help.`);
  }
  const given = program.opts();
  return {
    url: given.url,
    headers: given.header ?? {},
    visitors: given.visitors,
    rate: given.rate,
    arrivals: given.arrivals,
    seed: given.seed,
    pages: given.pages,
    thinkSeconds: given.think,
    patienceSeconds: given.patience ?? Infinity,
    sessionSeconds: given.session,
    limitActive: given.limitActive,
    limitNew: given.limitNew,
    maxPassedOverPercent: given.maxPassedOver,
    durationSeconds: given.duration,
    connections: given.connections,
    rehearsal: given.rehearsal,
    json: given.json,
    progressSeconds: given.progress,
    quiet: given.quiet,
  };
}

/** @param {number} min @param {number} max @param {number} example */
function number(min, max, example) {
  return (/** @type {string} */ text) => {
    const value = Number(text);
    if (text.trim() !== "" && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Give a number from ${min} to ${max}, such as ${example}.`);
  };
}

/** @param {number} min @param {number} max @param {number} example */
function whole(min, max, example) {
  return (/** @type {string} */ text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Give a whole number from ${min} to ${max}, such as ${example}.`);
  };
}

/** @param {string} text */
function readUrl(text) {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw new InvalidArgumentError("Give a whole address, such as http://localhost:8787/sale.");
  }
  if (url.username || url.password) {
    throw new InvalidArgumentError(
      "Leave name and password out of it; send --header 'authorization: ...' instead.",
    );
  }
  return url.href;
}

/** @param {string} text */
function readName(text) {
  if (/^[A-Za-z0-9_-]{1,32}$/.test(text)) return text;
  throw new InvalidArgumentError("Give 1 to 32 letters, digits, _ and -, such as friday-1.");
}

/** @param {string} text @param {Record<string, string>} others */
function readHeader(text, others = {}) {
  const match = /^([!#$%&'*+.^_`|~0-9a-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)$/i.exec(text);
  if (!match) throw new InvalidArgumentError("Give name and value, such as 'accept-language: de'.");
  const name = match[1].toLowerCase();
  if (name === "cookie") {
    throw new InvalidArgumentError("Leave it out: every visitor keeps cookies of its own.");
  }
  if (
    ["connection", "content-length", "expect", "keep-alive", "transfer-encoding", "upgrade"].includes(name)
  ) {
    throw new InvalidArgumentError("Leave it out: it belongs to the connection, not to the visitor.");
  }
  return { ...others, [name]: match[2].trimEnd() };
}
