//! The door: gRPC in, [`crate::model`] and commands out.

pub mod convert;
