//! The state loop: owns what is in force, takes commands and the sensors' changes, keeps the store, and is
//! the only writer of the packet path's maps.

#[cfg(test)]
extern crate self as lb_control;

pub mod command;
pub mod reconcile;
pub mod state;
pub mod store;

#[cfg(test)]
#[path = "../../fake/src/packet_path.rs"]
#[allow(unreachable_pub, dead_code, reason = "public in the crate lb-fake")]
mod fake;

pub use state::{FollowedFile, PublishCounters, WaitingSettings};
