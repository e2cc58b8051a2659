//! The lab: the demo's network with everything running, which stays until it is removed, by the program `lab` of
//! lb-tests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use nix::unistd::getuid;

use crate::build::{self, Programs};
use crate::cli::LabArgs;
use crate::process;
use crate::root;
use crate::setup::{self, Purpose, Wants};
use crate::workspace;

/// Names another lab than the usual one.
const NAME: &str = "SPILLWAY_LAB";

/// `cargo xtask lab`.
pub(crate) fn run(args: &LabArgs) -> Result<ExitCode> {
    let words: Vec<_> = args.args.iter().map(|word| word.to_string_lossy()).collect();
    let starts = !words.iter().any(|word| ["down", "status", "repair"].contains(&&**word));
    // What a lab that is there is asked needs no build, which would take minutes after an edit.
    let folder = folder();
    let is_whole = folder.join("lab.json").exists();
    if build::program("lab").is_err() || (starts && !is_whole) {
        if !starts && !folder.exists() {
            println!("no lab is there");
            return Ok(ExitCode::SUCCESS);
        }
        let purpose = if has_fleet(&words) { Purpose::FleetLab } else { Purpose::Lab };
        let ready = setup::ensure(&Wants::purpose(purpose), args.no_install)?;
        build::everything(ready, true, Programs::Lab)?;
    }
    start(&args.args, starts)
}

/// Runs the program as root.
fn start(args: &[OsString], starts: bool) -> Result<ExitCode> {
    let mut all = vec![OsString::from("--bin-dir"), workspace::binaries(true).into()];
    if root::is_someone_else() {
        all.extend(["--user".into(), getuid().to_string().into()]);
    }
    all.extend(args.iter().cloned());
    let what_for = match starts {
        true => "the lab: network namespaces, BPF programs, a file system for pins",
        false => "the lab's namespaces and processes",
    };
    let mut variables = build::variables(true);
    variables.extend(std::env::var_os(NAME).map(|name| (NAME.into(), name)));
    let program = build::program("lab")?;
    let status = process::run(root::job(what_for, &variables, program.as_os_str(), &all)?)?;
    match status.code() {
        Some(0) => Ok(ExitCode::SUCCESS),
        Some(code) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(1))),
        None => bail!("lab: {status}"),
    }
}

/// Where the program has the files of a lab (tests/lab/files.rs).
fn folder() -> PathBuf {
    let name = std::env::var(NAME).unwrap_or_else(|_| "lab".into());
    Path::new("/run").join(format!("spillway-{name}"))
}

/// Whether a lab of several balancers is asked for.
fn has_fleet(words: &[impl AsRef<str>]) -> bool {
    let pairs = words.windows(2).filter(|pair| pair[0].as_ref() == "--balancers");
    let apart = pairs.map(|pair| pair[1].as_ref());
    let joined = words.iter().filter_map(|word| word.as_ref().strip_prefix("--balancers="));
    apart.chain(joined).any(|number| number != "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etcd_is_for_several_balancers() {
        assert!(!has_fleet(&["--regions", "1"]) && !has_fleet(&["--balancers", "1"]));
        assert!(has_fleet(&["--balancers", "3"]));
        assert!(has_fleet(&["--balancers=2", "--regions", "1"]));
    }
}
