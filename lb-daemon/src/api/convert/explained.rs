//! Explanations as messages, and the packets that are asked about.

use std::net::SocketAddr;

use lb_common::path::{Kind, Memory, Outcome};
use nix::net::if_::if_indextoname;
use spillway_proto::v1;

use super::{WrongField, message::encapsulation};
use crate::{
    explain::{Chosen, Entry, Explanation, Flow, FlowError, Region, RegionOutcome},
    model::Protocol,
    quoted::Quoted,
};

/// The packet that a request asks about.
pub(in crate::api) fn flow(request: &v1::ExplainRequest) -> Result<Flow, WrongField> {
    let (client, vip) = (endpoint("client", &request.client)?, endpoint("vip", &request.vip)?);
    let protocol = match v1::Protocol::try_from(request.protocol) {
        Ok(v1::Protocol::Unspecified | v1::Protocol::Tcp) => Protocol::Tcp,
        Ok(v1::Protocol::Udp) => Protocol::Udp,
        Err(_) => {
            let cause = format!("{} is no protocol that this version knows", request.protocol);
            return Err(WrongField::new("protocol", cause));
        }
    };
    Flow::new(client, vip, protocol, request.open).map_err(|error| match error {
        FlowError::TwoVersions(client, vip) => {
            WrongField::new("vip", format!("{vip} is of another IP version than {client}"))
        }
        FlowError::OpenDatagram => {
            WrongField::new("open", "is for TCP; UDP has no connections that could be open")
        }
    })
}

fn endpoint(field: &'static str, text: &str) -> Result<SocketAddr, WrongField> {
    if text.is_empty() {
        return Err(WrongField::new(field, "must be set"));
    }
    let plain = |endpoint: &SocketAddr| match endpoint {
        SocketAddr::V4(_) => true,
        SocketAddr::V6(v6) => v6.scope_id() == 0,
    };
    match text.parse::<SocketAddr>() {
        Ok(endpoint) if endpoint.port() == 0 => {
            Err(WrongField::new(field, "port 0 is no port; give 1 to 65535"))
        }
        Ok(endpoint) if plain(&endpoint) => Ok(endpoint),
        _ => {
            let form = "write 192.0.2.1:80 or [2001:db8::1]:80";
            let cause = format!("{} is not an address with a port; {form}", Quoted(text));
            Err(WrongField::new(field, cause))
        }
    }
}

/// An explanation with the generation that its names are of.
pub(in crate::api) fn explained(explanation: &Explanation, generation: u64) -> v1::ExplainResponse {
    v1::ExplainResponse {
        generation,
        packet: match explanation.packet {
            Kind::NewConnection => v1::ExplainedPacket::NewConnection,
            Kind::OpenConnection => v1::ExplainedPacket::OpenConnection,
            Kind::Datagram => v1::ExplainedPacket::Datagram,
        }
        .into(),
        service: explanation.service.as_ref().map(|service| v1::ExplainedService {
            name: service.name.clone(),
            pool: service.pool.clone(),
            affinity: match service.affinity {
                "client" => v1::Affinity::Client,
                "port" => v1::Affinity::Port,
                _ => v1::Affinity::Connection,
            }
            .into(),
        }),
        hash: explanation.hash.clone().unwrap_or_default(),
        slot: explanation
            .slot
            .as_ref()
            .map(|slot| v1::ExplainedSlot { number: slot.number, of: slot.of }),
        steps: explanation.entries.iter().map(step).collect(),
        regions: explanation.regions.iter().map(region).collect(),
        memory: match explanation.remembered {
            None => v1::ExplainedMemory::Unspecified,
            Some(Memory::Record) => v1::ExplainedMemory::Record,
            Some(Memory::Exception) => v1::ExplainedMemory::Exception,
            Some(Memory::Tracked) => v1::ExplainedMemory::Tracked,
            Some(Memory::FormerHome) => v1::ExplainedMemory::FormerHome,
        }
        .into(),
        verdict: explanation.verdict.into(),
        choice: explanation.choice.as_ref().map(choice),
        why: explanation.why.clone(),
    }
}

fn step(entry: &Entry) -> v1::ExplainedStep {
    use v1::ExplainedStepOutcome as Message;
    v1::ExplainedStep {
        region: entry.region.clone(),
        slot: entry.slot,
        place: entry.place.clone(),
        backend: entry.backend.clone(),
        state: entry.state.into(),
        outcome: match entry.asked {
            None => Message::NotAsked,
            Some(Outcome::Chosen) => Message::Chosen,
            Some(Outcome::State) => Message::State,
            Some(Outcome::Ramp) => Message::Ramp,
            Some(Outcome::NextHop) => Message::NextHop,
            Some(Outcome::Full) => Message::Full,
        }
        .into(),
        words: entry.outcome.clone(),
    }
}

fn region(region: &Region) -> v1::ExplainedRegion {
    use v1::ExplainedRegionOutcome as Message;
    let outcome = match region.outcome {
        RegionOutcome::Chosen => Message::Chosen,
        RegionOutcome::Overrun => Message::Overrun,
        RegionOutcome::Held => Message::Held,
        RegionOutcome::Full => Message::Full,
        RegionOutcome::Drained => Message::Drained,
        RegionOutcome::Closed => Message::Closed,
        RegionOutcome::NobodyUsable => Message::NobodyUsable,
        RegionOutcome::NotAsked => Message::NotAsked,
    };
    v1::ExplainedRegion { region: region.region.clone(), outcome: outcome.into() }
}

fn choice(chosen: &Chosen) -> v1::ExplainedChoice {
    let name = if_indextoname(u32::from(chosen.interface)).ok();
    v1::ExplainedChoice {
        backend: chosen.backend.clone(),
        region: chosen.region.clone().unwrap_or_default(),
        state: chosen.state.into(),
        owner: chosen.owner,
        next_hop: chosen.next_hop.clone(),
        encapsulation: encapsulation(chosen.encapsulation).into(),
        gue_port: chosen.gue_port.map_or(0, u32::from),
        interface: name.and_then(|name| name.into_string().ok()).unwrap_or_default(),
    }
}
