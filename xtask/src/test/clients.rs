//! The example clients in Go, built for the tests of a long run.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::root_tests::Variables;
use crate::process;
use crate::setup::Go;
use crate::workspace;

/// Tells the tests where the programs are.
const FOLDER: &str = "SPILLWAY_GO_CLIENTS";

/// Builds them as docs/api.md says; `python` has protoc. Returns what tests are told.
pub(super) fn prepare(python: &Path) -> Result<Variables> {
    let (go, folder) = (Go::find()?, workspace::target().join("clients"));
    let (source, programs) = (folder.join("source"), folder.join("bin"));
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    copy(&workspace::root().join("docs/examples/go"), &source)?;
    compile_api(python, &go, &source)?;
    fs::create_dir_all(&programs).with_context(|| programs.display().to_string())?;
    go.run(&source, ["vet", "./..."])?;
    let [build, to, all] = ["build", "-o", "./..."].map(OsStr::new);
    go.run(&source, [build, to, programs.as_os_str(), all])?;
    let grpcurl = programs.join("grpcurl");
    fs::copy(go.tools().join("grpcurl"), &grpcurl)
        .with_context(|| grpcurl.display().to_string())?;
    Ok(vec![(FOLDER.to_owned(), programs.into())])
}

/// Copies a folder of files and folders.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).with_context(|| to.display().to_string())?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let path = entry?.path();
        let target = to.join(path.file_name().context("a name")?);
        match path.is_dir() {
            true => copy(&path, &target)?,
            false => {
                fs::copy(&path, &target).map(drop).with_context(|| target.display().to_string())?
            }
        }
    }
    Ok(())
}

fn compile_api(python: &Path, go: &Go, to: &Path) -> Result<()> {
    let proto = workspace::root().join("proto");
    let files = fs::read_dir(proto.join("spillway/v1")).context("read proto")?;
    let files: Result<Vec<PathBuf>> = files.map(|file| Ok(file?.path())).collect();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([go.tools()].into_iter().chain(env::split_paths(&path)))?;
    let mut protoc = Command::new(python);
    protoc.args(["-m", "grpc_tools.protoc", "-I"]).arg(proto).env("PATH", path);
    for plugin in ["go", "go-grpc"] {
        protoc.arg(format!("--{plugin}_out={}", to.display()));
        protoc.arg(format!("--{plugin}_opt=paths=source_relative"));
    }
    protoc.args(files?);
    process::check(protoc)
}
