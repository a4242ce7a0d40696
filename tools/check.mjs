/** `npm run check`: says what each room of wrangler.toml will do, or what is wrong with it or with a template. */
import { runRust, setup } from "./made.mjs";
import { PAGES, readPages } from "./pages.mjs";
import { Failure, main } from "./toolchain.mjs";

/** @param {string[]} args of the checker (`npm run check -- --help`); without any, it reads wrangler.toml */
export async function check(args) {
  await setup();
  await runRust("check", ["--pages", PAGES, ...args]);
  // Installed by the set-up.
  const { problemsOfAll } = await import("./templates.mjs");
  const problems = problemsOfAll(await readPages());
  for (const problem of problems) console.error(`Error: ${problem}`);
  if (problems.length > 0) throw new Failure("");
}

main(import.meta.url, () => check(process.argv.slice(2)));
