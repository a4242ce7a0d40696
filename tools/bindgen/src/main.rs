//! `anteroom-bindgen <wasm> <directory>`: writes `index.js` and the `index_bg.wasm` that it imports.

use std::env::args;
use std::error::Error;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = args().skip(1).collect();
    let [wasm, directory] = arguments.as_slice() else { return Err("give a file and a directory".into()) };
    Bindgen::new()
        .input_path(wasm)
        .out_name("index")
        .module(true)?
        .typescript(false)
        // After an abort that no panic can unwind, the module starts anew: src/edge/objects.js.
        .reset_state_function(true)
        .generate(directory)?;
    Ok(())
}
