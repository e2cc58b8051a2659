//! Which backend a packet goes to, and why: what the Explain call and `spillway explain` are made of.
//! It runs the packet program's own decision over the pinned maps, and works with the daemon dead.

mod flow;
mod reason;
mod regions;
mod trace;
mod unserved;

use std::{borrow::Cow, path::Path};

use lb_common::{
    flow_table::State,
    path::{Kind, Memory, Outcome},
};
use serde::{Serialize, Serializer};

pub use flow::{Flow, FlowError};
pub use regions::{Region, RegionOutcome};
pub use trace::{explain, no_service};
pub use unserved::{UnservedPart, unserved};

use crate::names::Names;
use lb_maps::{MapsError, PinnedMaps, directory::Directory};
use lb_model::{Affinity, Encapsulation, Protocol};

/// What becomes of a packet.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// Address and port.
    pub client: String,
    /// Address and port.
    pub vip: String,
    pub protocol: Protocol,
    /// `new connection`, `open connection` or `datagram`.
    #[serde(serialize_with = "packet_name")]
    pub packet: Kind,
    /// The service; `null`: none has this address, port and protocol.
    pub service: Option<ServicePart>,
    /// Hash of the flow, 16 hexadecimal digits.
    pub hash: Option<String>,
    /// The flow's slot in the first region.
    pub slot: Option<Slot>,
    /// Address of the backend that is the flow's home now: that of its open connection without a cell. `null`: the pool has
    /// nobody.
    pub home: Option<String>,
    /// Address of its home by the version by which new connections are placed already; `null`: the pool is in no remap.
    pub next: Option<String>,
    /// The flow's zone.
    pub zone: Option<Zone>,
    /// What the flow table has of the flow; `null`: nothing.
    pub cell: Option<FlowCell>,
    /// Every entry that was asked, in order, and the rest of the first slot's list.
    pub entries: Vec<Entry>,
    /// The pool's regions in their order, and what was made of each.
    pub regions: Vec<Region>,
    /// What the packet goes by instead of being placed anew: `handshake`, `displaced`, `tracked`, or
    /// `previous_home`.
    #[serde(serialize_with = "memory_name")]
    pub remembered: Option<Memory>,
    /// `forwarded`, or the verdict of a packet that no backend gets.
    pub verdict: Cow<'static, str>,
    /// Who has the packet.
    pub choice: Option<Chosen>,
    /// What becomes of a packet for a VIP that no service takes; `null`: a service takes it, or its destination is no VIP.
    pub unserved: Option<UnservedPart>,
    pub why: String,
}

/// A service and what serves it.
#[derive(Clone, Debug, Serialize)]
pub struct ServicePart {
    pub name: String,
    pub pool: String,
    /// What keeps a client at one backend.
    pub affinity: Affinity,
}

/// A slot of a table.
#[derive(Clone, Debug, Serialize)]
pub struct Slot {
    /// Its number, from 0.
    pub number: u32,
    /// Slots of the table.
    pub of: u32,
}

/// A neighbourhood of slots.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Zone {
    /// Its number.
    pub number: u16,
    /// Whether packets of its open connections look for a cell (the displaced check).
    pub looks_for_cells: bool,
}

/// A flow's cell; of several, which are of connections one after the other, the youngest.
#[derive(Clone, Debug, Serialize)]
pub struct FlowCell {
    /// `open`, `half_open`, `half_open_at_home`, `seen_once` or `closing`.
    #[serde(serialize_with = "state_name")]
    pub state: State,
    /// Address of the backend that the flow is at.
    pub backend: String,
    /// Seconds until it is over, unless a packet renews it.
    pub seconds_left: u32,
}

