//! `spillwayd`: the daemon of the Spillway load balancer.

use std::process::ExitCode;

fn main() -> ExitCode {
    lb_daemon::app::main()
}
