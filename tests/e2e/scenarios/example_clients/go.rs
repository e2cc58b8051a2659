use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use lb_tests::sandbox::Sandbox;

use super::{CONFIGURATION, Host, check_drain, check_list};

/// Names the folder of what is built from Go: the clients of docs/examples/go, and grpcurl.
pub(super) const FOLDER: &str = "SPILLWAY_GO_CLIENTS";

/// A program of the folder.
pub(super) fn program(name: &str) -> Result<PathBuf> {
    Ok(Path::new(&std::env::var_os(FOLDER).context(FOLDER)?).join(name))
}

/// A client of docs/examples/go.
fn client(host: &Host, program: &Path) -> Command {
    let mut command = host.fabric.balancer.command(program);
    command.arg("-socket").arg(&host.balancer.socket);
    command
}

pub(super) fn drains(sandbox: &Sandbox) -> Result<()> {
    let mut host = Host::start(sandbox, "go", CONFIGURATION)?;
    let program = program("drain")?;
    check_drain(&mut host, |host| client(host, &program), "-undo")
}

pub(super) fn lists(sandbox: &Sandbox) -> Result<()> {
    let program = program("list")?;
    check_list(sandbox, "go", |host| client(host, &program))
}
