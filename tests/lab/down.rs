//! Removes a lab, whole or not.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use lb_tests::process::{PATIENCE, until};
use nix::mount::{MntFlags, umount2};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::files::{Place, say};
use crate::programs::pids_in;

/// `lab down`.
pub(crate) fn down(place: &Place) -> Result<()> {
    if !is_something_there(place)? {
        say("no lab is there");
        return Ok(());
    }
    let _lock = place.lock()?;
    remove(place)?;
    say("the lab is gone: its processes, namespaces, pinned programs and files");
    Ok(())
}

/// Whether there is a lab, or what is left of one.
pub(crate) fn is_something_there(place: &Place) -> Result<bool> {
    Ok(place.folder.exists() || !namespaces(place)?.is_empty())
}

/// Removes what is there. The caller has the lock.
pub(crate) fn remove(place: &Place) -> Result<()> {
    // An `ip` that was at work when its lab was killed goes on by itself, and what it just makes cannot be deleted yet.
    let mut left = String::new();
    until("namespaces of the lab are gone", PATIENCE, || {
        let namespaces = namespaces(place)?;
        let pids = pids_in(&namespaces)?;
        for pid in &pids {
            // It may have ended since, and one that starts others has to be looked for again.
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        left = format!("processes {pids:?}");
        if pids.is_empty() {
            left = namespaces.iter().map(|it| delete(it)).collect::<Result<_>>()?;
        }
        Ok(namespaces.is_empty().then_some(()))
    })
    .with_context(|| left.trim().to_owned())?;
    // Packet programs and maps go with their pins, these with the file system. One may lie above another.
    while umount2(&place.bpf(), MntFlags::MNT_DETACH).is_ok() {}
    let mounts = fs::read_to_string("/proc/self/mountinfo").context("mounts")?;
    let below = format!(" {}/", place.folder.display());
    ensure!(!mounts.contains(&below), "{}: something is mounted there", place.folder.display());
    match fs::remove_dir_all(&place.folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| place.folder.display().to_string())
        }
        _ => Ok(()),
    }
}

/// Deletes a namespace, and returns what `ip` has to say against it.
fn delete(namespace: &str) -> Result<String> {
    let output = Command::new("ip").args(["netns", "delete", namespace]).output();
    Ok(String::from_utf8_lossy(&output.context("start ip")?.stderr).into_owned())
}

/// Namespaces that have a name of this lab.
fn namespaces(place: &Place) -> Result<Vec<String>> {
    let folder = Path::new("/run/netns");
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        // No namespace was ever named on this machine.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).context("/run/netns"),
    };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    Ok(names.filter(|name| name.starts_with(&place.namespace(""))).collect())
}
