//! The health state file: the streaks of probes that are in doubt or fail, and the hold-downs of backends. A daemon that is
//! restarted continues them, where otherwise each backend would begin afresh. What the maps hold is not in it.
//!
//! The file is beside the socket, in the runtime directory, so it does not depend on the disk of the store and ends with the
//! host. A task of low priority writes it: prober and loops only show what they know ([`Streaks`], [`HoldDowns`]), and wait
//! for nothing. If the file cannot be read, the daemon starts without it; if it cannot be written, that is a condition.

mod file;
mod hold_downs;
mod keeper;
#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

pub(crate) use hold_downs::RestoredHoldDowns;
pub use hold_downs::{HoldDowns, SavedHoldDown};
pub use keeper::Keeper;

use file::ReadError;
use lb_base::{background::Job, boot_clock::BootClock, conditions::Conditions, error_chain};
use lb_health::{SavedStreak, Streaks};

/// How long the start waits for the file.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// What the file holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Snapshot {
    streaks: Vec<SavedStreak>,
    hold_downs: Vec<SavedHoldDown<Instant>>,
}

/// What a restart must not forget of health.
#[derive(Debug)]
pub struct HealthState {
    pub streaks: Streaks,
    pub hold_downs: HoldDowns,
    path: PathBuf,
    conditions: Conditions,
}

impl HealthState {
    /// With what an earlier daemon left in the file of a socket. Each socket has a file of its own.
    pub async fn read(socket: &Path, conditions: Conditions) -> Self {
        let mut path = socket.as_os_str().to_owned();
        path.push(".health-state");
        let path = PathBuf::from(path);
        let reading = Job::start({
            let path = path.clone();
            move || read(&path)
        });
        let restored = match reading.within(READ_TIMEOUT).await {
            Ok(read) => read.ok().flatten(),
            Err(_) => {
                tracing::warn!("{}: not used: it cannot be read in time", path.display());
                None
            }
        };
        let (streaks, hold_downs) = match restored {
            Some((Snapshot { streaks, hold_downs }, saved_at)) => {
                let hold_downs = HoldDowns::restored(hold_downs, saved_at);
                (Streaks::restored(streaks, saved_at), hold_downs)
            }
            None => Default::default(),
        };
        Self { streaks, hold_downs, path, conditions }
    }
}

/// Whatever is there must not stop a start.
fn read(path: &Path) -> Option<(Snapshot, Instant)> {
    let read = BootClock::read().map_err(ReadError::from);
    match read.and_then(|clock| file::read(path, &clock)) {
        Ok((snapshot, saved_at)) => {
            let (streaks, hold_downs) = (snapshot.streaks.len(), snapshot.hold_downs.len());
            let seconds = saved_at.elapsed().as_secs();
            tracing::info!(
                "health state: {streaks} streaks of checks and {hold_downs} hold-downs of {seconds} s ago"
            );
            Some((snapshot, saved_at))
        }
        Err(ReadError::File(error)) if error.is_missing() => None,
        Err(error) => {
            let (path, error) = (path.display(), error_chain::message(&error));
            tracing::warn!(error, "{path}: not used, so checks begin to count anew: {error}");
            None
        }
    }
}
