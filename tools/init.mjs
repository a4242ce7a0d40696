/**
 * `anteroom init`: a project of an owner's own. It asks what it is not told.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { runRust } from "./made.mjs";
import { writeSecrets } from "./secrets.mjs";
import { Failure, main, ROOT, SOURCE } from "./toolchain.mjs";

const TEXTS = join(ROOT, "tools", "init");
/** What is copied as it is, by its place in the project. (npm packs no `.gitignore`.) */
const COPIES = {
  ".gitignore": "gitignore",
  ".github/workflows/anteroom.yml": "github.yml",
  ".gitlab-ci.yml": "gitlab.yml",
  "pages/README.md": "pages.md",
};
const SCRIPTS = [
  "start",
  "check",
  "preview",
  "crowd",
  "plan",
  "deploy",
  "rollback",
  "serve",
  "room",
  "doctor",
];

/** What is asked for: the option, the question, what is taken if nobody answers, and what is wrong with an answer. */
const QUESTIONS = [
  {
    name: "host",
    text: "Which host shall have a waiting room? (empty: any host, to try it)",
    usual: () => "",
    wrong: (host) =>
      /^$|^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$/.test(host) || "a host such as shop.example.com",
  },
  {
    name: "path",
    text: "From which path on? (/: the whole site)",
    usual: () => "/",
    wrong: (path) => /^\/[^\s"\\?#]*$/.test(path) || "a path such as /sale",
  },
  {
    name: "room",
    text: "What shall the room be called?",
    usual: ({ path }) => path.toLowerCase().match(/[a-z][a-z0-9]*/)?.[0] ?? "site",
    wrong: (name) => /^[a-z][a-z0-9_]*$/.test(name) || "small letters, digits and _, such as sale",
  },
  {
    name: "totalActiveUsers",
    text: "How many users may be active at once?",
    usual: () => "1000",
    wrong: (number) => /^[1-9]\d*$/.test(number) || "a whole number from 1",
  },
  {
    name: "newUsersPerMinute",
    text: "How many new ones may enter per minute?",
    usual: () => "200",
    wrong: (number) => /^[1-9]\d*$/.test(number) || "a whole number from 1",
  },
];

/** @param {string[]} args @returns {Promise<{ directory: string, given: Record<string, string>, ask: boolean }>} */
async function readOptions(args) {
  const { Command } = await import("commander");
  const program = new Command("anteroom init")
    .description("Makes a project: a configuration with one room, secrets for this machine, workflows.")
    .argument("[directory]", "where", ".")
    .option("--host <host>", "the site's host, such as shop.example.com; any: to try it")
    .option("--path <path>", "the path from which on there is a room")
    .option("--room <name>", "the room's name")
    .option("--total-active-users <number>", "how many users may be active at once")
    .option("--new-users-per-minute <number>", "how many new ones may enter per minute")
    .option("-y, --yes", "ask nothing: what is not given is as usual")
    .parse(args, { from: "user" });
  const { yes, ...given } = program.opts();
  if (given.host === "any") given.host = "";
  return { directory: resolve(program.processedArgs[0]), given, ask: !yes && Boolean(process.stdin.isTTY) };
}

/** @returns {Promise<Record<string, string>>} an answer to every question */
async function answers(given, ask) {
  const { text, isCancel } = await import("@clack/prompts");
  const known = {};
  for (const { name, text: message, usual, wrong } of QUESTIONS) {
    const initialValue = usual(known);
    const validate = (answer = "") => {
      const is = wrong(answer);
      return is === true ? undefined : `Write ${is}`;
    };
    let answer = given[name] ?? initialValue;
    if (given[name] === undefined && ask) answer = await text({ message, initialValue, validate });
    if (isCancel(answer)) throw new Failure("Nothing was made.", 130);
    const option = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    if (validate(answer)) throw new Failure(`--${option} ${answer}: ${validate(answer).toLowerCase()}`, 2);
    known[name] = answer ?? "";
  }
  return known;
}

/** The bindings, migrations and settings are those of the Worker: from the configuration that it is tested with. */
async function configuration(name, { host, path, room, totalActiveUsers, newUsersPerMinute }) {
  const { getDomain } = await import("tldts");
  const ours = readFileSync(join(ROOT, "wrangler.toml"), "utf8");
  const compatibility = ours.slice(ours.indexOf("compatibility_date"), ours.indexOf("[build]")).trim();
  const objects = ours.slice(ours.indexOf("[[durable_objects.bindings]]"));
  const where = host
    ? `# The zone is the one that the host is in, on your account.
routes = [{ pattern = "${host}/*", zone_name = "${getDomain(host) ?? host}" }]
workers_dev = false`
    : `# To try it, at an address of workers.dev. For a site of yours: routes, and host below.
workers_dev = true`;
  return `name = "${name}"
main = ".anteroom/index.js"
${compatibility}
${where}

[build]
command = "npx anteroom build"
watch_dir = ["pages"]

# Where admitted visitors go. Empty: the zone's own origin. A URL: that server.
[vars]
ORIGIN = ""

# One table per room: its name is what follows ROOM_, in lower case. \`npm run check\` says what each will do.
[vars.ROOM_${room.toUpperCase()}]
${host ? `host = "${host}"\n` : ""}path = "${path}"
total_active_users = ${totalActiveUsers}
new_users_per_minute = ${newUsersPerMinute}

${objects}`;
}

/** What package.json says of this package where the command was called from: a version, or a file, which is taken along. */
function dependency(directory) {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const file = resolve("package.json");
  if (!existsSync(file)) return version;
  const { dependencies, devDependencies } = JSON.parse(readFileSync(file, "utf8"));
  const spec = { ...devDependencies, ...dependencies }.anteroom ?? version;
  const packed = spec.startsWith("file:") && resolve(spec.slice("file:".length));
  if (!packed) return spec;
  const copy = join(directory, basename(packed));
  if (packed !== copy) copyFileSync(packed, copy);
  return `file:${basename(packed)}`;
}

/** Adds what is needed to a package.json; what it says already stays. */
function packageJson(directory, name) {
  const file = join(directory, "package.json");
  const there = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : { name, private: true };
  const scripts = Object.fromEntries(SCRIPTS.map((script) => [script, `exec anteroom ${script}`]));
  const dependencies = { ...there.dependencies, anteroom: dependency(directory) };
  const whole = { ...there, scripts: { ...scripts, ...there.scripts }, dependencies };
  writeFileSync(file, `${JSON.stringify(whole, null, 2)}\n`);
}

main(import.meta.url, async () => {
  if (SOURCE) throw new Failure("The repository is a project already: its rooms are in wrangler.toml");
  const { directory, given, ask } = await readOptions(process.argv.slice(2));
  const made = ["wrangler.toml", "README.md", ...Object.keys(COPIES)];
  const old = made.find((file) => existsSync(join(directory, file)));
  if (old) throw new Failure(`${old} is there already: choose another directory, anteroom init my-room`, 2);
  const answered = await answers(given, ask);
  const name =
    basename(directory)
      .toLowerCase()
      .replace(/[^a-z0-9-]+/g, "-")
      .replace(/^-+|-+$/g, "") || "anteroom";
  mkdirSync(directory, { recursive: true });
  packageJson(directory, name);
  const config = join(directory, "wrangler.toml");
  writeFileSync(config, await configuration(name, answered));
  writeSecrets(join(directory, ".dev.vars"));
  const { default: Mustache } = await import("mustache");
  const readme = readFileSync(join(TEXTS, "readme.mustache"), "utf8");
  Mustache.escape = String;
  writeFileSync(join(directory, "README.md"), Mustache.render(readme, { name, ...answered }));
  for (const [file, text] of Object.entries(COPIES)) {
    mkdirSync(join(directory, file, ".."), { recursive: true });
    copyFileSync(join(TEXTS, text), join(directory, file));
  }
  await runRust("check", ["--config", config, "--pages", "pages"]);
  const here = directory === process.cwd();
  console.log(`
  It is in ${directory}. Next:${here ? "" : `\n    cd ${directory} && npm install`}
    npm start           the room on this machine, in front of a demo shop
    README.md           how to bring it to your site
`);
});
