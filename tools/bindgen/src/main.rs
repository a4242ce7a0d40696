//! `anteroom-bindgen worker|node <wasm> <directory>`: writes `index.js` and the `index_bg.wasm` that it imports.

use std::env::args;
use std::error::Error;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = args().skip(1).collect();
    let [platform, wasm, directory] = arguments.as_slice() else {
        return Err("give a platform, a file and a directory".into());
    };
    let mut bindgen = Bindgen::new();
    bindgen.input_path(wasm).out_name("index").typescript(false);
    if platform == "node" {
        bindgen.nodejs_module(true)?;
    } else {
        // After an abort that no panic can unwind, the module starts anew: src/edge/objects.js.
        bindgen.module(true)?.reset_state_function(true);
    }
    bindgen.generate(directory)?;
    Ok(())
}
