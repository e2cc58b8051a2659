//! What a run of the demo works in: its sandbox, its programs, and where its results go.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use lb_tests::daemon::Binaries;
use lb_tests::sandbox::Sandbox;

use super::Screen;

/// What a run of the demo works in.
#[derive(Debug)]
pub(crate) struct Environment {
    pub(crate) sandbox: Sandbox,
    pub(crate) binaries: Binaries,
    out: PathBuf,
}

impl Environment {
    /// Programs are looked for, and the directory for results is made.
    pub(crate) fn new(sandbox: &Sandbox, bin_dir: &Path, out: &Path) -> Result<Self> {
        fs::create_dir_all(out).with_context(|| format!("make {}", out.display()))?;
        let binaries = Binaries::in_directory(bin_dir)?;
        Ok(Self { sandbox: sandbox.clone(), binaries, out: out.into() })
    }

    /// A file among the results.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.out.join(name)
    }

    /// Tells where results are.
    pub(crate) fn point_to(&self, files: &[&str], screen: &Screen) {
        screen.heading("Look closer");
        for file in files {
            screen.line(&format!("  {}", self.file(file).display()));
        }
    }

    /// Writes a result.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.file(name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))
    }

    /// Writes a report.
    pub(crate) fn report(&self, report: &serde_json::Value) -> Result<()> {
        self.write("report.json", &(serde_json::to_string_pretty(report)? + "\n"))
    }
}
