/**
 * Runs files of tests, each in a process of its own: `node tools/test-files.mjs MILLISECONDS ATONCE FILE…`. `node --test`
 * would begin them in the order of their names.
 */
import { run } from "node:test";
import { spec } from "node:test/reporters";

const [timeout, concurrency, ...files] = process.argv.slice(2);
run({ files, concurrency: Number(concurrency), timeout: Number(timeout) })
  .on("test:fail", () => {
    process.exitCode = 1;
  })
  .compose(spec)
  .pipe(process.stdout);
