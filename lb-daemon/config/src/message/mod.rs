//! Between the messages of `spillway.v1`, the file form and the model.

mod document;
mod health_check;
mod model;
mod stored;

pub use document::UnknownValue;
pub use model::{duration, encapsulation, hash_key, to_message, wanted_state};
pub use stored::{StoredMessage, encode};
