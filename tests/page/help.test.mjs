// Asked for help, an npm command says how it is called, and does nothing else.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

for (const name of ["start", "test", "build", "deploy"]) {
  test(`--help of npm run ${name} shows the command as it is called`, () => {
    const program = fileURLToPath(new URL(`../../tools/${name}.mjs`, import.meta.url));
    const said = execFileSync(process.execPath, [program, "--help"], { encoding: "utf8" });
    assert.match(said, new RegExp(`^Usage: .*npm (run )?${name}\\b`));
    assert.doesNotMatch(said, /Compiling|Set-up/);
  });
}
