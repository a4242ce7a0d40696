// The command line: every command, its options, and what is said when it is wrong.
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from "commander";
import { parse } from "smol-toml";

/** A mistake of whoever called us, told in one line. */
export class UsageError extends Error {}

const NOTES = `
Fields: queue_all, suspended (true or false), mode (enforce or observe), enforce_share (0 to 1, in a room that
  observes), total_active_users, new_users_per_minute, session_duration, refresh_interval_seconds (whole numbers),
  message (a text; empty: none).

Examples:
  npm run room -- status
  npm run room -- set shop queue_all=true total_active_users=500 --url https://shop.example.com
  npm run room -- set shop suspended=true --until 30m --reason "Payment is down"
  npm run room -- plan shop queue_all=true --from 2026-11-29T02:00+01:00 --until 2026-11-29T04:00+01:00 --weekly \\
    --zone Europe/Berlin --reason "Backup"
  npm run room -- clear shop --all
  npm run room -- event shop sale start
  npm run room -- export > rooms.toml
  npm run room -- apply -f rooms.toml
  npm run room -- create sale host=shop.example.com path=/sale total_active_users=500 new_users_per_minute=100
  npm run room -- edit sale
  npm run import -- --from cloudflare --zone 023e105f4ecef8ad9ca31a8372d0c353
  npm run room -- history shop --from 2026-11-20T18:00:00Z --format csv > history.csv

The token is that in ANTEROOM_TOKEN; for a room on this machine the one that npm start made.
Exit code: 0 done; 1 the room refused it, does not answer, or has problems; 2 the call or the token was wrong, or nothing
answered.`;

/** How a field's value is written, by its first letters: numbers and switches; all else is text. */
function value(field, text) {
  if (field === "message") return text;
  if (text === "true" || text === "false") return text === "true";
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}

/** @param {string} text @param {Record<string, unknown>} [others] */
function readField(text, others = {}) {
  const equals = text.indexOf("=");
  const field = text.slice(0, equals);
  if (equals < 1) throw new InvalidArgumentError("Write each as field=value, such as queue_all=true.");
  if (Object.hasOwn(others, field)) throw new InvalidArgumentError(`${field} is there twice.`);
  return { ...others, [field]: value(field, text.slice(equals + 1)) };
}

/**
 * A field of a room that is made, as TOML or text; behind dots the fields of a table: `anteroom.message=Hello`.
 * @param {string} text @param {Record<string, any>} [others]
 */
function readTableField(text, others = {}) {
  const equals = text.indexOf("=");
  const names = text.slice(0, equals).split(".");
  if (equals < 1 || names.includes(""))
    throw new InvalidArgumentError("Write each as field=value, such as path=/sale.");
  const fields = structuredClone(others);
  let table = fields;
  for (const name of names.slice(0, -1)) {
    if (!Object.hasOwn(table, name)) table[name] = {};
    table = table[name];
  }
  const last = names.at(-1);
  if (typeof table !== "object" || Object.hasOwn(table, last))
    throw new InvalidArgumentError(`${names.join(".")} is there twice.`);
  table[last] = tomlValue(text.slice(equals + 1));
  return fields;
}

/** @param {string} text */
function tomlValue(text) {
  try {
    const { value, ...more } = parse(`value = ${text}`);
    // A time is sent as it was written.
    if (Object.keys(more).length === 0 && !(value instanceof Date)) return JSON.parse(JSON.stringify(value));
  } catch {}
  return text;
}

/** @param {string} text */
function readUrl(text) {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "http:" && url?.protocol !== "https:") {
    throw new InvalidArgumentError("Give the site's address, such as https://shop.example.com.");
  }
  if (url.username || url.password) throw new InvalidArgumentError("Leave name and password out of it.");
  return url.origin;
}

