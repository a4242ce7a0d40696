// One Worker in a workerd of its own, and the CPU time that this workerd has used.
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { Log, LogLevel, Miniflare } from "miniflare";

const COMPATIBILITY_DATE = "2026-07-01";

/** What Miniflare runs. */
export const WORKERD_VERSION = createRequire(createRequire(import.meta.url).resolve("miniflare"))(
  "workerd/package.json",
).version;

/** The workerds that we have started. @returns {number[]} */
function workerds() {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .filter((pid) => {
      try {
        // "<pid> (<name>) <state> <parent> ..."
        const [, name, parent] = /\((.*)\) \S (\d+) /.exec(readFileSync(`/proc/${pid}/stat`, "utf8"));
        return name === "workerd" && Number(parent) === process.pid;
      } catch {
        return false; // it has ended meanwhile
      }
    })
    .map(Number);
}

/** A workerd with one Worker in it. */
export class Runtime {
  #miniflare;
  #options;
  #pid;
  /** What the Worker has logged. */
  log = "";

  /**
   * @param {object} worker
   * @param {object[]} worker.modules As Miniflare takes them.
   * @param {Record<string, unknown>} [worker.bindings]
   * @param {Record<string, unknown>} [worker.durableObjects]
   * @param {string[]} [worker.compatibilityFlags]
   * @param {string} origin Where all that the Worker fetches goes, whatever its URL.
   * @param {number} [port] Where it listens; left out: anywhere.
   */
  static async start(worker, origin, port = 0) {
    const runtime = new Runtime();
    const others = workerds();
    const collect = (stream) =>
      stream.on("data", (chunk) => {
        runtime.log += chunk;
      });
    runtime.#options = {
      log: new Log(LogLevel.NONE),
      cf: false,
      handleRuntimeStdio: (out, error) => {
        collect(out);
        collect(error);
      },
      workers: [
        {
          name: "bench",
          compatibilityDate: COMPATIBILITY_DATE,
          // No detour by way of Miniflare's own Worker.
          unsafeDirectSockets: [{ host: "127.0.0.1", port }],
          outboundService: { external: { address: origin, http: {} } },
          ...worker,
        },
      ],
    };
    runtime.#miniflare = new Miniflare(runtime.#options);
    await runtime.#miniflare.ready;
    runtime.url = (await runtime.#miniflare.unsafeGetDirectURL("bench")).origin;
    [runtime.#pid] = workerds().filter((pid) => !others.includes(pid));
    return runtime;
  }

  /**
   * CPU time used so far, in seconds: user and system, all threads. The kernel's own count in nanoseconds, since
   * /proc/<pid>/stat tells hundredths of a second, which is too coarse for a few hundred requests.
   */
  cpuSeconds() {
    const tasks = `/proc/${this.#pid}/task`;
    const nanoseconds = readdirSync(tasks).map((task) =>
      Number(readFileSync(`${tasks}/${task}/schedstat`, "utf8").split(" ")[0]),
    );
    return nanoseconds.reduce((sum, each) => sum + each, 0) / 1e9;
  }

  /** Memory that it has, in bytes. */
  memoryBytes() {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.#pid}/status`, "utf8"));
    return Number(kilobytes) * 1_024;
  }

  /** As a deploy does: isolates and objects end and are made anew, what they have stored stays. */
  async deploy() {
    const others = workerds().filter((pid) => pid !== this.#pid);
    await this.#miniflare.setOptions(this.#options);
    [this.#pid] = workerds().filter((pid) => !others.includes(pid));
  }

  close() {
    return this.#miniflare.dispose();
  }
}
