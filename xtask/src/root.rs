//! The steps that need root: done as root where xtask runs as root, else through sudo.

use std::ffi::{OsStr, OsString};
use std::io::pipe;
use std::process::Command;

use anyhow::{Context, Result, bail};
use nix::unistd::{Uid, getgid, getuid};

use crate::process::{self, Job};
use crate::programs::{self, ROOT_PATH};
use crate::ui;

/// Tells the user what needs root. Where that goes through sudo it asks for the password now, so that
/// programs that are started at the same time do not ask all at once.
pub(crate) fn ask(what_for: &str) -> Result<()> {
    announce(what_for);
    if Uid::effective().is_root() {
        return Ok(());
    }
    let mut command = sudo()?;
    // Not --validate: that asks for a password unless every rule of the user's goes without one (sudoers, verifypw).
    command.args(["--", "true"]);
    process::check(command)
}

/// A program to run as root. `what_for` is shown to the user.
pub(crate) fn job<S: AsRef<OsStr>>(
    what_for: &str,
    variables: &[(String, OsString)],
    program: &OsStr,
    args: &[S],
) -> Result<Job> {
    announce(what_for);
    announced_job(variables, program, args)
}

/// A program to run as root, of which [`ask`] told the user.
pub(crate) fn announced_job<S: AsRef<OsStr>>(
    variables: &[(String, OsString)],
    program: &OsStr,
    args: &[S],
) -> Result<Job> {
    let mut command = elevated()?;
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

/// A program to run as root that ends at once, of which [`ask`] told the user.
pub(crate) fn short_command(program: &str) -> Result<Command> {
    let mut command = elevated()?;
    command.arg(format!("PATH={ROOT_PATH}")).arg(program);
    Ok(command)
}

fn announce(what_for: &str) {
    let how = if Uid::effective().is_root() { "as root" } else { "with sudo" };
    ui::note(&format!("{how}: {what_for}"));
}

/// `env`, run as root; settings and the program are to follow.
fn elevated() -> Result<Command> {
    let env = programs::find("env").context("env: not found")?;
    if Uid::effective().is_root() {
        return Ok(Command::new(env));
    }
    let mut command = sudo()?;
    command.arg("--").arg(env);
    Ok(command)
}

fn sudo() -> Result<Command> {
    let Some(sudo) = programs::find("sudo") else {
        bail!("this needs root, and there is no sudo; run it as root or install sudo");
    };
    let mut command = Command::new(sudo);
    command.args(["-p", "    password of %p for sudo: "]);
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
