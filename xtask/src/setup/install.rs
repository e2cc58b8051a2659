//! Installing Debian packages without starting anything on the host.

use std::ffi::OsStr;
use std::fs;
use std::time::Duration;

use anyhow::{Result, bail};

use super::apt::Lists;
use super::{services, sockets};
use crate::process::{self, Job};
use crate::progress::Limits;
use crate::root;
use crate::ui;

/// A mirror that answers no more must not hold us for ever.
const LIMITS: Limits = Limits::stalled(Duration::from_secs(10 * 60));

/// The installation itself, as root.
const SCRIPT: &str = include_str!("install.sh");

/// Where a killed installation may have left the file that its policy was mounted on. It has no
/// effect, but is not the user's.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// Removes what a killed installation left. An installation of now cleans up by itself.
pub(super) fn recover() -> Result<()> {
    if !fs::read_to_string(POLICY).is_ok_and(|text| text.contains("# spillway: stands in")) {
        return Ok(());
    }
    let job =
        script(&format!("removing {POLICY}, left by a killed installation"), "keep", &[], &[])?;
    process::check(job)
}

/// The script in a mount namespace of its own.
fn script(what_for: &str, update: &str, kept_out: &[&str], names: &[&str]) -> Result<Job> {
    let kept_out = kept_out.join(" ");
    let mut args = vec!["--mount", "--propagation", "private", "--"];
    args.extend(["sh", "-c", SCRIPT, "install", update, &kept_out]);
    args.extend(names);
    root::job(what_for, &[], OsStr::new("unshare"), &args)
}

/// Installs, then compares who listens and what starts at boot with what was before.
pub(super) fn install(lists: &Lists, names: &[&str]) -> Result<()> {
    let (listened, kept_out) = (sockets::listening()?, services::kept_out());
    let update = if lists.system_is_stale() { "update" } else { "keep" };
    let what_for = format!("apt-get install {}", names.join(" "));
    let captured =
        process::capture(script(&what_for, update, &kept_out, names)?, LIMITS, "apt-get")?;
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

    let out = services::kept_out();
    let added: Vec<_> = kept_out.into_iter().filter(|name| !out.contains(name)).collect();
    if !added.is_empty() {
        bail!(
            "{0}: starts at boot since the installation, and did not before; \
             `systemctl disable {0}` prevents it",
            added.join(" ")
        );
    }
    ui::note(
        "installed; nothing was started or will be at boot, the same sockets listen as before",
    );
    Ok(())
}
