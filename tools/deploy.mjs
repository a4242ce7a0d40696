/** `npm run deploy`: check, build, wrangler deploy; arguments go to wrangler (`npm run deploy -- --dry-run`). */
import { parseArgs } from "node:util";
import { check } from "./check.mjs";
import { build } from "./made.mjs";
import { main, wrangler } from "./toolchain.mjs";

main(
  import.meta.url,
  async () => {
    const args = process.argv.slice(2);
    // What is checked must be what is deployed.
    const options = { config: { type: "string", short: "c" }, env: { type: "string", short: "e" } };
    const { values } = parseArgs({ args, options, strict: false });
    await check(
      Object.entries(values).flatMap(([name, value]) => (name in options ? [`--${name}`, value] : [])),
    );
    await build();
    console.log(`
The Worker seals its cookies with a secret, COOKIE_KEYS, which a deployment keeps. Not set yet? Do so now:
  openssl rand -base64 32 | npx wrangler secret put COOKIE_KEYS
`);
    await wrangler(["deploy", ...args]);
  },
  {
    help: `Usage: npm run deploy -- [options of wrangler deploy]

Checks the configuration, builds the Worker and deploys it.`,
  },
);
