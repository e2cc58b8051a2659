//! A wall clock of a daemon's own, which can be wrong, by libfaketime. Its monotonic clock is the machine's.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use lb_tests::daemon::Balancer;

/// Debian's libfaketime puts it there.
const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// How long a program may go by what the file said before, seconds.
const LOOKS_EVERY: u32 = 1;

/// By what a daemon's wall clock is ahead of the machine's: a file that the library in the daemon looks at.
#[derive(Debug)]
pub struct WallClock {
    file: PathBuf,
}

impl WallClock {
    /// Gives a balancer a clock of its own, which is right: from its next start on.
    ///
    /// # Errors
    /// When the library is not there, or the file cannot be written.
    pub fn give_to(balancer: &mut Balancer) -> Result<Self> {
        ensure!(fs::exists(LIBRARY)?, "{LIBRARY}: not there; `cargo xtask setup` installs it");
        let clock = Self { file: balancer.node().directory().join("wall-clock") };
        clock.set_ahead(0)?;
        let variables = [
            ("LD_PRELOAD", LIBRARY.to_owned()),
            ("FAKETIME_TIMESTAMP_FILE", clock.file.display().to_string()),
            ("FAKETIME_CACHE_DURATION", LOOKS_EVERY.to_string()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
            ("NO_FAKE_STAT", "1".into()),
        ];
        balancer.variables.extend(variables.map(|(name, value)| (name.to_owned(), value)));
        Ok(clock)
    }

    /// Sets it so many seconds ahead; below 0: behind.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn set_ahead(&self, seconds: i64) -> Result<()> {
        // Under another name first: the library would take half of it for another time.
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{seconds:+}s\n")).context("write a clock")?;
        fs::rename(&new, &self.file).context("set a clock")
    }
}
