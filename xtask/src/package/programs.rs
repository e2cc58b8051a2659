//! The programs to be packaged, and whether a host can use them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::process;

/// The two programs.
pub(super) struct Programs {
    pub(super) spillwayd: PathBuf,
    pub(super) spillway: PathBuf,
}

impl Programs {
    /// Those in a directory.
    ///
    /// # Errors
    /// One is missing, cannot be run, or has no packet programs inside.
    pub(super) fn find(directory: &Path) -> Result<Self> {
        let programs =
            Self { spillwayd: directory.join("spillwayd"), spillway: directory.join("spillway") };
        for program in programs.all() {
            ensure!(program.is_file(), "{}: not there; `cargo xtask build`", program.display());
        }
        check_daemon(&programs.spillwayd)?;
        Ok(programs)
    }

    pub(super) fn all(&self) -> [&Path; 2] {
        [&self.spillwayd, &self.spillway]
    }
}

/// Refuses a daemon without packet programs inside.
pub(super) fn check_daemon(spillwayd: &Path) -> Result<()> {
    check_objects(&process::read(Command::new(spillwayd).arg("--version"))?)
}

/// `spillwayd --version` says of each packet program which one is inside: `NAME program: DIGEST`.
fn check_objects(version: &str) -> Result<()> {
    for role in ["balancer", "receiver"] {
        let prefix = format!("{role} program: ");
        let digest = version.lines().find_map(|line| line.strip_prefix(&prefix));
        match digest {
            Some(digest) if is_digest(digest) => {}
            Some(other) => bail!(
                "spillwayd: {role} program: {other}: it was built without the packet programs; \
                 `cargo xtask package` builds them first"
            ),
            None => bail!("spillwayd --version: says nothing of the {role} program:\n{version}"),
        }
    }
    Ok(())
}

fn is_digest(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_packet_programs_must_be_inside() {
        let said = |balancer: &str, receiver: &str| {
            format!("spillwayd 0.1.0\nbalancer program: {balancer}\nreceiver program: {receiver}\n")
        };
        let (digest, stub) = ("0123456789abcdef", "none in this build");
        assert!(check_objects(&said(digest, digest)).is_ok());
        for (version, missing) in
            [(said(stub, digest), "balancer"), (said(digest, stub), "receiver")]
        {
            assert_eq!(
                check_objects(&version).unwrap_err().to_string(),
                format!(
                    "spillwayd: {missing} program: none in this build: it was built without the \
                     packet programs; `cargo xtask package` builds them first"
                )
            );
        }
        assert!(check_objects("spillwayd 0.1.0\n").is_err());
    }
}
