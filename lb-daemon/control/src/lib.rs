//! The state loop: the one owner of what is in force. It takes commands and what sensors report, keeps the store, and
//! alone writes the maps of the packet path.

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
