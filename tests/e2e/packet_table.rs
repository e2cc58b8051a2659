//! The table of packets, run through the programs as this machine's kernel loads them.

use std::process::ExitCode;

use lb_e2e::packet_table;
use lb_tests::{sample::Sample, sandbox};
use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let sandbox = sandbox::enter();
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let mut trials = packet_table::trials(Sample::from_environment());
    match sandbox.directory("sent") {
        Ok(directory) => trials.extend(packet_table::decoded(directory)),
        Err(error) => {
            eprintln!("sandbox: a directory: {error}");
            return ExitCode::FAILURE;
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
