//! Where the programs are.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// The two programs.
#[derive(Clone, Debug)]
pub struct Binaries {
    /// The daemon.
    pub spillwayd: PathBuf,
    /// The command line.
    pub spillway: PathBuf,
}

impl Binaries {
    /// Those in a directory.
    ///
    /// # Errors
    /// When one of them is not there.
    pub fn in_directory(directory: &Path) -> Result<Self> {
        let find = |name: &str| {
            let path = directory.join(name);
            ensure!(path.is_file(), "{}: not there; `cargo xtask build` makes it", path.display());
            Ok(path)
        };
        Ok(Self { spillwayd: find("spillwayd")?, spillway: find("spillway")? })
    }

    /// Those in the directory that `SPILLWAY_BIN_DIR` names; without it those in the target
    /// directory this test program is in.
    ///
    /// # Errors
    /// When one of them is not there.
    pub fn find() -> Result<Self> {
        if let Some(directory) = std::env::var_os("SPILLWAY_BIN_DIR") {
            return Self::in_directory(Path::new(&directory));
        }
        let own = std::env::current_exe().context("find our own program")?;
        let directory = own.ancestors().nth(2).context("a test program is in target/*/deps")?;
        Self::in_directory(directory)
    }
}
