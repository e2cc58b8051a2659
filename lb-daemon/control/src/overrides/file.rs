//! The file of overrides in the state directory.

use std::{
    collections::BTreeMap,
    io,
    path::Path,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use lb_base::own_file::{self, Outlives, OwnFileError};
use lb_config::{Reason, ReasonError};
use lb_model::overrides::{
    Action, ActionError, Key, MOST, MOST_LOCAL, Moment, Override, Overrides, Scope, Target,
};

/// Its name in the state directory.
pub(super) const FILE: &str = "overrides.json";

/// The version of the format. A field that may be missing needs no other one.
const VERSION: u32 = 1;

/// Most bytes that are read: more than [`MOST`] and [`MOST_LOCAL`] overrides need.
const MOST_BYTES: u64 = 32 << 20;

/// Longest name of a caller, bytes.
const MOST_WHO: usize = 1024;

#[derive(Debug, Serialize, Deserialize)]
struct Content {
    version: u32,
    revision: u64,
    /// Whether a fleet decides them, but for the local ones.
    #[serde(default, skip_serializing_if = "is_false")]
    followed: bool,
    overrides: Vec<Saved>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(value: &bool) -> bool {
    !value
}

/// What files of all versions have.
#[derive(Debug, Deserialize)]
struct Header {
    version: u32,
}

/// An override; times are milliseconds since 1970.
#[derive(Debug, Serialize, Deserialize)]
struct Saved {
    target: Target,
    action: Action,
    /// Whether it is in force at this balancer alone, and not in its fleet.
    #[serde(default, skip_serializing_if = "is_false")]
    local: bool,
    who: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
    set_at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    absent_since: Option<u64>,
}

/// Why a file is not used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    File(#[from] OwnFileError),
    #[error("is not a file of overrides")]
    Content(#[from] serde_json::Error),
    #[error("has version {0}, and this spillwayd knows version {VERSION}")]
    Version(u32),
    #[error("has {0} overrides; at most {MOST} and {MOST_LOCAL} local ones are allowed")]
    TooMany(usize),
    #[error("an override of {0}")]
    Action(Target, #[source] ActionError),
    #[error("the reason of an override of {0}")]
    Reason(Target, #[source] ReasonError),
    #[error("the name of who set an override of {0} is no name")]
    Who(Target),
}

impl ReadError {
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::File(error) if error.is_missing())
    }
}

pub(super) fn read(path: &Path, now: Moment) -> Result<Overrides, ReadError> {
    parse(&own_file::read(path, MOST_BYTES)?, now)
}

pub(super) fn parse(text: &[u8], now: Moment) -> Result<Overrides, ReadError> {
    let Header { version } = serde_json::from_slice(text)?;
    if version != VERSION {
        return Err(ReadError::Version(version));
    }
    let Content { revision, followed, overrides, .. } = serde_json::from_slice(text)?;
    let number = overrides.len();
    let local = overrides.iter().filter(|saved| saved.local).count();
    if local > MOST_LOCAL || number - local > MOST {
        return Err(ReadError::TooMany(number));
    }
    let entries: BTreeMap<_, _> =
        overrides.into_iter().map(|saved| saved.checked(now)).collect::<Result<_, _>>()?;
    let mut overrides = Overrides::restored(revision, entries).followed(followed);
    if !followed {
        // Outside of a fleet there are no local ones.
        overrides.unfollow();
    }
    Ok(overrides)
}

/// Replaces the file, and waits until it is on the disk.
pub(super) fn write(path: &Path, overrides: &Overrides) -> io::Result<()> {
    own_file::replace(path, &text(overrides)?, Outlives::Host)
}

pub(super) fn text(overrides: &Overrides) -> io::Result<Vec<u8>> {
    let saved = overrides.iter().map(|(key, it)| Saved {
        target: key.target.clone(),
        action: it.action,
        local: key.is_local(),
        who: it.who.clone(),
        reason: it.reason.clone(),
        set_at: milliseconds(it.set_at),
        until: it.until.map(|until| milliseconds(until.wall)),
        absent_since: it.absent_since.map(|since| milliseconds(since.wall)),
    });
    let content = Content {
        version: VERSION,
        revision: overrides.revision(),
        followed: overrides.is_followed(),
        overrides: saved.collect(),
    };
    Ok(serde_json::to_vec(&content)?)
}

/// An override from another balancer, as the file can hold it: what that one wrote may break the rules of this one. `None` if
/// its target does not allow it.
pub(super) fn storable((key, it): &(Key, Override)) -> Option<(Key, Override)> {
    let is_allowed =
        it.action.check(&key.target).is_ok() && it.action.kind() == key.kind && !key.is_local();
    let mut who = String::new();
    for letter in it.who.chars().filter(|letter| !letter.is_control()) {
        if who.len() + letter.len_utf8() > MOST_WHO {
            break;
        }
        who.push(letter);
    }
    let reason = Reason::cleaned(&it.reason).to_string();
    is_allowed.then(|| (key.clone(), Override { who, reason, ..it.clone() }))
}

impl Saved {
    /// What was written by this daemon or an earlier one is checked like the input of a stranger.
    fn checked(self, now: Moment) -> Result<(Key, Override), ReadError> {
        let Self { target, action, local, who, reason, set_at, until, absent_since } = self;
        let scope = if local { Scope::Local } else { Scope::Shared };
        let checked = action.check(&target).and_then(|()| scope.check(action.kind()));
        checked.map_err(|error| ReadError::Action(target.clone(), error))?;
        Reason::new(&reason).map_err(|error| ReadError::Reason(target.clone(), error))?;
        if who.len() > MOST_WHO || who.contains(char::is_control) {
            return Err(ReadError::Who(target));
        }
        // If the clock was set back meanwhile, an override still lasts no longer than it was set for.
        let ends = |until: u64| {
            let left = wall(until).duration_since(now.wall).unwrap_or_default();
            let whole = Duration::from_millis(until.saturating_sub(set_at));
            Moment { wall: wall(until), ..now.after(left.min(whole)).unwrap_or(now) }
        };
        let gone = |since: u64| {
            let elapsed = now.wall.duration_since(wall(since)).unwrap_or_default();
            let instant = now.instant.checked_sub(elapsed).unwrap_or(now.instant);
            Moment { wall: wall(since), instant }
        };
        let it = Override {
            action,
            who,
            reason,
            set_at: wall(set_at),
            until: until.map(ends),
            absent_since: absent_since.map(gone),
        };
        Ok((Key::new(target, action.kind()).with_scope(scope), it))
    }
}

/// A time beyond what a clock can tell counts as 1970.
fn wall(milliseconds: u64) -> SystemTime {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds));
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}

fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
