//! The outside: waits, and ends the inside when it is told to end.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};

use anyhow::{Context as _, Result, bail};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, Signal};

use super::MARK;

/// Signals that mean "end": from the terminal, from `kill`, from a terminal that closed.
const END: [Signal; 4] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];

/// Starts the program again inside and returns its exit code, or 128 + the signal that ended it.
pub(super) fn run() -> Result<i32> {
    if !nix::unistd::geteuid().is_root() {
        bail!("making network namespaces needs root; `cargo xtask` asks for it where it is needed");
    }
    // From here on signals wait until they are asked for, so none is lost while the child starts.
    let mut signals = SigSet::from_iter(END);
    signals.add(Signal::SIGCHLD);
    signals.thread_block().context("block signals")?;

    // The child holds the read end as its standard input and sees it close if we die before it has
    // asked the kernel to be killed with us.
    let (lifeline, held) = std::io::pipe().context("make a pipe")?;
    unshare(CloneFlags::CLONE_NEWPID).context("make a PID namespace")?;
    let program = std::env::current_exe().context("find our own program")?;
    let mut child = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .env(MARK, std::process::id().to_string())
        .stdin(lifeline)
        .spawn()
        .with_context(|| format!("start {} again", program.display()))?;
    let code = wait(&mut child, &signals)?;
    drop(held);
    Ok(code)
}

fn wait(child: &mut Child, signals: &SigSet) -> Result<i32> {
    loop {
        let signal = signals.wait().context("wait for a signal")?;
        if signal != Signal::SIGCHLD {
            // The first process of a PID namespace takes all others with it, and `wait` returns only
            // when the last of them is gone.
            child.kill().context("kill the sandbox")?;
            child.wait().context("wait for the sandbox")?;
            return Ok(128 + signal as i32);
        }
        if let Some(status) = child.try_wait().context("look at the sandbox")? {
            return Ok(exit_code(status));
        }
    }
}

fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}
