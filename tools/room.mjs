#!/usr/bin/env node
// Rooms from a terminal: what they do, and what they shall do. `npm run room -- --help` lists the commands,
// docs/api.md says what lies behind each.
import { act } from "./room/act.mjs";
import { Refused } from "./room/api.mjs";
import { readCommand, UsageError } from "./room/options.mjs";

const out = (/** @type {string} */ text) =>
  void process.stdout.write(text.endsWith("\n") ? text : `${text}\n`);

// A reader that has gone (`| head`) is no reason to fail.
process.stdout.on("error", () => {});
process.stderr.on("error", () => {});
try {
  const command = readCommand(process.argv.slice(2), { out });
  if (command) process.exitCode = await act(command, { out });
} catch (error) {
  if (!(error instanceof UsageError || error instanceof Refused)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = error instanceof Refused ? error.code : 2;
}
