// The same as pass-through.js, but Rust is asked: benches/rust-pass-through.
import { fetch } from "../../target/bench/rust/index.js";

export default { fetch };
