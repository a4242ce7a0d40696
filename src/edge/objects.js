// The Durable Objects' classes: those of Rust, and what happens to their objects when Rust starts anew. A panic is the
// error of one request. After what nothing unwinds (no memory is left, say), wasm-bindgen starts the WebAssembly module
// anew with the next call, and all that it held is gone; so each object is then made anew, as after a restart.
import * as rust from "../../build/rust/index.js";

/** What the platform calls. */
const HANDLERS = ["fetch", "alarm", "webSocketMessage", "webSocketClose", "webSocketError"];

/** @returns {number} which start of the module this is; a start that is due happens now. */
function start() {
  return rust.__worker_init_state().instanceId;
}

/** @param {new (state: DurableObjectState, env: unknown) => object} Rust */
function durable(Rust) {
  return class Durable {
    #given;
    #object;
    #start;

    constructor(...given) {
      this.#given = given;
      this.#current();
    }

    #current() {
      const now = start();
      if (this.#start !== now) this.#object = new Rust(...this.#given);
      this.#start = now;
      return this.#object;
    }

    static {
      for (const handler of HANDLERS.filter((name) => name in Rust.prototype)) {
        Durable.prototype[handler] = function (...given) {
          return this.#current()[handler](...given);
        };
      }
    }
  };
}

export const Anywhere = durable(rust.Anywhere);
export const Counter = durable(rust.Counter);
export const DataCenter = durable(rust.DataCenter);
export const Global = durable(rust.Global);
export const Health = durable(rust.Health);
