//! Threads before all ordinary ones, so that what is measured is the daemon and not when the bench had a CPU.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Has the calling thread run before all ordinary ones (`SCHED_FIFO`, sched(7)).
///
/// # Errors
/// When it may not.
pub(crate) fn prefer_this_thread() -> Result<()> {
    let thread = nix::unistd::gettid().to_string();
    let output = Command::new("chrt").args(["--fifo", "--pid", "1", &thread]).output();
    let output = output.context("chrt")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "chrt --fifo: {}", said.trim());
    Ok(())
}
