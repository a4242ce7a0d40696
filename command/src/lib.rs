//! The commands `check` and `plan` as WebAssembly. What they read and print goes through the arguments of `run`.
#![cfg(target_arch = "wasm32")]

use std::io::{Error, Result};
use std::path::Path;

use anteroom_check::{Host, check};
use anteroom_sim::plan_command::{PlanArguments, plan};
use clap::Parser;
use js_sys::Function;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

/// What a command has said and how it ended.
#[wasm_bindgen(getter_with_clone)]
pub struct Ended {
    /// The exit status.
    pub code: u8,
    /// For the standard output.
    pub out: String,
    /// For the standard error.
    pub err: String,
    /// A file to write, and what goes into it.
    pub file: Option<String>,
    /// See `file`.
    pub text: Option<String>,
}

impl Ended {
    fn with(code: u8, out: String, err: String) -> Self {
        Self { code, out, err, file: None, text: None }
    }

    /// Help that was asked for, or what is wrong with the arguments.
    fn by(error: &clap::Error) -> Self {
        let (text, code) = (error.render().to_string(), error.exit_code() as u8);
        if error.use_stderr() {
            Self::with(code, String::new(), text)
        } else {
            Self::with(code, text, String::new())
        }
    }
}

#[derive(Debug, Parser)]
#[command(name = "anteroom-sim", version)]
struct Simulator {
    #[command(subcommand)]
    command: Simulation,
}

#[derive(Debug, clap::Subcommand)]
enum Simulation {
    /// Tells what a day will be like for a room of yours, and what would make it better
    Plan(PlanArguments),
}

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console)]
    fn error(text: &str);
}

/// Runs `check` or `plan`.
///
/// `read` is called with a path and returns the file's text, or throws why it cannot be read. `now` is the time in
/// milliseconds since the epoch. `tick` is called with the part that is done, 0 to 1.
#[wasm_bindgen]
pub fn run(command: &str, arguments: Vec<String>, read: &Function, now: f64, tick: &Function) -> Ended {
    std::panic::set_hook(Box::new(|panic| error(&panic.to_string())));
    let read = |path: &Path| -> Result<String> {
        let path = JsValue::from_str(&path.to_string_lossy());
        let text = read.call1(&JsValue::NULL, &path).map_err(|thrown| Error::other(words(&thrown)))?;
        text.as_string().ok_or_else(|| Error::other("no text"))
    };
    match command {
        "check" => run_check(arguments, &Host { read: &read, now: now as u64 }),
        _ => run_plan(arguments, &read, tick),
    }
}

fn words(thrown: &JsValue) -> String {
    thrown.dyn_ref::<js_sys::Error>().map_or_else(|| format!("{thrown:?}"), |error| error.message().into())
}

fn run_check(arguments: Vec<String>, host: &Host) -> Ended {
    let name = "anteroom-check".to_owned();
    let arguments = match anteroom_check::Arguments::try_parse_from([name].into_iter().chain(arguments)) {
        Ok(arguments) => arguments,
        Err(error) => return Ended::by(&error),
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let valid = check(&arguments, host, &mut out, &mut err);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ended::with(u8::from(!valid), text(out), text(err))
}

fn run_plan(arguments: Vec<String>, read: &dyn Fn(&Path) -> Result<String>, tick: &Function) -> Ended {
    let names = ["anteroom-sim", "plan"].map(str::to_owned);
    let arguments = match Simulator::try_parse_from(names.into_iter().chain(arguments)) {
        Ok(Simulator { command: Simulation::Plan(arguments) }) => arguments,
        Err(error) => return Ended::by(&error),
    };
    let mut done = |part: f64| {
        // Who shows it cannot stop it.
        let _ = tick.call1(&JsValue::NULL, &JsValue::from_f64(part));
    };
    match plan(&arguments, read, &mut done) {
        Err(error) => Ended::with(2, String::new(), format!("Error: {error}\n")),
        Ok(told) => {
            let mut ended = Ended::with(0, told.text, String::new());
            if let Some((file, text)) = told.page {
                ended.file = Some(file.to_string_lossy().into_owned());
                ended.text = Some(text);
            }
            ended
        }
    }
}
