//! Between protobuf messages and our own types. Nothing else in the daemon sees protobuf.

mod document;

pub use document::UnknownValue;
