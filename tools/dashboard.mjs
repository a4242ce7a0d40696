/**
 * `npm run dashboard`: the dashboard with rooms that are made up, one for each state, to look at it and to work on it.
 */
import { watch } from "node:fs";
import { join } from "node:path";
import { setup } from "./setup.mjs";
import { writeTables } from "./tables.mjs";
import { Failure, main, ROOT, underNode22 } from "./toolchain.mjs";

main(
  import.meta.url,
  async () => {
    await setup();
    await underNode22();
    await writeTables();
    const { Command } = await import("commander");
    const { startDashboard, TOKENS } = await import("./dashboard/server.mjs");
    const { port } = new Command("npm run dashboard --")
      .description("Shows the operators' dashboard with rooms that are made up, one for each state.")
      .option("--port <number>", "where to listen", "8789")
      .parse()
      .opts();
    if (!/^\d+$/.test(port) || Number(port) > 65535) throw new Failure(`--port ${port} is not a port`);
    const server = await startDashboard({ port: Number(port) }).catch((error) => {
      throw new Failure(`Cannot listen on port ${port}: ${error.message}`);
    });
    watch(join(ROOT, "static", "dashboard"), () =>
      server.reload().catch(({ message }) => console.error(message)),
    );
    const tokens = Object.entries(TOKENS).map(([token, { role }]) => `${token} (role ${role})`);
    console.log(`\n  The dashboard, with rooms in every state: ${server.url}`);
    console.log(`  Tokens: ${tokens.join(", ")}\n  Ctrl-C ends it.\n`);
    await new Promise(() => {});
  },
  { stoppable: true },
);