/// An entry that was asked, or would have been.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    pub region: String,
    /// `null` for a standby.
    pub slot: Option<u32>,
    /// `owner`, `alternate N` or `standby N`.
    pub place: String,
    /// Address.
    pub backend: String,
    /// `up`, `unfit` or `dead`.
    pub accepts: Cow<'static, str>,
    /// What was made of it, in words.
    pub outcome: String,
    /// The same; `None`: it was not asked, another had the packet before.
    #[serde(skip)]
    pub asked: Option<Outcome>,
}

/// Who has the packet.
#[derive(Clone, Debug, Serialize)]
pub struct Chosen {
    /// Address.
    pub backend: String,
    /// `null`: it is in none that the pool asks now.
    pub region: Option<String>,
    /// `up`, `unfit` or `dead`.
    pub accepts: Cow<'static, str>,
    /// Whether it is where the table alone puts the connection.
    pub owner: bool,
    /// How the packet gets there: `ip_in_ip`, `gue` or `direct`.
    #[serde(serialize_with = "encapsulation_name")]
    pub encapsulation: Encapsulation,
    /// UDP port that it goes to; `null`: none.
    pub gue_port: Option<u16>,
    /// MAC.
    pub next_hop: String,
    /// Index of the interface that the packet leaves by, in the network namespace of the daemon.
    pub interface: u16,
    /// Its name; `null`: there is none of this index any more, or this is another network namespace.
    pub interface_name: Option<String>,
}

fn memory_name<S: Serializer>(memory: &Option<Memory>, to: S) -> Result<S::Ok, S::Error> {
    memory.map(reason::memory_name).serialize(to)
}

fn state_name<S: Serializer>(state: &State, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(state.name())
}

fn encapsulation_name<S: Serializer>(to: &Encapsulation, by: S) -> Result<S::Ok, S::Error> {
    by.serialize_str(to.name())
}

fn packet_name<S: Serializer>(kind: &Kind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(kind_name(*kind))
}

/// `new connection`, `open connection` or `datagram`.
pub const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::NewConnection => "new connection",
        Kind::OpenConnection => "open connection",
        Kind::Datagram => "datagram",
    }
}

/// Explains a packet by the maps pinned in a BPF file system and the names in a state directory, with
/// the generation of the names; without names things are called by their numbers.
///
/// # Errors
/// [`MapsError`] says which pin is missing, forbidden or of another layout, or what the kernel
/// answers.
pub fn explain_pinned(
    bpffs: &Path,
    state_directory: &Path,
    flow: &Flow,
) -> Result<(u64, Explanation), MapsError> {
    let names = Directory::read(state_directory).map(Names).unwrap_or_default();
    Ok((names.0.generation, explain_with(&PinnedMaps::open(bpffs)?, &names, flow)?))
}

/// Explains a packet by maps that are open.
///
/// # Errors
/// As [`explain_pinned`].
pub fn explain_with(
    maps: &PinnedMaps,
    names: &Names,
    flow: &Flow,
) -> Result<Explanation, MapsError> {
    let service = maps.service_of(&flow.tuple())?;
    let view = service.map(|service| maps.service_view(service)).transpose()?.flatten();
    Ok(match view {
        Some(view) => explain(&view, names, view.service(), flow),
        None => match maps.vip(&flow.vip_key())? {
            Some(word) => unserved(flow, word.drops_unserved()),
            None => no_service(flow),
        },
    })
}

impl Explanation {
    /// The verdict of a packet that a backend has: transmitted or redirected, by where it came in.
    const FORWARDED: &str = "forwarded";

    pub(crate) fn for_flow(flow: &Flow) -> Self {
        Self {
            client: flow.client.to_string(),
            vip: flow.vip.to_string(),
            protocol: flow.protocol,
            packet: flow.kind,
            service: None,
            hash: None,
            slot: None,
            home: None,
            next: None,
            zone: None,
            cell: None,
            entries: Vec::new(),
            regions: Vec::new(),
            remembered: None,
            verdict: Self::FORWARDED.into(),
            choice: None,
            unserved: None,
            why: String::new(),
        }
    }
}

#[cfg(test)]
mod tests;
