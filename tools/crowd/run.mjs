// Sends the visitors in, each at its time, and waits for all of them.
import { exponential, playVisitor, Stopped, seeded } from "./visitor.mjs";

/**
 * @typedef {import("./visitor.mjs").Habits & { visitors: number, rate: number, arrivals: "poisson" | "even",
 *   seed: number }} Crowd
 */

/**
 * @param {Crowd} crowd
 * @param {import("./visitor.mjs").World & { newJar: () => import("./visitor.mjs").Jar }} world
 * @param {(event: import("./measure.mjs").CrowdEvent) => void} report
 */
export async function runCrowd(crowd, world, report) {
  const { newJar, ...tools } = world;
  const random = seeded(crowd.seed);
  const playing = [];
  const start = tools.now();
  let due = 0;
  try {
    for (let id = 0; id < crowd.visitors; id += 1) {
      // From the start, not from the last arrival: delays must not add up.
      const early = due - (tools.now() - start) / 1000;
      if (early > 0) await tools.sleep(early);
      playing.push(
        playVisitor({ ...crowd, ...tools, id, report, jar: newJar(), random: seeded(crowd.seed, id + 1) }),
      );
      due += crowd.arrivals === "even" ? 1 / crowd.rate : exponential(random, 1 / crowd.rate);
    }
  } catch (error) {
    if (!(error instanceof Stopped)) throw error;
  }
  await Promise.all(playing);
}
