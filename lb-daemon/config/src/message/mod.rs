//! Between the messages of `spillway.v1`, the file form and the model.

mod document;
mod health_check;
mod model;
mod stored;

pub use document::UnknownValue;
pub use model::{admin_state, duration, encapsulation, hash_key, to_message};
pub use stored::{StoredMessage, encode};
