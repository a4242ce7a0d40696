/**
 * `npm run campaign -- --minutes 10 --seed 1000`: looks for a world in which a room breaks a promise, by the simulator.
 * `npm run campaign -- --help` lists the options.
 */
import { setup } from "./setup.mjs";
import { environment, main, NIGHTLY, run } from "./toolchain.mjs";

main(import.meta.url, async () => {
  await setup();
  const simulator = ["run", "-q", "--release", "-p", "anteroom-sim", "--", "campaign"];
  await run("cargo", [...simulator, ...process.argv.slice(2)], {
    // The toolchain that building the Worker needs anyway.
    env: environment({ RUSTUP_TOOLCHAIN: NIGHTLY }),
    stdio: ["ignore", "inherit", "inherit"],
    failure: "", // the simulator has said it
  });
});
