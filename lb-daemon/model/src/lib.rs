//! The configuration, and everything that is computed from it: ids, tables, plans, differences, limits and
//! shares. Pure code: no tokio, no maps, no disk.

#[cfg(test)]
extern crate self as lb_model;

mod actor;
pub mod capacity;
pub mod configuration;
pub mod diff;
pub mod hold_down;
pub mod ids;
pub mod maglev;
pub mod map_memory;
pub mod mark_out;
mod member_state;
pub mod next_hop;
mod object;
pub mod overrides;
pub mod own_addresses;
pub mod plan;
pub mod remap;
pub mod removal_guard;
pub mod room;
pub mod shares;
pub mod slots;
mod source_prefix;
pub mod unserved;

#[cfg(test)]
#[path = "../../fake/src/arbitrary.rs"]
#[allow(unreachable_pub, reason = "public in the crate lb-fake")]
mod arbitrary;

pub use actor::Actor;
pub use member_state::{MemberState, StateCause, StateReason};
pub use object::ObjectReference;
pub use source_prefix::{Ipv4Prefix, SourceClash};

pub use configuration::{
    AdminState, Affinity, AgentCheck, Backend, CheckKind, CheckTls, Configuration, Encapsulation,
    EncapsulationKind, Endpoint, Fragments, GroupSettings, GrpcCheck, HealthCheck, HostProbe,
    HttpCheck, Isolation, Name, NameError, NamedValue, Pool, PortList, Ports, Protocol, Rate,
    Region, Scaler, Service, Trust, UdpCheck, UdpMode, Unserved, Via, WhenFull, bounds, rate,
};
