//! Helpers that all layers of the daemon and the command line share. Depends on no other crate of the project.

pub mod background;
pub mod boot_clock;
pub mod bytes;
pub mod conditions;
pub mod durations;
pub mod error_chain;
pub mod exclusive;
pub mod heartbeat;
pub mod kernel;
pub mod lock_owner;
pub mod loops;
pub mod own_file;
mod prefix;
pub mod queue;
pub mod rate_limited_log;
pub mod receiver_socket;
mod text;

pub use kernel::Namespace;
pub use prefix::{Prefix, PrefixError, longest_match};
pub use text::{FirstOf, Quoted, count, nearest, shell_word, write_hint};
