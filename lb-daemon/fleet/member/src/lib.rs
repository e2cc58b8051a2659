//! A balancer's part in a fleet: what joins [`lb_fleet`] (etcd), [`lb_sharing`] (who owns how much of each capacity) and
//! [`lb_control`] (the loops).
//!
//! ```text
//! API ── Changes ──┬── Commands            of an independent balancer
//!                  └── Member ──→ etcd     of a member: committed, and not yet in force
//!                                  ↓ Reader
//!                               Follower ──→ Commands, portions, homes
//! peers ←──────────────────────→ sharing loop
//! ```
//!
//! A change at a member is committed to etcd, and each balancer puts it in force when it reads it there, also the one that
//! committed it. So a balancer that was away needs no other way to catch up.

mod changes;
mod clocks;
mod collect;
mod commits;
mod epochs;
mod etcd;
mod follower;
mod generations;
mod homes;
mod join;
mod leave;
mod liveness;
mod member;
mod membership;
mod overrides;
mod packet_path;
mod preflight;
mod questions;
mod record;
mod restore;
mod sharing;
mod silent_peers;
mod space;
mod status;
mod table_comparison;
mod unowned;
mod versions;
mod wall_clock;

pub use changes::Changes;
pub use join::{Join, Joined};
pub use member::{Member, StartError};
pub use membership::{Context, Membership, MembershipError};
pub use packet_path::stored_portions;
pub use questions::{OwnAnswers, packets_of};
pub use record::{MembershipRecord, RecordError};
pub use restore::Restore;
pub use sharing::SharingStartError;
pub use status::{FleetStatus, GroupShares, MemberStatus};
