//! The file: read as the input of a stranger, and replaced as a whole.

use std::{io, path::Path, time::Instant};

use serde::{Deserialize, Serialize};

use super::{SavedHoldDown, Snapshot};
use lb_base::{
    boot_clock::{BootClock, BootTime},
    own_file::{self, Outlives, OwnFileError},
};
use lb_health::SavedStreak;

/// The version of the format. A field that may be missing needs no other one.
const VERSION: u32 = 1;

/// Most bytes that are read: more than [`MOST_ENTRIES`] of each kind need.
const MOST_BYTES: u64 = 64 << 20;

/// Most entries of each kind that are written.
pub(super) const MOST_ENTRIES: usize = 100_000;

/// How much later than now a file may claim to be written, for the time between two readings of the clock.
const SLACK: BootTime = 1_000_000_000;

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    version: u32,
    /// Times are of this boot.
    boot_id: String,
    written_at: BootTime,
    streaks: Vec<SavedStreak>,
    hold_downs: Vec<SavedHoldDown<BootTime>>,
}

/// What files of all versions have.
#[derive(Debug, Deserialize)]
struct Header {
    version: u32,
}

/// Why a file is not used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    File(#[from] OwnFileError),
    #[error("the clock since boot cannot be read")]
    Clock(#[from] io::Error),
    #[error("is not a health state file")]
    Content(#[from] serde_json::Error),
    #[error("has version {0}, and this spillwayd knows version {VERSION}")]
    Version(u32),
    #[error("is from before the host was started")]
    OtherBoot,
    #[error("was written in the future")]
    Future,
}

/// Reads the file: what was saved, and when.
pub(super) fn read(path: &Path, clock: &BootClock) -> Result<(Snapshot, Instant), ReadError> {
    let text = own_file::read(path, MOST_BYTES)?;
    parse(&text, clock)
}

pub(super) fn parse(text: &[u8], clock: &BootClock) -> Result<(Snapshot, Instant), ReadError> {
    let Header { version } = serde_json::from_slice(text)?;
    if version != VERSION {
        return Err(ReadError::Version(version));
    }
    let Content { boot_id, written_at, streaks, hold_downs, .. } = serde_json::from_slice(text)?;
    if boot_id != clock.boot_id {
        return Err(ReadError::OtherBoot);
    }
    if written_at > clock.time.saturating_add(SLACK) {
        return Err(ReadError::Future);
    }
    let converted = |SavedHoldDown { pool, address, times, hold_down }: SavedHoldDown<BootTime>| {
        SavedHoldDown { pool, address, times, hold_down: hold_down.convert(|it| clock.instant(it)) }
    };
    let hold_downs = hold_downs.into_iter().map(converted).collect();
    Ok((Snapshot { streaks, hold_downs }, clock.instant(written_at)))
}

/// Replaces the file, which after a crash of the host means nothing.
pub(super) fn write(path: &Path, snapshot: &Snapshot, clock: &BootClock) -> io::Result<()> {
    own_file::replace(path, &text(snapshot, clock)?, Outlives::Daemon)
}

pub(super) fn text(snapshot: &Snapshot, clock: &BootClock) -> io::Result<Vec<u8>> {
    let converted = |saved: &SavedHoldDown<Instant>| {
        let SavedHoldDown { pool, address, times, hold_down } = saved.clone();
        let hold_down = hold_down.convert(|it| clock.boot_time(it));
        SavedHoldDown { pool, address, times, hold_down }
    };
    let content = Content {
        version: VERSION,
        boot_id: clock.boot_id.clone(),
        written_at: clock.time,
        streaks: snapshot.streaks.clone(),
        hold_downs: snapshot.hold_downs.iter().map(converted).collect(),
    };
    Ok(serde_json::to_vec(&content)?)
}
