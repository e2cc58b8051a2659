//! The kernel's side: objects, pins, attached programs and map memory.
//!
//! Nothing here knows what is wanted; the reconciler of `lb-control` alone writes maps through it.

mod arrays;
mod attach;
mod backend_states;
mod bpffs;
mod capture;
mod chunks;
pub mod clock;
pub mod directory;
mod error;
mod flow_table;
mod interface_statistics;
mod layout;
mod limiters;
mod loader;
mod map_memory;
mod maps;
mod member_maps;
mod opener;
mod pins;
mod probe;
mod raw;
mod receiver;
mod service_index;
mod sizes;
mod slot_tables;
mod start_record;
mod tracepoints;
mod view;
mod writable;

pub use arrays::{ArrayView, Arrays};
pub use attach::{
    AttachError, Attached, AttachedMode, Dataplane, DataplaneError, Detached, Hold, Hook,
    Interface, Linked, LockedPins, Occupant, Options, Restored, SlowPathError, XdpMode, detach,
    links, load_slow_path, occupant, remove_filters_for_answers,
};
pub use backend_states::SharedBackend;
pub use bpffs::BpffsError;
pub use capture::{CaptureMaps, CaptureSwitch, Sample, Samples};
pub use error::MapsError;
pub use flow_table::{FlowMaps, FlowTable};
pub use interface_statistics::{InterfaceStatistics, LinkStatistics, interface_statistics};
pub use loader::{LoadError, Objects, StubObject};
pub use map_memory::map_memory;
pub use maps::{Maps, PinnedMaps};
pub use member_maps::MemberMaps;
pub use opener::Access;
pub use pins::{Component, DEFAULT_BPFFS, Pins};
pub use probe::{ProbeError, ProbeProgram};
pub use raw::{DriverStatistics, Mapping, MappingMut};
pub use receiver::{AllowLists, Prefix, PrefixError, Receiver, ReceiverMaps};
pub use service_index::IndexFull;
pub use sizes::{SizeSettings, WaitingSize};
pub use slot_tables::{NewTable, SlotTable, TableName};
pub use start_record::StartRecord;
pub use tracepoints::{TracedDrops, TracepointError, attach_tracepoints};
pub use view::{PoolMembers, PoolView, ServiceView};
pub use writable::{AnyPorts, WritableMaps};
