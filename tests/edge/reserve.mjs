// A server that goes away gives its port back, and any other test's server may be given it meanwhile.
import { once } from "node:events";
import { connect, createServer } from "node:net";

/**
 * Keeps a port of loopback on which nobody listens: whoever connects is refused, and no server that asks for any port gets
 * this one. A connection from that port holds it. Returns what gives it back.
 * @param {number} port
 */
export async function reserve(port) {
  const keeper = createServer((socket) => socket.on("error", () => {}).unref()).listen(0, "127.0.0.1");
  await once(keeper, "listening");
  const to = keeper.address().port;
  const held = connect({ host: "127.0.0.1", port: to, localAddress: "127.0.0.1", localPort: port });
  await Promise.all([once(held, "connect"), once(keeper, "connection")]);
  // A test that ends without it does not wait for it.
  for (const end of [held, keeper]) end.unref();
  return async () => {
    // Reset, so that nothing of it lingers on the port.
    held.resetAndDestroy();
    keeper.close();
    await once(keeper, "close");
  };
}
