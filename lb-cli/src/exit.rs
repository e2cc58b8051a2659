//! What the exit status of `spillway` means. Scripts rely on the numbers: they are never used again.

use std::process::ExitCode;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// What was asked for was done.
    Success = 0,
    /// Something failed that none of the other numbers names.
    Failure = 1,
    /// The command line is wrong. The argument parser uses the same number.
    Usage = 2,
    /// The daemon does not answer, or no packet program is pinned.
    Unavailable = 3,
    /// The user may not do this.
    Permission = 4,
    /// A file, object or pin that was named does not exist.
    NotFound = 5,
    /// The configuration is wrong, or at a reload the settings; what was in force stays.
    Invalid = 6,
    /// The state does not allow it now: another generation or etag is in force, an object is there
    /// already or in use, another capture is on, or the daemon runs.
    Conflict = 7,
    /// What was compared differs.
    Different = 8,
    /// `doctor` found problems, and has printed them.
    Unwell = 9,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
