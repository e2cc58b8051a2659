//! `spillway explain`: which backend a packet goes to, and why. It runs the packet program's own
//! decision over the pinned maps.

mod flow;
mod reason;
mod recorder;
mod regions;
mod render;
mod trace;

use lb_common::abi::service::ServiceKey;
use serde::Serialize;

use self::flow::{Flow, Protocol};
use crate::{arguments::Options, failure::Failure, output::print, pinned};

/// Options of `explain`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Where the packet comes from, as in 198.51.100.7:40000 or [2001:db8::7]:40000
    client: String,
    /// The service's address and port, as in 192.0.2.1:80 or [2001:db8:1::1]:80
    vip: String,
    /// Transport protocol
    #[arg(long, value_enum, default_value_t)]
    protocol: Protocol,
    /// A packet of an open connection instead of a SYN
    #[arg(long)]
    open: bool,
}

/// The answer.
#[derive(Serialize)]
struct Explanation {
    /// Address and port.
    client: String,
    /// Address and port.
    vip: String,
    /// `tcp` or `udp`.
    protocol: &'static str,
    /// `new connection`, `open connection` or `datagram`.
    packet: &'static str,
    /// The service; `null`: none has this address, port and protocol.
    service: Option<ServicePart>,
    /// Hash of the flow, 16 hexadecimal digits.
    hash: Option<String>,
    /// The flow's slot in the first region.
    slot: Option<Slot>,
    /// Every entry that was asked, in order, and the rest of the first slot's list.
    entries: Vec<Entry>,
    /// The pool's regions in their order, and what was made of each.
    regions: Vec<regions::Region>,
    /// What the packet goes by instead of being placed anew: `record`, `exception`, `tracked`, or
    /// `former_home`.
    remembered: Option<&'static str>,
    /// `forwarded`, or the verdict of a packet that no backend gets.
    verdict: &'static str,
    /// Who has the packet.
    choice: Option<Chosen>,
    /// Why.
    why: String,
}

#[derive(Serialize)]
struct ServicePart {
    name: String,
    pool: String,
    /// `connection` or `client`.
    affinity: &'static str,
}

#[derive(Serialize)]
struct Slot {
    number: u32,
    of: u32,
}

#[derive(Serialize)]
struct Entry {
    region: String,
    /// `null` for a standby.
    slot: Option<u32>,
    /// `owner`, `alternate N` or `standby N`.
    place: String,
    backend: String,
    state: &'static str,
    outcome: String,
}

#[derive(Serialize)]
struct Chosen {
    backend: String,
    /// `null`: it is in none that the pool asks now.
    region: Option<String>,
    state: &'static str,
    /// Whether it is where the table alone puts the connection.
    owner: bool,
    /// MAC.
    next_hop: String,
    /// Index of the interface that the packet leaves by.
    interface: u16,
}

/// Reads the maps, decides and prints.
///
/// # Errors
/// The command line names no packet, or the maps cannot be read.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { client, vip, protocol, open } = arguments;
    let flow = Flow::parse(client, vip, *protocol, *open)?;
    let (maps, names) = pinned::open(options)?;
    let key = ServiceKey::new(flow.vip.ip(), flow.vip.port(), flow.parsed().flow.protocol);
    let view = maps.service_view(&key).map_err(|error| pinned::failure(&error))?;
    let explanation = match &view {
        Some(view) => trace::explain(view, &names, view.service(), &flow),
        None => trace::no_service(&flow),
    };
    print(&explanation, options.output)
}

impl Explanation {
    /// The verdict of a packet that a backend has: transmitted or redirected, by where it came in.
    const FORWARDED: &str = "forwarded";

    fn of(flow: &Flow) -> Self {
        Self {
            client: flow.client.to_string(),
            vip: flow.vip.to_string(),
            protocol: flow.protocol_name(),
            packet: flow.kind_name(),
            service: None,
            hash: None,
            slot: None,
            entries: Vec::new(),
            regions: Vec::new(),
            remembered: None,
            verdict: Self::FORWARDED,
            choice: None,
            why: String::new(),
        }
    }
}

#[cfg(test)]
mod tests;
