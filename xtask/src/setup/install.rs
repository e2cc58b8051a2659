//! Installing Debian packages without starting anything on the host.

use std::ffi::OsStr;
use std::time::Duration;

use anyhow::{Result, bail};

use super::apt::Lists;
use super::{services, sockets};
use crate::process;
use crate::root;
use crate::ui;

/// A mirror that answers no more must not hold us for ever.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// The installation itself, as root.
const SCRIPT: &str = include_str!("install.sh");

/// Takes services out of the boot again. With systemd's tool, which needs no running systemd and
/// takes care of sysvinit's links; without it, with sysvinit's.
const DISABLE: &str = "\
for name in \"$@\"; do
    if command -v systemctl >/dev/null; then
        systemctl --quiet disable \"$name\" || exit
    else
        update-rc.d \"$name\" disable || exit
    fi
done";

/// Installs, then compares who listens and what starts at boot with what was before.
pub(super) fn install(lists: &Lists, names: &[&str]) -> Result<()> {
    let (listened, enabled) = (sockets::listening()?, services::enabled());
    let update = if lists.system_is_stale() { "update" } else { "keep" };
    let mut args = vec!["--mount", "--propagation", "private", "--"];
    args.extend(["sh", "-c", SCRIPT, "install", update]);
    args.extend(names);
    let what_for = format!("apt-get install {}", names.join(" "));
    let job = root::job(&what_for, &[], OsStr::new("unshare"), &args)?;
    let captured = process::capture(job, LIMIT)?;
    if !captured.success() {
        eprintln!("{}", captured.output.trim_end());
        bail!("{what_for}: failed, see apt's own words above; install them by hand and run again");
    }

    let started: Vec<String> =
        sockets::listening()?.difference(&listened).map(|listener| format!("{listener}")).collect();
    if !started.is_empty() {
        bail!(
            "listening since the installation, and not before: {}; see who it is with `ss -lntup` \
             and stop it, or run this again if it is nothing to do with the packages",
            started.join(", ")
        );
    }

    let added = services::enabled();
    let added = services::names(added.difference(&enabled));
    if !added.is_empty() {
        let list = added.iter().cloned().collect::<Vec<_>>().join(" ");
        let mut args = vec!["-c", DISABLE, "disable"];
        args.extend(added.iter().map(String::as_str));
        let what_for = format!("{list}: not to be started at boot (systemctl disable)");
        process::check(root::job(&what_for, &[], OsStr::new("sh"), &args)?)?;
    }
    ui::note("installed; nothing was started, the same sockets listen as before");
    Ok(())
}
