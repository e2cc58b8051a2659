//! Another balancer's packet program, as it is: a script loads it and fills its maps, and it is entered for each packet behind
//! the same wrapper as ours.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use aya::programs::{ProgramFd, Xdp};
use aya_obj::programs::xdp::XdpAttachType;

/// The variable that tells the script where to pin.
const PINS: &str = "PINS";
/// The pin of the program that packets enter.
const PROGRAM: &str = "program";

/// Where such a program comes from.
#[derive(Clone, Debug)]
pub(crate) struct PeerSource {
    /// A script for sh(1), which is run in the folder that it is in.
    pub(crate) script: PathBuf,
    /// An empty folder of a BPF file system, for what it pins.
    pub(crate) pins: PathBuf,
}

/// The loaded program.
#[derive(Debug)]
pub(crate) struct PeerProgram(Xdp);

impl PeerProgram {
    /// Runs the script.
    ///
    /// # Errors
    /// What the script says if it fails, or that it pinned no XDP program.
    pub(crate) fn load(source: &PeerSource) -> Result<Self> {
        let PeerSource { script, pins } = source;
        let name = script.display();
        let folder = script.parent().filter(|it| !it.as_os_str().is_empty());
        let mut command = Command::new("sh");
        command.arg("-e").arg(script).current_dir(folder.unwrap_or(Path::new(".")));
        let output = command.env(PINS, pins).output().context("sh")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{name}: {}: {}", output.status, said.trim());
        let pin = pins.join(PROGRAM);
        ensure!(pin.exists(), "{name}: it pinned no ${PINS}/{PROGRAM}");
        let program = Xdp::from_pin(&pin, XdpAttachType::Interface);
        Ok(Self(program.with_context(|| format!("{name}: ${PINS}/{PROGRAM}"))?))
    }

    /// What the wrapper jumps into.
    ///
    /// # Errors
    /// When it is not loaded.
    pub(crate) fn fd(&self) -> Result<&ProgramFd> {
        Ok(self.0.fd()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a script that does not do what it should.
    fn said_of(script: &str) -> String {
        let source = PeerSource { script: script.into(), pins: "/proc/self/none".into() };
        format!("{:#}", PeerProgram::load(&source).unwrap_err())
    }

    #[test]
    fn a_script_that_fails_is_quoted_and_one_that_pins_nothing_is_told_so() {
        let said = said_of("/proc/self/no-script");
        assert!(said.starts_with("/proc/self/no-script: exit status: "), "{said}");
        assert!(said.contains("sh: "), "{said}");
        assert_eq!(said_of("/dev/null"), "/dev/null: it pinned no $PINS/program");
    }
}
