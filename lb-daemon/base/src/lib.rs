//! What every layer of the daemon and the command line share. Depends on no other crate of the project.

pub mod byte_size;
pub mod bytes;
pub mod conditions;
pub mod error_chain;
pub mod exclusive;
pub mod heartbeat;
pub mod kernel;
pub mod lock_owner;
pub mod manual;
mod namespace;
mod nearest;
mod quoted;
pub mod rate_limited_log;
pub mod receiver_socket;
pub mod write_hint;

pub use namespace::Namespace;
pub use nearest::nearest;
pub use quoted::Quoted;
