//! The program: what each role is made of, from the command line to the end.

mod arguments;
mod balancer;
mod end;
mod failure;
mod log;
mod receiver;
mod store;

use std::process::ExitCode;

use clap::Parser;
use nix::unistd::Uid;
use tokio::runtime::Runtime;

use crate::{
    causes,
    dataplane::{Attached, DataplaneError},
};
use arguments::{Arguments, Role};
pub use failure::Failure;

/// Runs the daemon that the command line asks for. 0: it was told to stop; 1: it could not start or
/// go on, which it says in one sentence; 2: the command line is wrong.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    log::start();
    match run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<(), Failure> {
    let runtime = Runtime::new().map_err(|error| Failure::of("runtime", &error))?;
    match arguments.role {
        Role::Balancer(arguments) => runtime.block_on(balancer::run(arguments)),
        Role::Receiver(arguments) => runtime.block_on(receiver::run(arguments)),
    }
}

/// The packet path cannot be set up.
fn path_failure(error: DataplaneError) -> Failure {
    let failure = Failure::new(causes::of(&error));
    if Uid::effective().is_root() {
        failure
    } else {
        failure.hint("run as root: packet programs need CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON")
    }
}

fn log_interfaces(attached: &Attached) {
    for interface in attached.interfaces() {
        let mode = interface.mode.map_or("not at all".into(), |mode| mode.to_string());
        tracing::info!(interface = interface.name, mode, "attached");
    }
}
