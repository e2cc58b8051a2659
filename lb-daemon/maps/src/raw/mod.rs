//! The one place of this crate with unsafe code: map memory, and system calls that aya lacks.
#![allow(unsafe_code)]

mod bpf;
mod ethtool;
mod mapping;

pub(super) use bpf::{create_array, detach_link, link_interface, open_link, update_batch, watched};
pub use ethtool::DriverStatistics;
pub(super) use ethtool::driver_statistics;
pub(super) use mapping::SharedWord;
pub use mapping::{Mapping, MappingMut};
