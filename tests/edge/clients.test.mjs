// Clients that are no browsers, as they come out of the box: what a waiting room answers them, and how each gets in.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";

import axios from "axios";

import { environment, PYTHON_PACKAGES } from "../../tools/toolchain.mjs";
import { clock } from "./clock.mjs";
import { letIn, room, startWorld } from "./world.mjs";

const run = promisify(execFile);

describe("clients", { concurrency: true }, () => {
  let world;
  let url;
  before(async () => {
    const full = { total_active_users: 1, refresh_interval_seconds: 5, queueing_status_code: 429 };
    const names = ["axios", "fetch", "curl", "python", "plain"];
    world = await startWorld({
      rooms: {
        ...Object.fromEntries(names.map((name) => [name, room(`/${name}`, full)])),
        quick: room("/quick"),
      },
    });
    url = world.address();
    for (const name of names) await letIn(world, 1, { path: `/${name}` });
  });
  after(() => world.close());

  /** What every client must be able to act on. */
  function expectWait({ status, type, retryAfter, ticket, body }) {
    assert.equal(status, 429);
    assert.match(type, /^application\/json/);
    assert.ok(retryAfter >= 1 && retryAfter <= 60, `${retryAfter} s`);
    assert.ok(ticket.length > 50, "a place to come back to");
    assert.equal(body.cfWaitingRoom.inWaitingRoom, true);
    assert.equal(body.cfWaitingRoom.queueingMethod, "fifo");
  }

  test("axios, as an app uses it", async () => {
    const client = axios.create({
      baseURL: url,
      headers: { "anteroom-ticket": "new" },
      validateStatus: () => true,
    });
    const answer = await client.get("/axios/api");
    expectWait({
      status: answer.status,
      type: answer.headers["content-type"],
      retryAfter: Number(answer.headers["retry-after"]),
      ticket: answer.headers["anteroom-ticket"],
      body: answer.data,
    });
  });

  test("Node's fetch that asks for JSON", async () => {
    const headers = { accept: "application/json", "anteroom-ticket": "new" };
    const answer = await fetch(`${url}/fetch/api`, { headers });
    expectWait({
      status: answer.status,
      type: answer.headers.get("content-type"),
      retryAfter: Number(answer.headers.get("retry-after")),
      ticket: answer.headers.get("anteroom-ticket"),
      body: await answer.json(),
    });
  });

  test("curl with a cookie jar, its place kept over two calls", async () => {
    const curl = async (jar) => {
      const args = [
        "-sS",
        "-b",
        jar,
        "-c",
        jar,
        "-D",
        "-",
        "-H",
        "accept: application/json",
        `${url}/curl/api`,
      ];
      return (await run("curl", args)).stdout;
    };
    const jar = `/tmp/anteroom-curl-${process.pid}`;
    const first = await curl(jar);
    assert.match(first, /^HTTP\/1\.1 429/);
    assert.match(first, /\r\nretry-after: \d+\r\n/i);
    assert.match(first, /"inWaitingRoom":true/);
    const second = await curl(jar);
    assert.match(second, /"inWaitingRoom":true/);
    assert.match(second, /set-cookie: __anteroom=/i);
    await run("rm", ["-f", jar]);
  });

  test("Python's requests with a session", async () => {
    const program = `
import json, sys, requests
session = requests.Session()
session.headers["accept"] = "application/json"
answers = [session.get(sys.argv[1]) for _ in range(2)]
print(json.dumps([{"status": a.status_code, "type": a.headers["content-type"], "retryAfter": int(a.headers["retry-after"]),
  "ticket": a.cookies.get("__anteroom", ""), "body": a.json()} for a in answers]))
`;
    const env = { ...environment(), PYTHONPATH: PYTHON_PACKAGES };
    const { stdout } = await run("python3", ["-c", program, `${url}/python/api`], { env });
    const answers = JSON.parse(stdout);
    assert.equal(answers.length, 2);
    for (const answer of answers) expectWait(answer);
  });

  test("the program of the documentation gets in, with its ticket in a header", async () => {
    // docs/sessions.md
    let ticket = "new";
    async function get(address) {
      for (;;) {
        const headers = { accept: "application/json", "anteroom-ticket": ticket };
        const answer = await clock.during(fetch(address, { headers }));
        ticket = answer.headers.get("anteroom-ticket") ?? ticket;
        if (answer.headers.get("anteroom") !== "waiting") return answer;
        await clock.sleep(1000 * answer.headers.get("retry-after"));
      }
    }
    // Somebody is in for a minute.
    const answer = await get(`${url}/plain/api`);
    assert.equal(await answer.text(), "GET /plain/api");
    const again = await get(`${url}/plain/api/more`);
    assert.equal(await again.text(), "GET /plain/api/more");
  });

  test("who may enter gets the origin's own answer, whatever the client", async () => {
    const answer = await axios.get(`${url}/quick/api`);
    assert.equal(answer.data, "GET /quick/api");
    const { stdout } = await run("curl", ["-sS", "-I", `${url}/quick/head`]);
    assert.match(stdout, /^HTTP\/1\.1 200/);
  });
});
