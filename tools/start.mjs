/**
 * `npm start`: the demo room in front of a demo origin, on this machine. Arguments go to wrangler dev.
 */
import { createServer } from "node:net";
import { build, roomToTry, setup } from "./made.mjs";
import { writeSecrets } from "./secrets.mjs";
import { Failure, main, startWrangler, underNode22 } from "./toolchain.mjs";

/** @returns {number} where to listen: the variable PORT, else wrangler's usual one. */
function wantedPort() {
  const text = process.env.PORT || "8787";
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65535) {
    throw new Failure(`PORT=${text} is not a port: use a number from 1 to 65535`);
  }
  return port;
}

/**
 * wrangler would say so as well, but after the build and in many lines.
 * @param {number} port
 */
async function expectFree(port) {
  for (const host of ["127.0.0.1", "::1"]) {
    const error = await new Promise((done) => {
      const server = createServer();
      server.on("error", done);
      server.listen({ port, host }, () => server.close(() => done(undefined)));
    });
    if (error?.code === "EADDRINUSE") {
      throw new Failure(
        `Port ${port} is in use: end what uses it, or choose another, PORT=${port + 1} npm start`,
      );
    }
    if (error?.code === "EACCES") {
      throw new Failure(`Port ${port} may not be used by you: choose another, PORT=8787 npm start`);
    }
    // Anything else: this machine has no such address, so nobody uses it either.
  }
}

/**
 * Resolves when wrangler dev has ended, which it does not by itself.
 * @param {number} port
 * @param {string} origin its URL
 * @param {string} path where the room is
 */
async function serve(port, origin, path) {
  const args = ["dev", "--port", `${port}`, "--var", `ORIGIN:${origin}`, ...process.argv.slice(2)];
  const wrangler = startWrangler(args, { stdio: ["ignore", "pipe", "inherit", "ipc"] });
  // wrangler's own report of what it starts is worth reading only when it does not.
  let report = "";
  let isReady = false;
  wrangler.stdout.on("data", (chunk) => {
    if (isReady) process.stdout.write(chunk);
    else report += chunk;
  });
  wrangler.on("message", (message) => {
    if (isReady || !`${message}`.includes("DEV_SERVER_READY")) return;
    isReady = true;
    const url = `http://localhost:${port}`;
    console.log(`
  The waiting room is open: ${url}${path}
  Behind it, the demo origin: ${origin}
  Its dashboard: ${url}/__anteroom/ (sign in with the ADMIN_TOKEN in .dev.vars)
  A crowd to try it with: npm run crowd -- --visitors 200 --rate 20 --url ${url}${path}
  Ctrl-C ends all of it.
`);
  });
  const code = await new Promise((done) => wrangler.on("exit", done));
  process.stdout.write(isReady ? "" : report);
  throw new Failure(`wrangler dev ended by itself (${code})`);
}

main(
  import.meta.url,
  async () => {
    const port = wantedPort();
    await expectFree(port);
    await setup();
    await underNode22();
    await build();
    writeSecrets();
    const { startDemoOrigin } = await import("./demo-origin.mjs");
    const demo = await roomToTry();
    const origin = await startDemoOrigin(demo);
    await serve(port, origin.url, demo.path);
  },
  {
    stoppable: true,
    help: `Usage: [PORT=8787] npm start -- [options of wrangler dev]

Serves the demo room in front of a demo shop, on this machine.`,
  },
);
