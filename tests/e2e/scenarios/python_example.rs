//! The Python example works against the real daemon, with code generated from the proto directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use lb_tests::daemon::{Balancer, Binaries};
use lb_tests::harness::Case;
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Fabric, Node, REGIONS};

const CONFIGURATION: &str = r#"
[[region]]
name = "eu"
[[pool]]
name = "web"
[[pool.backend]]
address = "10.1.0.11"
region = "eu"
[[pool.backend]]
address = "10.1.0.12"
region = "eu"
"#;

pub(crate) const CASES: &[Case] = &[Case::waits("a_client_in_python_drains_a_backend", drain)];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The interpreter that has the modules of docs/examples/python/requirements.txt.
fn python() -> OsString {
    std::env::var_os("SPILLWAY_PYTHON").unwrap_or_else(|| "python3".into())
}

/// Writes the modules of the API, as docs/api.md says.
fn compile(node: &Node) -> Result<PathBuf> {
    let (proto, out) = (repository().join("proto"), node.directory().join("python"));
    std::fs::create_dir_all(&out).context("make a directory")?;
    let files = std::fs::read_dir(proto.join("spillway/v1")).context("read proto")?;
    let mut files: Vec<_> = files.map(|file| Ok(file?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "proto"));
    ensure!(!files.is_empty(), "no proto files in {}", proto.display());
    let to = |option: &str| format!("--{option}={}", out.display()).into();
    let mut arguments: Vec<OsString> = ["-m", "grpc_tools.protoc", "-I"].map(Into::into).into();
    arguments.extend([proto.into(), to("python_out"), to("grpc_python_out")]);
    arguments.extend(files.into_iter().map(Into::into));
    let compiled = node.run(python(), arguments);
    compiled
        .context("compile; `cargo xtask setup` gets the modules, SPILLWAY_PYTHON names them")?;
    Ok(out)
}

/// Runs the example; its exit code and its two outputs.
fn run(
    balancer: &Balancer,
    node: &Node,
    modules: &Path,
    arguments: &[&str],
) -> Result<(Option<i32>, String, String)> {
    let mut command: Command = node.command(python());
    command.arg(repository().join("docs/examples/python/drain.py"));
    command.arg("--socket").arg(&balancer.socket).args(arguments);
    command.env("PYTHONPATH", modules).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().context("start python")?;
    let [out, err] = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into());
    Ok((output.status.code(), out, err))
}

fn drain(sandbox: &Sandbox) -> Result<()> {
    let fabric = Fabric::new(sandbox, "python", 2)?;
    let node = &fabric.balancer;
    let modules = compile(node)?;
    let mut balancer = Balancer::started(sandbox, &Binaries::find()?, node, REGIONS[0])?;
    balancer.apply(CONFIGURATION)?;
    let state = |balancer: &Balancer| -> Result<String> {
        let status = balancer.ask(&["status"])?;
        let backend = &status["backends"][0];
        ensure!(backend["address"] == "10.1.0.11", "{status}");
        Ok(format!("{} {}", backend["state"], backend["reason"]).replace('"', ""))
    };
    ensure!(state(&balancer)? == "up no checks");

    let uid = nix::unistd::getuid();
    let reason = format!("drained by an override of uid {uid}: maintenance");
    let drained = format!("10.1.0.11 is draining ({reason})\n");
    let back = "10.1.0.11 is up (no checks)\n";
    for (arguments, said, is) in [
        (&["web", "10.1.0.11"][..], &*drained, format!("draining {reason}")),
        (&["web", "10.1.0.11", "--undo"], back, "up no checks".into()),
        (&["web", "10.1.0.11", "--undo"], back, "up no checks".into()),
    ] {
        let told = run(&balancer, node, &modules, arguments)?;
        ensure!(told == (Some(0), said.into(), String::new()), "{arguments:?}: {told:?}");
        ensure!(state(&balancer)? == is, "{arguments:?}: {}", state(&balancer)?);
    }
    for (arguments, error) in [
        (
            &["none", "10.1.0.11"][..],
            "OBJECT_NOT_FOUND: pool none: backend 10.1.0.11 does not exist",
        ),
        (&["web", "10.1.0.99"], "OBJECT_NOT_FOUND: pool web: backend 10.1.0.99 does not exist"),
        (&["web", "ten"], "INVALID_FIELD: targets[0].backend: must be an IPv4"),
    ] {
        let (code, out, err) = run(&balancer, node, &modules, arguments)?;
        ensure!((code, &*out) == (Some(1), ""), "{arguments:?}: {code:?} {out}{err}");
        ensure!(err.starts_with(error) && err.lines().count() == 1, "{arguments:?}: {err}");
    }
    balancer.stop()?;
    let (code, _, err) = run(&balancer, node, &modules, &["web", "10.1.0.11"])?;
    ensure!(code == Some(1) && err.starts_with("UNAVAILABLE: "), "{err}");
    Ok(())
}
