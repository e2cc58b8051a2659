//! The table of packets, run through the programs as this machine's kernel loads them.

use std::process::ExitCode;

use lb_tests::packets::table;
use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let mut trials = table::trials();
    trials.push(table::decoded());
    libtest_mimic::run(&arguments, trials).exit_code()
}
