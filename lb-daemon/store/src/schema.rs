//! The schema revision of configurations, which rises with each new field. A program drops fields that it
//! does not know, so a configuration of another revision is accepted only on request.

use std::fmt;

use serde::{Deserialize, Serialize};
use spillway_proto::SCHEMA_REVISION;

/// From 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Revision(u32);

impl Revision {
    /// For programs and stores that do not state one.
    pub const FIRST: Self = Self(1);
    /// This program's.
    pub const CURRENT: Self = Self(SCHEMA_REVISION as u32);

    /// Values below 1 count as the first revision.
    pub fn new(number: i32) -> Self {
        Self(u32::try_from(number).unwrap_or_default()).max(Self::FIRST)
    }

    pub fn number(self) -> i32 {
        i32::try_from(self.0).unwrap_or(i32::MAX)
    }
}

impl Default for Revision {
    fn default() -> Self {
        Self::CURRENT
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Two programs, or a program and a store, have different revisions. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaMismatch {
    /// The client may not know fields that are in force.
    #[error(
        "the client is older than the daemon (schema revision {client}, the daemon has {daemon}), and fields that \
         it does not know would be erased"
    )]
    OlderClient { client: Revision, daemon: Revision },
    /// The daemon may have dropped fields that the client sent.
    #[error(
        "the daemon is older than the client (schema revision {daemon}, the client has {client}), and fields that \
         it does not know would be left out"
    )]
    NewerClient { client: Revision, daemon: Revision },
    /// The daemon may not know fields that are stored.
    #[error(
        "the daemon is older than the stored configuration (schema revision {daemon}, the stored one has {stored}), \
         and fields that it does not know would be erased"
    )]
    NewerStore { stored: Revision, daemon: Revision },
    /// The daemon may not know fields that the fleet has.
    #[error(
        "this balancer is older than the configuration of the fleet (schema revision {daemon}, the fleet has {fleet}), \
         and fields that it does not know would be left out"
    )]
    NewerFleet { fleet: Revision, daemon: Revision },
}

impl SchemaMismatch {
    /// Compares a client that sends a whole configuration with the daemon.
    ///
    /// # Errors
    /// Their revisions differ.
    pub fn check_client(client: Revision, daemon: Revision) -> Result<(), Self> {
        match client.cmp(&daemon) {
            std::cmp::Ordering::Less => Err(Self::OlderClient { client, daemon }),
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => Err(Self::NewerClient { client, daemon }),
        }
    }

    /// Compares the configuration of a fleet with the daemon. One of an older revision has no field that this daemon does
    /// not know.
    ///
    /// # Errors
    /// The daemon is older.
    pub fn check_fleet(fleet: Revision, daemon: Revision) -> Result<(), Self> {
        match fleet > daemon {
            true => Err(Self::NewerFleet { fleet, daemon }),
            false => Ok(()),
        }
    }

    pub fn hint(&self) -> &'static str {
        match self {
            Self::NewerFleet { .. } => {
                "nothing was changed, and this balancer stays at what it has in force; upgrade its spillwayd"
            }
            Self::OlderClient { .. } => {
                "nothing was changed; upgrade the client, or apply the configuration anyway: \
                 `spillway apply --any-schema`"
            }
            Self::NewerClient { .. } => {
                "nothing was changed; upgrade the daemon, or apply the configuration anyway: \
                 `spillway apply --any-schema`"
            }
            Self::NewerStore { .. } => {
                "nothing was changed; run the newer spillwayd, or replace the stored configuration: \
                 `spillway apply --any-schema`"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_revision_counts_as_the_first() {
        let numbers = [0, 1, 2, -1, i32::MIN].map(|number| Revision::new(number).number());
        assert_eq!(numbers, [1, 1, 2, 1, 1]);
    }

    #[test]
    fn only_equal_revisions_agree() {
        let check = |client, daemon| {
            let result = SchemaMismatch::check_client(Revision::new(client), Revision::new(daemon));
            result.map_err(|mismatch| mismatch.to_string())
        };
        assert_eq!(check(2, 2), Ok(()));
        assert_eq!(check(0, 1), Ok(()));
        let older = check(0, 2).unwrap_err();
        assert!(
            older.starts_with("the client is older than the daemon (schema revision 1, "),
            "{older}"
        );
        let newer = check(3, 2).unwrap_err();
        assert!(
            newer.starts_with("the daemon is older than the client (schema revision 2, "),
            "{newer}"
        );
    }
}
