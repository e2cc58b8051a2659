//! Between protobuf messages and our own types. Nothing else in the daemon sees protobuf.

mod document;
mod invalid;
mod message;
mod validate;

pub use document::UnknownValue;
pub use invalid::Invalid;
pub use validate::configuration;
