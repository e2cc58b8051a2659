//! The program: the command line and the settings file, the two components that they start, and the end.

mod arguments;
mod balancer;
mod config_file;
mod documents;
mod failure;
mod fleet_arguments;
mod interface_keeper;
mod interfaces;
mod log;
mod receiver;
mod reload;
mod settings;
mod signals;
mod sizes;
mod status_line;

use std::{
    env, ffi::OsString, fs, num::NonZero, path::Path, process::ExitCode, thread, time::Duration,
};
use tokio_util::sync::CancellationToken;

use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
};

use arguments::{Component, PathArguments};
pub use failure::Failure;
use lb_base::{
    background::lower_thread_priority,
    conditions::Conditions,
    kernel::{BTF, OLDEST, version},
};
use lb_maps::{Attached, Pins, StartRecord};
use lb_observe::{
    http::{self, HttpCredentials},
    metrics::Counter,
};
use lb_secure::tls::CertificateExpiry;
use log::Log;
use settings::{Settings, SettingsError};

/// Runs the daemon as the command line says, and returns its exit status, which `--help` explains.
pub fn main() -> ExitCode {
    let line: Vec<_> = env::args_os().collect();
    if let Some(written) = documents::run(&line) {
        return exit_code(written, print);
    }
    let settings = match Settings::read(&line) {
        Ok(settings) => settings,
        Err(SettingsError::CommandLine(error)) => error.exit(),
        Err(SettingsError::File(failure)) => {
            return exit_code(Err(failure.caused_by_settings()), print);
        }
    };
    let log = match log::start() {
        Ok(log) => log,
        Err(failure) => return exit_code(Err(failure), print),
    };
    let end = run(line, settings, &log);
    if end.is_ok() {
        log.flush();
    }
    exit_code(end, |text| log.print_last(text))
}

/// How long the end waits for work in the background.
const SHUTDOWN: Duration = Duration::from_secs(1);

fn print(text: &str) {
    eprintln!("{text}");
}

fn exit_code(end: Result<(), Failure>, print: impl FnOnce(&str)) -> ExitCode {
    match end {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            print(&failure.to_string());
            ExitCode::from(failure.exit_status())
        }
    }
}

fn run(line: Vec<OsString>, settings: Settings, log: &Log) -> Result<(), Failure> {
    check_kernel()?;
    let Settings { arguments, values, names } = settings;
    let end = match arguments.component {
        Component::Balancer(arguments) => {
            let (health, others) = (health_runtime()?, others_runtime()?);
            let sensors = health.handle().clone();
            let end = others.block_on(balancer::run(*arguments, line, values, log, sensors));
            // Work that waits for a disk that does not answer is left behind.
            others.shutdown_timeout(SHUTDOWN);
            health.shutdown_timeout(SHUTDOWN);
            end
        }
        Component::Receiver(arguments) => {
            let runtime = others_runtime()?;
            let end = runtime.block_on(receiver::run(*arguments, line, values, log));
            runtime.shutdown_timeout(SHUTDOWN);
            end
        }
    };
    end.map_err(|failure| names.spell(failure))
}

/// For health checks and next hops: nothing else is on its threads, and they have a higher priority than all others but that
/// of the member loop.
fn health_runtime() -> Result<Runtime, Failure> {
    let cpus = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = Builder::new_multi_thread()
        .worker_threads(cpus.min(MOST_HEALTH_THREADS))
        .thread_name("health")
        .enable_all()
        .build();
    threads.map_err(|error| Failure::about("runtime", &error))
}

/// For all that may wait.
fn others_runtime() -> Result<Runtime, Failure> {
    let threads = Builder::new_multi_thread()
        .thread_name("spillwayd")
        .on_thread_start(lower_thread_priority)
        .enable_all()
        .build();
    threads.map_err(|error| Failure::about("runtime", &error))
}

/// Threads of health checks: a hundred thousand checks a second need no more.
const MOST_HEALTH_THREADS: usize = 4;

/// Refuses a kernel that is too old for the packet programs, or built without BTF.
fn check_kernel() -> Result<(), Failure> {
    const RELEASE: &str = "/proc/sys/kernel/osrelease";
    let release = nix::sys::utsname::uname()
        .map(|names| names.release().to_string_lossy().into_owned())
        .or_else(|_| fs::read_to_string(RELEASE))
        .map_err(|error| Failure::about(RELEASE, &error))?;
    if version(&release).is_some_and(|version| version < OLDEST) {
        let (major, minor) = OLDEST;
        return Err(Failure::new(format!("kernel {}: is too old", release.trim()))
            .hint(format!("boot Linux {major}.{minor} (that of Debian 12) or a later one")));
    }
    if !Path::new(BTF).exists() {
        return Err(Failure::new(format!("{BTF}: does not exist, so the kernel has no BTF")).hint(
            "boot a kernel that was built with CONFIG_DEBUG_INFO_BTF=y, as Debian's kernels are, \
             and mount /sys",
        ));
    }
    Ok(())
}

/// Keeps with the pins how this daemon was started. Without it a daemon that was killed is started by hand.
fn record_start(pins: &Pins, line: &[OsString]) {
    let recorded = StartRecord::of_this_process(line).and_then(|record| record.write(pins));
    if let Err(error) = recorded {
        tracing::debug!("how this daemon was started is not kept: {error}");
    }
}

fn log_interfaces(attached: &Attached) {
    for interface in attached.interfaces() {
        let mode = interface.mode.map_or("not at all".into(), |mode| mode.to_string());
        let interface = interface.name;
        tracing::info!(interface, mode, "interface {interface}: attached ({mode})");
    }
}

/// The HTTP listener and what it accepts clients with.
type HttpListener = (TcpListener, HttpCredentials);

/// The listener of metrics and status page, if the settings ask for one.
async fn listen_http(
    arguments: &PathArguments,
    expiry: &CertificateExpiry,
    conditions: &Conditions,
    refused: &Counter,
) -> Result<Option<HttpListener>, Failure> {
    let Some(address) = arguments.http else { return Ok(None) };
    let (expiry, conditions, refused) = (expiry.clone(), conditions.clone(), refused.clone());
    let credentials = HttpCredentials::open(arguments.http_files(), expiry, conditions, refused)
        .map_err(|error| Failure::from_chain(&error).hint(error.hint()))?;
    let bound = http::bind(address, &credentials).await;
    let listener = bound.map_err(|error| Failure::from_chain(&error).hint(error.hint()))?;
    Ok(Some((listener, credentials)))
}

/// Serves metrics and status page until the daemon stops.
async fn serve_http(
    listener: Option<HttpListener>,
    what: http::HttpRoutes,
    stop: CancellationToken,
) {
    let Some((listener, credentials)) = listener else { return stop.cancelled().await };
    let files = credentials.clone();
    tokio::select! {
        () = http::serve(listener, credentials, what, stop) => {}
        () = files.follow() => {}
    }
}
