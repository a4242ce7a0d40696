// The origin, in a thread of its own: it answers every request with the same bytes, so that it has next to nothing to
// do and does not stand in the way of what is measured. Only GET, which is all that is sent.
import { createServer } from "node:net";
import { isMainThread, parentPort, Worker } from "node:worker_threads";

/** By this header an answer is known to come from the origin. */
export const ORIGIN_HEADER = "x-origin";
export const ORIGIN_BODY = `<!doctype html><title>Shop</title>${"<p>Something to buy.</p>".repeat(40)}`;

/** @returns {Promise<{ address: string, requests: () => Promise<number>, close: () => Promise<void> }>} */
export async function startOrigin() {
  const worker = new Worker(new URL(import.meta.url));
  const message = () => new Promise((resolve) => worker.once("message", resolve));
  const port = await message();
  return {
    address: `127.0.0.1:${port}`,
    /** How many requests it has answered so far. */
    requests() {
      worker.postMessage("requests");
      return message();
    },
    async close() {
      await worker.terminate();
    },
  };
}

if (!isMainThread) {
  const answer = Buffer.from(
    "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncache-control: max-age=60\r\n" +
      `etag: "1"\r\n${ORIGIN_HEADER}: yes\r\ncontent-length: ${ORIGIN_BODY.length}\r\n\r\n${ORIGIN_BODY}`,
  );
  const END_OF_HEADERS = "\r\n\r\n";
  let requests = 0;
  const server = createServer((socket) => {
    socket.setNoDelay(true);
    socket.on("error", () => socket.destroy());
    let begun = "";
    socket.on("data", (chunk) => {
      begun += chunk.toString("latin1");
      for (;;) {
        const end = begun.indexOf(END_OF_HEADERS);
        if (end < 0) return;
        begun = begun.slice(end + END_OF_HEADERS.length);
        requests += 1;
        socket.write(answer);
      }
    });
  });
  server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));
  parentPort.on("message", () => parentPort.postMessage(requests));
}
