/**
 * `npm run preview`: every state of the waiting page in the browser, and the owner's own templates.
 */
import { setup } from "./made.mjs";
import { PAGES } from "./pages.mjs";
import { Failure, main, underNode22 } from "./toolchain.mjs";

main(
  import.meta.url,
  async () => {
    await setup();
    await underNode22();
    const { Command } = await import("commander");
    const { startPreview } = await import("./preview/server.mjs");
    const { port } = new Command("npm run preview --")
      .description(`Shows every state of the waiting page, and your templates in ${PAGES}/, in the browser.`)
      .option("--port <number>", "where to listen", "8788")
      .parse()
      .opts();
    if (!/^\d+$/.test(port) || Number(port) > 65535) throw new Failure(`--port ${port} is not a port`);
    const { url } = await startPreview({ port: Number(port) }).catch((error) => {
      throw new Failure(`Cannot listen on port ${port}: ${error.message}`);
    });
    console.log(`\n  The waiting page, in every state: ${url}\n  Ctrl-C ends it.\n`);
    await new Promise(() => {});
  },
  { stoppable: true },
);
