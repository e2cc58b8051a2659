//! The cgroups of a test's containers: one below the root of the machine's, by the process id of the
//! sandbox's outside.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use lb_tests::sandbox::{self, Sandbox};

/// Waits for the end of its standard input, which whoever started it holds, then removes the group
/// when its last process is gone. In a mount namespace of its own, so that what it mounts goes too.
const SWEEPER: &str = r#"
mount -t cgroup2 cgroup2 /mnt && mkdir "/mnt/$1" && echo made || exit 1
read -r _
tries=0
until find "/mnt/$1" -depth -type d -exec rmdir {} + 2>/dev/null || [ ! -e "/mnt/$1" ]; do
    tries=$((tries + 1))
    [ $tries -lt 600 ] || exit 1
    sleep 0.1
done
"#;

/// Makes the group and sees to it that it goes when this process has ended, in whatever way. Call it
/// before [`sandbox::enter`]; inside it does nothing.
///
/// # Errors
/// When the group cannot be made.
pub fn sweeper() -> Result<()> {
    if sandbox::outside().is_some() {
        return Ok(());
    }
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", SWEEPER, "sweeper"]);
    command.arg(name(std::process::id()));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut sweeper = command.spawn().context("start the sweeper of cgroups")?;
    let mut said = [0; 4];
    let made = sweeper.stdout.take().context("sweeper")?.read_exact(&mut said);
    ensure!(made.is_ok() && &said == b"made", "cgroups: no cgroup2, or none that root may change");
    // Held to the end of the process, which is what the sweeper waits for.
    std::mem::forget(sweeper.stdin.take());
    Ok(())
}

/// A group for a container.
pub(super) fn join(sandbox: &Sandbox, container: &str) -> Result<PathBuf> {
    let mounted = sandbox.directory("cgroup")?;
    let outside = sandbox::outside().context("cgroups: not in a sandbox")?;
    let group = mounted.join(name(outside));
    if !group.exists() {
        let mut mount = Command::new("mount");
        let status = mount.args(["-t", "cgroup2", "cgroup2"]).arg(&mounted).status()?;
        ensure!(status.success(), "mount cgroup2: {status}");
    }
    let group = group.join(container);
    fs::create_dir(&group).with_context(|| group.display().to_string())?;
    Ok(group)
}

fn name(outside: u32) -> String {
    format!("spillway-test-{outside}")
}
