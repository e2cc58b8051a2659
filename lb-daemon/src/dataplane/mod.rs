//! The kernel's side: objects, pins, attached programs and map memory.
//!
//! Nothing here knows what is wanted; [`crate::reconcile`] alone writes maps through it.

mod array;
mod error;
mod layout;
mod maps;
mod opener;
mod pins;
mod raw;
mod view;

pub use array::ArrayView;
pub use error::MapsError;
pub use maps::{Maps, PinnedMaps, SlotTable};
pub use opener::Access;
pub use pins::{DEFAULT_BPFFS, Pins, Role};
pub use raw::{Mapping, MappingMut};
pub use view::{PoolView, ServiceView};