/** @param {string} text */
function readTime(text) {
  if (/^\d{1,16}$/.test(text)) return text;
  const time = /T.*(Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) throw new InvalidArgumentError("Write a time with its zone: 2026-11-20T18:00:00Z.");
  return `${time}`;
}

/** When an override ends: a time, or how long it holds. The room reads durations. @param {string} text */
function readEnd(text) {
  if (/^(\d+ ?(s|sec|m|min|h|d) ?)+$/.test(text)) return text;
  if (!text.includes("T"))
    throw new InvalidArgumentError("Write a time with its zone, 2026-11-20T18:00Z, or how long: 30m.");
  return Number(readTime(text));
}

/** @param {number} max */
function whole(max) {
  return (/** @type {string} */ text) => {
    if (/^\d+$/.test(text) && Number(text) >= 1 && Number(text) <= max) return Number(text);
    throw new InvalidArgumentError(`Give a whole number from 1 to ${max}.`);
  };
}

/** Every command with its arguments and options. @param {(usage: string, description: string) => Command} add */
function addCommands(add) {
  const room = "the room's name";
  const seen = () =>
    new Option("--if-version <version>", "only while this version is in force").argParser(whole(2 ** 31));
  const reason = () => new Option("--reason <text>", "why, for the log");
  add("status", "what all rooms do");
  add("show", "what one room does, and what is steered in it").argument("<room>", room);
  add("set", "changes fields: in force within seconds, until cleared or --until")
    .argument("<room>", room)
    .argument("<field=value...>", "what to set", readField)
    .option("--until <time>", "it ends by itself then (2026-11-20T18:00Z), or after that (30m)", readEnd)
    .addOption(reason())
    .addOption(seen());
  add("plan", "plans a change: it begins and ends by itself, once or each week")
    .argument("<room>", room)
    .argument("<field=value...>", "what to set then", readField)
    .requiredOption("--from <time>", "when it begins (2026-11-27T09:00+01:00)", readTime)
    .option("--until <time>", "when it ends; without it, it holds until it is cleared", readTime)
    .option("--weekly", "it comes back each week at the same time of day", false)
    .option("--zone <name>", "in which time zone that is", "UTC")
    .addOption(reason());
  add("plans", "what is planned").argument("<room>", room);
  add("drop", "drops what is planned")
    .argument("<room>", room)
    .argument("<plan>", "its id, as plans says it");
  add("clear", "fields are as deployed again")
    .argument("<room>", room)
    .argument("[field...]", "which fields")
    .option("--all", "all fields and events; says first what that changes", false)
    .option("--yes", "with --all: do it without a question", false)
    .option("--resume <event...>", "with --all: an event that was called off may go on", [])
    .addOption(reason())
    .addOption(seen());
  add("keep", "overrides stay, though a deploy has changed what they override")
    .argument("<room>", room)
    .argument("<field...>", "which fields")
    .addOption(reason())
    .addOption(seen());
  add("event", "starts or ends an event now, or lets its times be as deployed")
    .argument("<room>", room)
    .argument("<event>", "the event's name")
    .addArgument(new Argument("<what>", "what to do").choices(["start", "end", "clear"]))
    .addOption(reason())
    .addOption(seen());
  add("create", "makes a room")
    .argument("<room>", "what to call it")
    .argument("<field=value...>", "its fields, as the API has them; TOML or text", readTableField)
    .option("--yes", "do it without a question", false);
  add("edit", "opens a room that was made at run time in $EDITOR; then says what changes, asks, and does it")
    .argument("<room>", room)
    .option("--yes", "do it without a question", false);
  add("import", "makes rooms of a zone at Cloudflare here; says first what that changes")
    .addOption(new Option("--from <product>", "where they are").choices(["cloudflare"]).makeOptionMandatory())
    .requiredOption("--zone <id>", "its id there; the token is that in CLOUDFLARE_API_TOKEN")
    .option("--yes", "do it without a question", false);
  add("export", "the rooms made at run time, as TOML")
    .option("--deployed", "also those of vars, to move them over", false)
    .option(
      "--cloudflare <zone>",
      "those of this zone at Cloudflare, with the token in CLOUDFLARE_API_TOKEN",
    );
  add("apply", "makes rooms as they are in a file; says first what that changes")
    .requiredOption("-f, --file <file>", "what export writes")
    .option("--prune", "delete rooms that are not in it", false)
    .option("--yes", "do it without a question", false);
  add("token", "makes, lists and revokes tokens; one that is made is printed, this once")
    .addArgument(new Argument("<what>", "what to do").choices(["create", "list", "revoke"]))
    .argument("[token]", "its name")
    .addOption(
      new Option("--role <role>", "what it may").choices(["view", "steer", "configure"]).default("view"),
    )
    .option("--expires <time>", "when it ends (2030-01-31T00:00Z); without it never", readTime);
  add("audit", "who changed what, newest first")
    .argument("<room>", room)
    .option("--limit <entries>", "how many", whole(1000), 20)
    .option("--before <id>", "only older ones", whole(2 ** 52));
  add("history", "a room's past")
    .argument("<room>", room)
    .option("--from <time>", "from then on (default: an hour before)", readTime)
    .option("--to <time>", "until then (default: now)", readTime)
    .addOption(
      new Option("--resolution <which>", "a row for each")
        .choices(["minute", "hour", "auto"])
        .default("auto"),
    )
    .option("--fields <names>", "only these, separated by commas")
    .option("--colo <code>", "of this data center alone")
    .addOption(
      new Option("--format <format>", "how to print it").choices(["table", "csv", "json"]).default("table"),
    );
  add("watch", "a line whenever something changes")
    .argument("<room>", room)
    .option("--count <lines>", "end after so many", whole(1e9));
}

