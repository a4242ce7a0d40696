/** `npm run rollback`: back to the version that was deployed before; arguments go to wrangler rollback. */
import { setup } from "./made.mjs";
import { main, wrangler } from "./toolchain.mjs";

main(
  import.meta.url,
  async () => {
    await setup();
    await wrangler(["rollback", ...process.argv.slice(2)]);
  },
  {
    help: `Usage: npm run rollback -- [version] [options of wrangler rollback]

Goes back to a version of the Worker that was deployed before. What old code makes of what newer code has stored:
CHANGELOG.md.`,
  },
);
