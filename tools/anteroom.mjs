#!/usr/bin/env node
/**
 * The command `anteroom`, and what npm's scripts call: `anteroom start` is tools/start.mjs, and so on.
 */
import { readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ROOT, SOURCE, underNode22 } from "./toolchain.mjs";

/** Each command's tool, and what it does. */
export const COMMANDS = {
  init: ["init.mjs", "makes a project: a configuration with a room, secrets, workflows"],
  start: ["start.mjs", "serves the room on this machine, in front of a demo shop"],
  check: ["check.mjs", "says what each room will do, or what is wrong with it"],
  preview: ["preview.mjs", "shows the waiting page in every state, and your templates"],
  crowd: ["crowd.mjs", "sends a crowd of visitors to a room"],
  plan: ["plan.mjs", "tells what a day will be like for a room"],
  deploy: ["deploy.mjs", "checks, then brings the Worker to Cloudflare"],
  rollback: ["rollback.mjs", "goes back to the version that was deployed before"],
  serve: ["serve.mjs", "serves the room on this machine, in front of your site, without Cloudflare"],
  doctor: ["doctor.mjs", "asks a deployed room what it sees, and says how to mend what is wrong"],
  room: ["room.mjs", "shows and steers rooms while they run"],
  build: ["made.mjs", "puts the Worker where wrangler.toml says that it is"],
};

async function anteroom() {
  const [command, ...args] = process.argv.slice(2);
  if (command === undefined || ["help", "--help", "-h"].includes(command)) {
    const list = Object.entries(COMMANDS).map(([name, [, what]]) => `  ${name.padEnd(10)}${what}`);
    console.log(`Usage: anteroom <command> [options]\n\n${list.join("\n")}\n\nEach has a --help of its own.`);
  } else if (["--version", "-V"].includes(command)) {
    console.log(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).version);
  } else if (!Object.hasOwn(COMMANDS, command)) {
    console.error(`anteroom ${command}: there is no such command. anteroom --help lists them.`);
    process.exitCode = 2;
  } else {
    // The repository's tools install their Node first.
    if (!SOURCE) await underNode22();
    const tool = fileURLToPath(new URL(COMMANDS[command][0], import.meta.url));
    process.argv = [process.argv[0], tool, ...args];
    await import(tool);
  }
}

if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) await anteroom();
