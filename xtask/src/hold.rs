//! The holder: runs as root between xtask and a program, and ends the program when xtask ends.
//!
//! sudo stands between the two, so neither a parent-death signal nor `kill` gets from xtask to the
//! program. A pipe does: its other end closes when xtask is gone, however it went.

use std::ffi::OsString;
use std::io::{Read, stdin};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cli::HoldArgs;

/// Runs the program, passes on each byte of standard input as a signal, kills at its end.
pub(crate) fn run(args: &HoldArgs) -> ExitCode {
    // A Ctrl-C reaches the program itself; the holder stays to report how it ended.
    let caught = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if signal_hook::flag::register(signal, Arc::clone(&caught)).is_err() {
            return ExitCode::FAILURE;
        }
    }
    // setpriv: should the holder itself be killed, the program goes with it.
    let words: [OsString; 3] = ["--pdeathsig".into(), "KILL".into(), "--".into()];
    let mut command = Command::new("setpriv");
    command.args(words).args(&args.command).stdin(Stdio::null());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("xtask: setpriv: {error}");
            return ExitCode::FAILURE;
        }
    };
    let pid = Pid::from_raw(child.id() as i32);
    thread::spawn(move || obey(pid));
    match child.wait() {
        Ok(status) => exit_code(status),
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn obey(pid: Pid) {
    let mut byte = [0];
    loop {
        let signal = match stdin().read(&mut byte) {
            Ok(1) => Signal::try_from(i32::from(byte[0])).unwrap_or(Signal::SIGTERM),
            Ok(_) | Err(_) => Signal::SIGKILL,
        };
        let sent = kill(pid, signal);
        if signal == Signal::SIGKILL || sent.is_err() {
            return;
        }
    }
}

/// The program's own code, or what a shell reports for one that died of a signal.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
