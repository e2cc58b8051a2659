//! The kernel's side: objects, pins, attached programs and map memory.
//!
//! Nothing here knows what is wanted; [`crate::reconcile`] alone writes maps through it.

mod array;
mod attach;
mod attached;
mod balancer;
mod bpffs;
pub mod clock;
mod detach;
mod error;
mod flow_table;
mod gates;
mod inner;
mod layout;
mod link_state;
mod links;
mod loader;
mod maps;
mod memory;
mod meters;
mod objects;
mod occupant;
mod opener;
mod pins;
mod raw;
mod receiver;
mod rooms;
mod tables;
mod view;
mod writable;

pub use array::ArrayView;
pub use attach::{AttachError, Interface, XdpMode};
pub use attached::{Attached, DataplaneError, Options};
pub use balancer::Dataplane;
pub use bpffs::BpffsError;
pub use detach::{Detached, detach};
pub use error::MapsError;
pub use flow_table::{FlowTable, FlowTables};
pub use gates::Gates;
pub use link_state::AttachedMode;
pub use links::{Linked, links};
pub use loader::LoadError;
pub use maps::{Maps, PinnedMaps, SlotTable};
pub use memory::map_memory;
pub use objects::{StubObject, digest, object};
pub use occupant::{Hold, Occupant, occupant};
pub use opener::Access;
pub use pins::{DEFAULT_BPFFS, Pins, Role};
pub use raw::{Mapping, MappingMut};
pub use receiver::{AllowLists, Prefix, PrefixError, Receiver, ReceiverMaps};
pub use rooms::Rooms;
pub use tables::{NewTable, TableName};
pub use view::{PoolMembers, PoolView, ServiceView};
pub use writable::{AnyPorts, WritableMaps};
