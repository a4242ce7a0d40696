//! `anteroom-bindgen worker|node <wasm> <directory>`: writes `index.js` and the `index_bg.wasm` that it imports.

use std::collections::HashMap;
use std::env::args;
use std::error::Error;
use std::fs::{read_to_string, write};
use std::path::Path;

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
    let mut output = bindgen.generate_output()?;
    let module = output.wasm_mut();
    let imports = module.imports.iter_mut().map(|import| &mut import.name);
    let short = shorten(imports.chain(module.exports.iter_mut().map(|export| &mut export.name)));
    output.emit(directory)?;
    let script = Path::new(directory).join("index.js");
    write(&script, renamed(&read_to_string(&script)?, &short))?;
    Ok(())
}

/// The names by which the two files know each other hold a hash each, which nothing packs: 4 KB of the Worker.
fn shorten<'name>(names: impl Iterator<Item = &'name mut String>) -> HashMap<String, String> {
    let mut short = HashMap::new();
    for name in names.filter(|name| name.starts_with("__wb") || name.starts_with("wasm_bindgen_")) {
        let next = format!("${}", short.len());
        let new: &String = short.entry(name.clone()).or_insert(next);
        name.clone_from(new);
    }
    short
}

/// The script, with its words exchanged.
fn renamed(script: &str, short: &HashMap<String, String>) -> String {
    let is_between = |character: char| !character.is_alphanumeric() && !"_$".contains(character);
    let words = script.split_inclusive(is_between).flat_map(|part| {
        let word = part.trim_end_matches(is_between);
        [short.get(word).map_or(word, String::as_str), &part[word.len()..]]
    });
    words.collect()
}
