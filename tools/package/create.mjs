#!/usr/bin/env node
// `npm create anteroom my-room` is `anteroom init my-room`.
import { createRequire } from "node:module";

const command = createRequire(import.meta.url).resolve("anteroom/tools/anteroom.mjs");
process.argv = [process.argv[0], command, "init", ...process.argv.slice(2)];
await import(command);
