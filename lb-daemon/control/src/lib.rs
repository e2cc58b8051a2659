//! Five loops. The state loop owns the configuration in force: it makes changes, keeps the store, and may wait for the disk.
//! The publisher (lb-publish) brings the packet path to a plan, and may wait for packets. The member loop takes what sensors
//! report and writes it at once. The override loop keeps what operators ask for beside the configuration. The status loop
//! answers questions.

#[cfg(test)]
extern crate self as lb_control;

pub mod command;
mod counters;
pub mod health_state;
pub mod loops;
pub mod members;
pub mod overrides;
pub mod state;
pub mod status;

#[cfg(test)]
#[path = "../../fake/src/packet_path.rs"]
#[allow(unreachable_pub, dead_code, reason = "public in the crate lb-fake")]
mod fake;

pub use counters::{HealthCounters, PublishCounters};
pub use state::{BalancerAddresses, FollowedFile, Membership, WaitingSettings};
