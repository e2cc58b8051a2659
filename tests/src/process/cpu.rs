//! CPU time of the whole machine: where packets are handled in softirqs, no process is charged for them.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// A reading of the kernel's clock of busy CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy(Duration);

impl Busy {
    /// Reads it.
    ///
    /// # Errors
    /// When the kernel's account of it cannot be read.
    pub fn read() -> Result<Self> {
        let text = fs::read_to_string("/proc/stat").context("/proc/stat")?;
        parse(&text).map(Self).context("/proc/stat: its first line is not that of all CPUs")
    }

    /// Busy time since then, of all CPUs together.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn since(self) -> Result<Duration> {
        Ok(Self::read()?.0.saturating_sub(self.0))
    }
}

/// Of the first line all but idle and waiting for disks; guests are in the first two numbers already (proc(5)). In
/// hundredths of a second, whatever the kernel's own tick.
fn parse(text: &str) -> Option<Duration> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let fields = line.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    let busy = |place: &usize| !matches!(place, 3 | 4) && *place < 8;
    let counted = fields.iter().enumerate().filter(|(place, _)| busy(place));
    let hundredths: u64 = counted.map(|(_, value)| value).sum();
    (fields.len() >= 8).then(|| Duration::from_millis(10 * hundredths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_guests_do_not_count() {
        let text = "cpu  1 20 300 99999 88888 4000 50000 600000 7 8\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(parse(text), Some(Duration::from_millis(6_543_210)));
        assert_eq!(parse("cpu0 1 2 3 4 5 6 7 8\n"), None);
        assert_eq!(parse("cpu  1 2 3\n"), None);
    }
}
