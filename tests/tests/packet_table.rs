//! The table of packets, run through the programs as this machine's kernel loads them.

use std::process::ExitCode;

use lb_tests::{packets::table, sandbox};
use libtest_mimic::Arguments;

/// Packets on which the programs and the pure decisions are compared.
fn packets() -> u64 {
    if std::env::var_os("SPILLWAY_TEST_QUICK").is_some() { 50_000 } else { 1_000_000 }
}

fn main() -> ExitCode {
    let sandbox = sandbox::enter();
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let mut trials = table::trials(packets());
    match sandbox.directory("sent") {
        Ok(directory) => trials.extend(table::decoded(directory)),
        Err(error) => {
            eprintln!("sandbox: a directory: {error}");
            return ExitCode::FAILURE;
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
