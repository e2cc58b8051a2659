//! The holder ends its program when the one who asked for it is gone, in whatever way.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program that says its process id, then waits for a signal or for far too long.
const PROGRAM: &str = "echo $$; exec sleep 600";

struct Held {
    holder: Child,
    /// The program's entry in /proc.
    program: PathBuf,
}

fn hold(script: &str) -> Held {
    let mut holder = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["hold", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line).unwrap();
    Held { holder, program: PathBuf::from("/proc").join(line.trim()) }
}

impl Held {
    /// Waits for the program's end: killed processes are not gone at once.
    fn assert_gone(&self) {
        let start = Instant::now();
        while self.is_running() {
            assert!(start.elapsed() < Duration::from_secs(30), "{} lives", self.program.display());
            std::thread::yield_now();
        }
    }

    fn is_running(&self) -> bool {
        let stat = std::fs::read_to_string(self.program.join("stat")).unwrap_or_default();
        // A zombie that nobody has waited for has ended, too.
        !stat.is_empty() && !stat.contains(") Z ")
    }
}

#[test]
fn the_program_ends_when_the_pipe_does() {
    let mut held = hold(PROGRAM);
    assert!(held.is_running());
    drop(held.holder.stdin.take());
    assert_eq!(held.holder.wait().unwrap().code(), Some(128 + 9));
    held.assert_gone();
}

#[test]
fn the_program_ends_when_the_holder_is_killed() {
    let mut held = hold(PROGRAM);
    assert!(held.is_running());
    held.holder.kill().unwrap();
    held.holder.wait().unwrap();
    held.assert_gone();
}

#[test]
fn a_byte_is_passed_on_as_a_signal() {
    let script = "trap 'exit 7' INT; echo $$; while :; do read line </dev/null; done";
    let mut held = hold(script);
    let mut pipe = held.holder.stdin.take().unwrap();
    pipe.write_all(&[2]).unwrap();
    assert_eq!(held.holder.wait().unwrap().code(), Some(7));
    held.assert_gone();
}

#[test]
fn the_programs_exit_code_is_the_holders() {
    let mut held = hold("echo $$; exit 3");
    let _pipe = held.holder.stdin.take(); // or waiting would close it
    assert_eq!(held.holder.wait().unwrap().code(), Some(3));
}
