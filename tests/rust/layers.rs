//! The modules of the crate stand in layers: each uses only what stands below it.

use std::fs;
use std::path::{Path, PathBuf};

/// From the ground up.
const LAYERS: [&str; 27] = [
    "time",
    "hash",
    "text",
    "url",
    "wire",
    "slots",
    "bypass",
    "room",
    "config",
    "concern",
    "ticket",
    "check_in",
    "steering",
    "admission",
    "answer",
    "turnstile",
    "rehearsal",
    "origin",
    "health",
    "history",
    "notifications",
    "push",
    "operator",
    "counts",
    "protocol",
    "machines",
    "edge",
];

fn layer(module: &str) -> usize {
    let place = LAYERS.iter().position(|layer| *layer == module);
    place.unwrap_or_else(|| panic!("{module} is a new module: give it a place among LAYERS"))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let rust = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    rust.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

/// The modules that a source names, without those that only its comments name.
fn named(source: &str) -> Vec<&str> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.flat_map(|line| line.split("crate::").skip(1))
        .map(|rest| rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap())
        .collect()
}

#[test]
fn a_module_uses_only_what_stands_below_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for file in sources(&root) {
        let place = file.strip_prefix(&root).unwrap();
        let first = Path::new(place.components().next().unwrap().as_os_str());
        let module = first.file_stem().unwrap().to_str().unwrap();
        if module == "lib" {
            continue;
        }
        for used in named(&fs::read_to_string(&file).unwrap()) {
            assert!(!used.is_empty(), "{}: name one module in each use of crate::", place.display());
            assert!(
                used == module || layer(used) < layer(module),
                "{}: {module} uses {used}, which does not stand below it",
                place.display()
            );
        }
    }
}

/// The npm package has the core as WebAssembly without the Worker: what only one of them has is told apart by `cfg(worker)`.
#[test]
fn being_webassembly_is_not_being_the_worker() {
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("target_arch"), "{}: write cfg(worker)", file.display());
    }
}
