//! The program: what each role is made of, from the command line to the end.

mod arguments;
mod balancer;
mod documents;
mod end;
mod failure;
mod interfaces;
mod kernel;
mod log;
mod path;
mod receiver;
mod reload;
mod settings;
mod status_line;
mod store;
mod vlan;

use std::{env, ffi::OsString, net::SocketAddr, process::ExitCode};

use tokio::{net::TcpListener, runtime::Runtime};

use crate::http;
use arguments::Role;
pub use failure::Failure;
use lb_base::{error_chain, shutdown::Stop};
use lb_maps::Attached;
use settings::{Settings, Unusable};

/// Runs the daemon that the command line asks for. 0: it was told to stop; 1: it could not start or
/// go on, which it says in one sentence; 2: the command line or the settings file is wrong, or names an
/// interface that this host does not have.
pub fn main() -> ExitCode {
    let line: Vec<_> = env::args_os().collect();
    if let Some(written) = documents::run(&line) {
        return ended(written);
    }
    let settings = match Settings::read(&line) {
        Ok(settings) => settings,
        Err(Unusable::CommandLine(error)) => error.exit(),
        Err(Unusable::File(failure)) => return ended(Err(failure.of_settings())),
    };
    log::start();
    ended(run(line, settings))
}

fn ended(end: Result<(), Failure>) -> ExitCode {
    match end {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::from(failure.exit_status())
        }
    }
}

fn run(line: Vec<OsString>, settings: Settings) -> Result<(), Failure> {
    kernel::fits()?;
    let runtime = Runtime::new().map_err(|error| Failure::of("runtime", &error))?;
    let Settings { arguments, told, names } = settings;
    let end = match arguments.role {
        Role::Balancer(arguments) => runtime.block_on(balancer::run(*arguments, line, told)),
        Role::Receiver(arguments) => runtime.block_on(receiver::run(*arguments, line, told)),
    };
    end.map_err(|failure| names.spell(failure))
}

fn log_interfaces(attached: &Attached) {
    for interface in attached.interfaces() {
        let mode = interface.mode.map_or("not at all".into(), |mode| mode.to_string());
        let interface = interface.name;
        tracing::info!(interface, mode, "interface {interface}: attached ({mode})");
    }
}

/// The listener for those who look, where one is asked for.
async fn listen(address: Option<SocketAddr>) -> Result<Option<TcpListener>, Failure> {
    let Some(address) = address else { return Ok(None) };
    let bound = http::bind(address).await;
    bound.map(Some).map_err(|error| Failure::new(error_chain::message(&error)).hint(error.hint()))
}

/// Shows something there until it is told to stop.
async fn show(listener: Option<TcpListener>, what: http::Shown, stop: Stop) {
    match listener {
        Some(listener) => http::serve(listener, what, stop).await,
        None => stop.wait().await,
    }
}
