//! The program that runs a benchmark under valgrind and prints its counts.

use std::process::ExitCode;

fn main() -> ExitCode {
    match gungraun_runner::runner::run::run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:?}");
            ExitCode::FAILURE
        }
    }
}
