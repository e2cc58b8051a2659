//! The one place of this crate with unsafe code: map memory.
#![allow(unsafe_code)]

mod mapping;

pub use mapping::{Mapping, MappingMut};
