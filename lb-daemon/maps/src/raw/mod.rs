//! The one place of this crate with unsafe code: map memory, and system calls that aya lacks.
#![allow(unsafe_code)]

mod bpf;
mod mapping;

pub(super) use bpf::{
    Elements, detach_link, link_interface, lookup_batch, open_link, update_batch, watched,
};
pub use mapping::{Mapping, MappingMut};