/**
 * @typedef {{ name: string, url: string, json: boolean, room?: string, [option: string]: any }} Call
 * @param {string[]} args What follows the name of the program.
 * @param {{ out: (text: string) => void }} io Where help goes.
 * @returns {Call | undefined} Nothing when the user only wanted help.
 */
export function readCommand(args, { out }) {
  let complaint = "";
  /** @type {Call | undefined} */
  let call;
  const program = new Command("npm run room --")
    .description("Shows and steers the rooms of a deployment.")
    // They may stand before the command or behind it.
    .option("--url <url>", "the site", readUrl, "http://localhost:8787")
    .option("--json", "print what the deployment answers", false)
    .addHelpText("after", NOTES)
    .configureHelp({ showGlobalOptions: true })
    .helpCommand(false);
  const add = (/** @type {string} */ usage, /** @type {string} */ description) => {
    const command = program.command(usage).description(description).copyInheritedSettings(program);
    command.action((...given) => {
      const names = command.registeredArguments.map((argument) => argument.name());
      const values = names.map((name, index) => [name, given[index]]);
      call = {
        name: command.name(),
        ...command.optsWithGlobals(),
        ...Object.fromEntries(values.filter(([, value]) => value !== undefined)),
      };
    });
    return command;
  };
  addCommands(add);
  for (const command of [program, ...program.commands]) {
    command
      .configureOutput({
        writeOut: out,
        writeErr: (text) => {
          complaint += text;
        },
      })
      .exitOverride();
  }
  try {
    program.parse(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return undefined;
    const [first] = complaint.trim().split("\n\n");
    throw new UsageError(
      args.length === 0
        ? complaint.trim()
        : `${first || "error: the call is wrong"}\nSee every command with --help.`,
    );
  }
  if (call?.name === "clear" && call.all === call.field?.length > 0) {
    throw new UsageError("error: clear: name the fields, or say --all.");
  }
  if (call?.name === "clear" && !call.all && (call.yes || call.resume.length > 0)) {
    throw new UsageError("error: clear: --yes and --resume go only with --all.");
  }
  return call;
}
