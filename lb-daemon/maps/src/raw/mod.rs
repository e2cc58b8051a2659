//! The one place of this crate with unsafe code: map memory, and system calls that aya lacks.
#![allow(unsafe_code)]

mod bpf;
mod mapping;
mod ready;

pub(super) use bpf::{
    Elements, detach_link, inner_id, link_interface, lookup_batch, open_link, update_batch,
};
pub use mapping::{Mapping, MappingMut};
pub(super) use ready::watched;
