//! How the balancers of a fleet share each capacity.
//!
//! A group (a pool's backends in one region) has a capacity for the whole fleet. Each balancer owns a fraction of it, in
//! [`Parts`] of 2^32, and enforces that fraction of the capacity as it sees it. Balancers move parts among themselves, by
//! messages that may be lost, repeated, delayed and reordered. Parts are moved, never created: what all balancers own,
//! with what is on its way between them, is one whole at any time. So the fleet never admits more than the capacity, and
//! no clock, lease or majority is needed for that.
//!
//! Only an [`epoch`] creates parts, to replace those of a balancer that is gone for good ([`forget`]).
//!
//! Pure code: time is handed in, messages, the store and the limits in the kernel are the caller's. [`Sharing`] is the
//! state of one balancer and says in which order the caller has to do what.
//!
//! | to understand | begin at |
//! |---|---|
//! | who should own how much | [`target`] |
//! | what must survive a crash | [`Ledger`] |
//! | when parts are given away | [`Sharing::round`] |
//! | how a lost balancer's parts come back | [`epoch::settle`] |

mod demand;
pub mod epoch;
pub mod forget;
mod ledger;
mod message;
mod parts;
mod sharing;
pub mod target;

pub use demand::DemandAverage;
pub use ledger::{GroupKey, Ledger, Transfer};
pub use message::{GroupReport, Message, ReportedCapacity};
pub use parts::Parts;
pub use sharing::{Demand, Sharing, SharingError};
