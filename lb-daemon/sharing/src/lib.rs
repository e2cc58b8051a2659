//! How the balancers of a fleet share each capacity.
//!
//! A group (a pool's backends in one region) has a capacity for the whole fleet. Each balancer owns a fraction of it, in
//! [`Parts`] of 2^32, and enforces that fraction of the capacity as it sees it. Balancers move parts among themselves, by
//! messages that may be lost, repeated, delayed and reordered. Parts are moved, never created: what all balancers own,
//! with what is on its way between them, is never more than one whole. So the fleet never admits more than the capacity,
//! and no clock, lease or majority is needed for that.
//!
//! Parts come into being with their group, when its first owners take their portions. After that only an [`epoch`] creates
//! some, to replace those of a balancer that is gone for good.
//!
//! Pure code: time is handed in, messages, the store and the limits in the kernel are the caller's. [`Sharing`] is the
//! state of one balancer and says in which order the caller has to do what.
//!
//! | to understand | begin at |
//! |---|---|
//! | who should own how much | [`target`] |
//! | what must survive a crash | [`Ledger`] |
//! | when parts are given away | [`Sharing::round`] |
//! | how a lost balancer's parts come back | [`epoch::compute_result`] |

mod demand;
pub mod epoch;
mod ledger;
mod message;
mod parts;
mod sharing;
pub mod target;

pub use demand::DemandAverage;
pub use ledger::{GroupKey, Ledger, Transfer};
pub use message::{GroupReport, Message, ReportedCapacity};
pub use parts::Parts;
pub use sharing::{Demand, RECENT, SILENCE, Sharing, SharingError};

/// What the tests of several modules begin with.
#[cfg(test)]
mod fixture {
    use lb_model::Name;

    use crate::GroupKey;

    pub(crate) fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    pub(crate) fn group() -> GroupKey {
        GroupKey { pool: name("web"), region: name("eu"), birth: 1 }
    }
}
