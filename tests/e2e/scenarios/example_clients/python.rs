use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use lb_tests::sandbox::Sandbox;

use super::{CONFIGURATION, Host, LAB_SOCKET, check_drain, check_list};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The interpreter that has the modules of docs/examples/python/requirements.txt.
fn python() -> OsString {
    std::env::var_os("SPILLWAY_PYTHON").unwrap_or_else(|| "python3".into())
}

/// Writes the modules of the API below a folder, as docs/api.md says.
fn compile(folder: &Path) -> Result<PathBuf> {
    let (proto, out) = (repository().join("proto"), folder.join("python"));
    std::fs::create_dir_all(&out).context("make a directory")?;
    let files = std::fs::read_dir(proto.join("spillway/v1")).context("read proto")?;
    let mut files: Vec<_> = files.map(|file| Ok(file?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "proto"));
    ensure!(!files.is_empty(), "no proto files in {}", proto.display());
    let to = |option: &str| format!("--{option}={}", out.display());
    let mut protoc = Command::new(python());
    protoc.args(["-m", "grpc_tools.protoc", "-I"]).arg(proto);
    protoc.args([to("python_out"), to("grpc_python_out")]).args(files);
    let done = protoc.output().context("start python")?;
    ensure!(
        done.status.success(),
        "compile; `cargo xtask setup` gets the modules, SPILLWAY_PYTHON names them: {done:?}"
    );
    Ok(out)
}

/// A client of docs/examples/python.
fn client(host: &Host, name: &str, modules: &Path) -> Command {
    let mut command = host.fabric.balancer.command(python());
    command.arg(repository().join("docs/examples/python").join(name));
    command.arg("--socket").arg(&host.balancer.socket);
    command.env("PYTHONPATH", modules).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

pub(super) fn drains(sandbox: &Sandbox) -> Result<()> {
    let mut host = Host::start(sandbox, "python", CONFIGURATION)?;
    let modules = compile(host.fabric.balancer.directory())?;
    prints_the_generation(&host, &modules)?;
    check_drain(&mut host, |host| client(host, "drain.py", &modules), "--undo")
}

pub(super) fn lists(sandbox: &Sandbox) -> Result<()> {
    let modules = compile(&sandbox.directory("modules")?)?;
    check_list(sandbox, "python", |host| client(host, "list.py", &modules))
}

/// The lines of docs/api.md.
fn prints_the_generation(host: &Host, modules: &Path) -> Result<()> {
    let page = include_str!("../../../../docs/api.md");
    let lines = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next());
    let socket = host.balancer.socket.display().to_string();
    let lines = lines.context("no lines")?.replace(LAB_SOCKET, &socket);
    let mut command = host.fabric.balancer.command(python());
    command.env("PYTHONPATH", modules).env("PYTHONDONTWRITEBYTECODE", "1");
    let printed = host.run(command, &["-c", &lines])?;
    ensure!(printed == (Some(0), "1\n".into(), String::new()), "{lines}: {printed:?}");
    Ok(())
}
