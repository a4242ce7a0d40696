//! Prepares the pages' style: comments and indentation go, and the hashes that the pages'
//! Content-Security-Policy names are taken from exactly the bytes that the pages embed.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    // The templates are read by a macro: a change to one must compile the crate anew.
    println!("cargo:rerun-if-changed=static");
    println!("cargo:rerun-if-changed=askama.toml");
    println!("cargo:rustc-check-cfg=cfg(worker)");
    if env::var("CARGO_CFG_TARGET_ARCH")? == "wasm32" && env::var_os("CARGO_FEATURE_WORKER").is_some() {
        println!("cargo:rustc-cfg=worker");
    }
    prepare("health.css", "ANTEROOM_HEALTH_STYLE_HASH", without_css_comments)?;
    Ok(())
}

/// Writes the compacted `file` to the output directory and tells the compiler its hash.
fn prepare(file: &str, hash_name: &str, compact: fn(&str) -> String) -> Result<(), Box<dyn Error>> {
    let compacted = compact(&fs::read_to_string(Path::new("static").join(file))?);
    if compacted.contains("</") || compacted.contains("<!--") {
        return Err(format!("static/{file} would end the element that embeds it").into());
    }
    let hash = STANDARD.encode(Sha256::digest(compacted.as_bytes()));
    println!("cargo:rustc-env={hash_name}=sha256-{hash}");
    fs::write(Path::new(&env::var("OUT_DIR")?).join(file), compacted)?;
    Ok(())
}

/// Style without its comments and indentation.
fn without_css_comments(style: &str) -> String {
    let mut rest = style;
    let mut kept = String::new();
    while let Some((before, comment)) = rest.split_once("/*") {
        kept.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    joined(kept.lines())
}

/// The lines that hold something, without indentation.
fn joined<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}
