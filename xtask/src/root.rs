//! The steps that need root: done as root where xtask runs as root, else through sudo.

use std::ffi::{OsStr, OsString};
use std::io::pipe;
use std::process::Command;

use anyhow::{Context, Result, bail};
use nix::unistd::{Uid, getgid, getuid};

use crate::process::Job;
use crate::programs::{self, ROOT_PATH};
use crate::ui;

/// A program to run as root. `what_for` is shown to the user.
pub(crate) fn job<S: AsRef<OsStr>>(
    what_for: &str,
    variables: &[(String, OsString)],
    program: &OsStr,
    args: &[S],
) -> Result<Job> {
    let mut command = elevated(what_for)?;
    command.arg(format!("PATH={ROOT_PATH}"));
    for (name, value) in variables {
        let mut setting = OsStr::new(name).to_owned();
        setting.push("=");
        setting.push(value);
        command.arg(setting);
    }
    // Not by its path: the tests build xtask again while it runs, under the same name.
    let holder = format!("/proc/{}/exe", std::process::id());
    command.arg(holder).args(["hold", "--"]).arg(program).args(args);
    let (reader, writer) = pipe()?;
    command.stdin(reader);
    Ok(Job { command, holder: Some(writer) })
}

/// `env`, run as root; settings and the program are to follow.
fn elevated(what_for: &str) -> Result<Command> {
    let env = programs::find("env").context("env: not found")?;
    if Uid::effective().is_root() {
        ui::note(&format!("as root: {what_for}"));
        return Ok(Command::new(env));
    }
    let Some(sudo) = programs::find("sudo") else {
        bail!("{what_for}: needs root, and there is no sudo; run this as root or install sudo");
    };
    ui::note(&format!("with sudo: {what_for}"));
    let mut command = Command::new(sudo);
    command.args(["-p", "    password of %p for sudo: ", "--"]).arg(env);
    Ok(command)
}

/// Whether files that root writes belong to somebody else than the user.
pub(crate) fn is_someone_else() -> bool {
    !Uid::effective().is_root()
}

/// The user and group for `chown`, as `uid:gid`.
pub(crate) fn owner() -> String {
    format!("{}:{}", getuid(), getgid())
}
