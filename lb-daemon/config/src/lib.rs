//! The forms of a configuration: the file that people write, the message of the API, and the way from a message to the
//! validated model.
#![warn(missing_docs)]

pub mod document;
mod draft;
pub mod message;
mod reason;
pub mod validate;

pub use draft::Draft;
pub use message::{
    StoredMessage, UnknownValue, encode, encode_pool, encode_without_pools, to_message,
};
pub use reason::{MAX_REASON, Reason, ReasonError};
pub use validate::{
    Invalid, MOST_MISTAKES, OpenSlots, Requested, SlotsByPool, hash_key_of_message, host_address,
    slots_by_pool, slots_of_message, validate, validate_first,
};

/// Unix socket of the API, unless the daemon is told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/spillway/spillwayd.sock";

/// Trailer of a gRPC error that holds the path of the field that is wrong.
pub const FIELD_TRAILER: &str = "spillway-field";

/// Trailer of a gRPC error that says what to do, where the daemon knows it better than its caller.
pub const HINT_TRAILER: &str = "spillway-hint";
