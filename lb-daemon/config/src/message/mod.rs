//! Conversions between the messages of `spillway.v1`, the file form and the model.

mod document;
mod enums;
mod health_check;
mod model;

pub use document::UnknownValue;
pub use enums::{ApiEnum, UnknownNumber, to_number};
pub(crate) use model::to_message_with;
pub use model::{
    StoredMessage, backend, duration, encode, encode_pool, encode_without_pools, hash_key, pool,
    to_message,
};
