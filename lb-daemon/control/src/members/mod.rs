//! The owner of members: what is known of each backend in each pool, and the loop that has its words written.
//!
//! [`MemberLoop`] takes the results of checks and the next hops, and writes them to the packet path at once. It waits for
//! nothing, so that nothing stands between a failed check and the maps. All that may wait is left to the state loop and the
//! status loop, which get each change as a [`MemberUpdate`]. They share nothing: the state loop sends commands.

mod commands;
mod mailbox;
mod member;
mod member_loop;
mod panic;
mod path_losses;
mod portions;
mod shares;
mod table;

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Instant, SystemTime},
};

pub(crate) use commands::{MemberCommand, MemberCommands};
pub(crate) use mailbox::{Mailbox, Newest, mailbox};
pub(crate) use member::{Member, is_checked};
pub(crate) use member_loop::{Initial, UpdateSenders};
pub use member_loop::{MemberLoop, Sensed};
pub use portions::{NotEnforced, PortionCommands};

use lb_model::{
    Name,
    next_hop::{NextHop, NoNextHop},
};

/// A change of what is known of a backend.
#[derive(Clone, Debug)]
pub(crate) enum MemberUpdate {
    Member { pool: Name, address: IpAddr, member: Arc<Member>, cause: Cause },
    NextHop { address: IpAddr, hop: Result<NextHop, NoNextHop> },
}

/// Why a member changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Its checks changed its state or the reason.
    Checks,
    /// The configuration.
    Configuration,
    /// An override.
    Override,
    /// Only its share or its report changed, which is no event.
    Share,
}

/// The wall clock, for times that are shown.
pub(crate) fn wall_clock() -> SystemTime {
    SystemTime::now()
}

/// The monotonic clock, which tests can pause.
pub(crate) fn clock() -> Instant {
    tokio::time::Instant::now().into_std()
}
