//! What xtask says: progress on standard error, results on standard output.

use std::time::Duration;

/// A stage begins.
pub(crate) fn heading(text: &str) {
    eprintln!("==> {text}");
}

/// A detail of the stage.
pub(crate) fn note(text: &str) {
    eprintln!("    {text}");
}

/// Bytes as megabytes, in the decimal units that apt uses.
pub(crate) fn megabytes(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    if tenths >= 1000 {
        format!("{} MB", tenths / 10)
    } else {
        format!("{}.{} MB", tenths / 10, tenths % 10)
    }
}

/// Elapsed time, in tenths of a second up to a minute.
pub(crate) fn elapsed(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 60 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_apt_prints_them() {
        assert_eq!(megabytes(0), "0.0 MB");
        assert_eq!(megabytes(1), "0.1 MB");
        assert_eq!(megabytes(531_468), "0.6 MB");
        assert_eq!(megabytes(29_378_692), "29.4 MB");
        assert_eq!(megabytes(216_000_000), "216 MB");
    }

    #[test]
    fn times_read_in_seconds_then_in_minutes() {
        assert_eq!(elapsed(Duration::from_millis(1240)), "1.2 s");
        assert_eq!(elapsed(Duration::from_secs(125)), "2 min 05 s");
    }
}
