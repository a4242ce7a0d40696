//! `anteroom-check`: the check as a program.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anteroom_check::{Arguments, Host, check};
use clap::Parser as _;

fn main() -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "a tool has a clock; the core has none")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
    let host = Host { read: &|path| std::fs::read_to_string(path), now };
    let valid =
        check(&Arguments::parse(), &host, &mut std::io::stdout().lock(), &mut std::io::stderr().lock());
    if valid { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
