//! Explanations as messages and back, and the packets that are asked about.

use lb_common::{
    flow_table::State,
    path::{Kind, Memory, Outcome},
};
use spillway_proto::v1;

use lb_config::message::ApiEnum;

use crate::explain::{
    Chosen, Entry, Explanation, Flow, FlowCell, Region, RegionOutcome, ServicePart, Slot,
    UnservedPart, Zone,
};
use lb_model::{Affinity, Encapsulation, EncapsulationKind};

/// An explanation with the generation that its names are of.
pub fn explained(explanation: &Explanation, generation: u64) -> v1::ExplainResponse {
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
            affinity: service.affinity.to_api().into(),
        }),
        hash: explanation.hash.clone().unwrap_or_default(),
        slot: explanation
            .slot
            .as_ref()
            .map(|slot| v1::ExplainedSlot { number: slot.number, of: slot.of }),
        home: explanation.home.clone().unwrap_or_default(),
        next: explanation.next.clone().unwrap_or_default(),
        zone: explanation.zone.map(|zone| v1::ExplainedZone {
            number: zone.number.into(),
            looks_for_cells: zone.looks_for_cells,
        }),
        cell: explanation.cell.as_ref().map(cell),
        steps: explanation.entries.iter().map(step).collect(),
        regions: explanation.regions.iter().map(region).collect(),
        memory: match explanation.remembered {
            None => v1::ExplainedMemory::Unspecified,
            Some(Memory::Handshake) => v1::ExplainedMemory::Handshake,
            Some(Memory::Displaced) => v1::ExplainedMemory::Displaced,
            Some(Memory::Tracked) => v1::ExplainedMemory::Tracked,
            Some(Memory::PreviousHome) => v1::ExplainedMemory::PreviousHome,
        }
        .into(),
        verdict: explanation.verdict.clone().into_owned(),
        choice: explanation.choice.as_ref().map(choice),
        why: explanation.why.clone(),
        unserved: explanation.unserved.as_ref().map(unserved),
    }
}

/// Causes of the API in the order of [`UnservedPart::CAUSES`].
const CAUSES: [v1::ExplainedUnservedCause; 4] = [
    v1::ExplainedUnservedCause::Configured,
    v1::ExplainedUnservedCause::OwnAddress,
    v1::ExplainedUnservedCause::Forwards,
    v1::ExplainedUnservedCause::NotOfHost,
];

fn unserved(part: &UnservedPart) -> v1::ExplainedUnserved {
    let place = UnservedPart::CAUSES.iter().position(|name| Some(*name) == part.cause);
    let cause = place.map_or(v1::ExplainedUnservedCause::Unspecified, |place| CAUSES[place]);
    let prefix = part.prefix.clone().unwrap_or_default();
    v1::ExplainedUnserved { drops: part.drops, cause: cause.into(), prefix }
}

fn unserved_part(message: v1::ExplainedUnserved) -> Result<UnservedPart, UnknownAnswer> {
    let known = v1::ExplainedUnservedCause::try_from(message.cause);
    let known = known.map_err(|_| UnknownAnswer { field: "unserved.cause" })?;
    let place = CAUSES.iter().position(|cause| *cause == known);
    Ok(UnservedPart {
        drops: message.drops,
        cause: place.map(|place| UnservedPart::CAUSES[place]),
        prefix: Some(message.prefix).filter(|prefix| !prefix.is_empty()),
    })
}

fn cell(cell: &FlowCell) -> v1::ExplainedCell {
    use v1::ExplainedCellState as Message;
    v1::ExplainedCell {
        state: match cell.state {
            State::Open => Message::Open,
            State::HalfOpen => Message::HalfOpen,
            State::HalfOpenAtHome => Message::HalfOpenAtHome,
            State::SeenOnce => Message::SeenOnce,
            State::Closing => Message::Closing,
        }
        .into(),
        backend: cell.backend.clone(),
        seconds_left: cell.seconds_left,
    }
}

fn step(entry: &Entry) -> v1::ExplainedStep {
    use v1::ExplainedStepOutcome as Message;
    v1::ExplainedStep {
        region: entry.region.clone(),
        slot: entry.slot,
        place: entry.place.clone(),
        backend: entry.backend.clone(),
        accepts: entry.accepts.clone().into_owned(),
        outcome: match entry.asked {
            None => Message::NotAsked,
            Some(Outcome::Chosen) => Message::Chosen,
            Some(Outcome::State) => Message::State,
            Some(Outcome::Ramp) => Message::Ramp,
            Some(Outcome::NextHop) => Message::NextHop,
            Some(Outcome::Awaited) => Message::Awaited,
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
        RegionOutcome::OverCapacity => Message::OverCapacity,
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
    v1::ExplainedChoice {
        backend: chosen.backend.clone(),
        region: chosen.region.clone().unwrap_or_default(),
        accepts: chosen.accepts.clone().into_owned(),
        owner: chosen.owner,
        next_hop: chosen.next_hop.clone(),
        encapsulation: chosen.encapsulation.kind().to_api().into(),
        gue_port: chosen.gue_port.map_or(0, u32::from),
        interface: chosen.interface_name.clone().unwrap_or_default(),
        interface_index: chosen.interface.into(),
    }
}

/// An answer holds a value that this version has no word for: it comes from a newer daemon.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the explanation: {field} has a value that this version does not know")]
pub struct UnknownAnswer {
    field: &'static str,
}

/// The explanation that a daemon answered with, of the packet that it was asked about.
///
/// # Errors
/// [`UnknownAnswer`]
pub fn explanation(flow: &Flow, answer: v1::ExplainResponse) -> Result<Explanation, UnknownAnswer> {
    let remembered = memory(answer.memory)?;
    let service = answer.service.map(service_part).transpose()?;
    let regions = answer.regions.into_iter().map(region_part).collect::<Result<_, _>>()?;
    Ok(Explanation {
        service,
        hash: Some(answer.hash).filter(|hash| !hash.is_empty()),
        slot: answer.slot.map(|v1::ExplainedSlot { number, of }| Slot { number, of }),
        home: Some(answer.home).filter(|home| !home.is_empty()),
        next: Some(answer.next).filter(|next| !next.is_empty()),
        zone: answer.zone.map(zone_part).transpose()?,
        cell: answer.cell.map(cell_part).transpose()?,
        entries: answer.steps.into_iter().map(entry).collect(),
        regions,
        remembered,
        verdict: answer.verdict.into(),
        choice: answer.choice.map(chosen).transpose()?,
        unserved: answer.unserved.map(unserved_part).transpose()?,
        why: answer.why,
        ..Explanation::for_flow(flow)
    })
}

/// Unset says that nothing is remembered, so a number that is not known has to be told from it.
fn memory(number: i32) -> Result<Option<Memory>, UnknownAnswer> {
    let known = v1::ExplainedMemory::try_from(number);
    Ok(match known.map_err(|_| UnknownAnswer { field: "memory" })? {
        v1::ExplainedMemory::Unspecified => None,
        v1::ExplainedMemory::Handshake => Some(Memory::Handshake),
        v1::ExplainedMemory::Displaced => Some(Memory::Displaced),
        v1::ExplainedMemory::Tracked => Some(Memory::Tracked),
        v1::ExplainedMemory::PreviousHome => Some(Memory::PreviousHome),
    })
}

fn zone_part(zone: v1::ExplainedZone) -> Result<Zone, UnknownAnswer> {
    let number = u16::try_from(zone.number).map_err(|_| UnknownAnswer { field: "zone.number" })?;
    Ok(Zone { number, looks_for_cells: zone.looks_for_cells })
}

fn cell_part(cell: v1::ExplainedCell) -> Result<FlowCell, UnknownAnswer> {
    use v1::ExplainedCellState as Message;
    let state = match cell.state() {
        Message::Unspecified => return Err(UnknownAnswer { field: "cell.state" }),
        Message::Open => State::Open,
        Message::HalfOpen => State::HalfOpen,
        Message::HalfOpenAtHome => State::HalfOpenAtHome,
        Message::SeenOnce => State::SeenOnce,
        Message::Closing => State::Closing,
    };
    Ok(FlowCell { state, backend: cell.backend, seconds_left: cell.seconds_left })
}

fn service_part(service: v1::ExplainedService) -> Result<ServicePart, UnknownAnswer> {
    let affinity = Affinity::from_api(service.affinity).ok().flatten();
    let affinity = affinity.ok_or(UnknownAnswer { field: "service.affinity" })?;
    Ok(ServicePart { name: service.name, pool: service.pool, affinity })
}

fn entry(step: v1::ExplainedStep) -> Entry {
    use v1::ExplainedStepOutcome as Message;
    let asked = match step.outcome() {
        Message::Unspecified | Message::NotAsked => None,
        Message::Chosen => Some(Outcome::Chosen),
        Message::State => Some(Outcome::State),
        Message::Ramp => Some(Outcome::Ramp),
        Message::NextHop => Some(Outcome::NextHop),
        Message::Awaited => Some(Outcome::Awaited),
        Message::Full => Some(Outcome::Full),
    };
    let v1::ExplainedStep { region, slot, place, backend, accepts, words, .. } = step;
    Entry { region, slot, place, backend, accepts: accepts.into(), outcome: words, asked }
}

fn region_part(region: v1::ExplainedRegion) -> Result<Region, UnknownAnswer> {
    use v1::ExplainedRegionOutcome as Message;
    let outcome = match region.outcome() {
        Message::Unspecified => return Err(UnknownAnswer { field: "regions.outcome" }),
        Message::Chosen => RegionOutcome::Chosen,
        Message::OverCapacity => RegionOutcome::OverCapacity,
        Message::Held => RegionOutcome::Held,
        Message::Full => RegionOutcome::Full,
        Message::Drained => RegionOutcome::Drained,
        Message::Closed => RegionOutcome::Closed,
        Message::NobodyUsable => RegionOutcome::NobodyUsable,
        Message::NotAsked => RegionOutcome::NotAsked,
    };
    Ok(Region { region: region.region, outcome })
}

fn chosen(choice: v1::ExplainedChoice) -> Result<Chosen, UnknownAnswer> {
    let port = |field| u16::try_from(choice.gue_port).map_err(|_| UnknownAnswer { field });
    let kind = EncapsulationKind::from_api(choice.encapsulation).ok().flatten();
    let encapsulation = match kind.ok_or(UnknownAnswer { field: "choice.encapsulation" })? {
        EncapsulationKind::IpInIp => Encapsulation::IpInIp,
        EncapsulationKind::Gue => Encapsulation::Gue(port("choice.gue_port")?),
        EncapsulationKind::Direct => Encapsulation::Direct,
    };
    let interface = u16::try_from(choice.interface_index);
    Ok(Chosen {
        backend: choice.backend,
        region: Some(choice.region).filter(|region| !region.is_empty()),
        accepts: choice.accepts.into(),
        owner: choice.owner,
        encapsulation,
        gue_port: encapsulation.gue_port(),
        next_hop: choice.next_hop,
        interface: interface.map_err(|_| UnknownAnswer { field: "choice.interface_index" })?,
        interface_name: Some(choice.interface).filter(|name| !name.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use lb_model::Protocol;

    use super::*;

    fn flow() -> Flow {
        let client = "198.51.100.7:40000".parse().unwrap();
        Flow::new(client, "192.0.2.1:80".parse().unwrap(), Protocol::Tcp, false).unwrap()
    }

    /// Every field is set, and each value of an enumeration is there once.
    fn whole(
        encapsulation: Encapsulation,
        remembered: Option<Memory>,
        state: State,
    ) -> Explanation {
        let entry = |asked| Entry {
            region: "eu".into(),
            slot: Some(7),
            place: "owner".into(),
            backend: "10.0.0.1".into(),
            accepts: "all".into(),
            outcome: "chosen".into(),
            asked,
        };
        let outcomes = [
            Outcome::Chosen,
            Outcome::State,
            Outcome::Ramp,
            Outcome::NextHop,
            Outcome::Awaited,
            Outcome::Full,
        ];
        let mut entries: Vec<_> = outcomes.map(|outcome| entry(Some(outcome))).into();
        entries.push(Entry { slot: None, ..entry(None) });
        let regions = [
            RegionOutcome::Chosen,
            RegionOutcome::OverCapacity,
            RegionOutcome::Held,
            RegionOutcome::Full,
            RegionOutcome::Drained,
            RegionOutcome::Closed,
            RegionOutcome::NobodyUsable,
            RegionOutcome::NotAsked,
        ];
        let region = |outcome| Region { region: "eu".into(), outcome };
        Explanation {
            service: Some(ServicePart {
                name: "shop".into(),
                pool: "web".into(),
                affinity: Affinity::Port,
            }),
            hash: Some("0123456789abcdef".into()),
            slot: Some(Slot { number: 7, of: 65_537 }),
            home: Some("10.0.0.1".into()),
            next: Some("10.0.0.2".into()),
            zone: Some(Zone { number: 65_535, looks_for_cells: true }),
            cell: Some(FlowCell { state, backend: "10.0.0.3".into(), seconds_left: 720 }),
            entries,
            regions: regions.map(region).into(),
            remembered,
            verdict: "forwarded".into(),
            choice: Some(Chosen {
                backend: "10.0.0.1".into(),
                region: Some("eu".into()),
                accepts: "open".into(),
                owner: true,
                encapsulation,
                gue_port: encapsulation.gue_port(),
                next_hop: "02:00:00:00:00:01".into(),
                interface: 3,
                interface_name: Some("eth0".into()),
            }),
            why: "10.0.0.1 owns the slot and is up".into(),
            ..Explanation::for_flow(&flow())
        }
    }

    #[test]
    fn explanations_come_back_as_they_were_sent() {
        let memories =
            [Memory::Handshake, Memory::Displaced, Memory::Tracked, Memory::PreviousHome];
        for remembered in memories.map(Some).into_iter().chain([None]) {
            for how in [Encapsulation::IpInIp, Encapsulation::Gue(6080), Encapsulation::Direct] {
                for state in State::ALL {
                    let sent = whole(how, remembered, state);
                    let back = explanation(&flow(), explained(&sent, 3)).unwrap();
                    assert_eq!(format!("{back:?}"), format!("{sent:?}"));
                }
            }
        }
        let nothing = crate::explain::no_service(&flow());
        let back = explanation(&flow(), explained(&nothing, 3)).unwrap();
        assert_eq!(format!("{back:?}"), format!("{nothing:?}"));
        for (drops, causes) in [(true, [0, 3]), (false, [1, 2])] {
            let not_known = crate::explain::unserved(&flow(), drops);
            let known = causes.map(|place| {
                let cause = Some(UnservedPart::CAUSES[place]);
                let prefix = (place == 0).then(|| "192.0.2.0/24".into());
                let unserved = Some(UnservedPart { drops, cause, prefix });
                Explanation { unserved, ..not_known.clone() }
            });
            for sent in known.into_iter().chain([not_known]) {
                let message = explained(&sent, 3);
                let back = explanation(&flow(), message).unwrap();
                assert_eq!(format!("{back:?}"), format!("{sent:?}"));
            }
        }
    }

    #[test]
    fn a_value_of_a_newer_daemon_is_named() {
        let good = || explained(&whole(Encapsulation::Direct, None, State::Open), 3);
        type Change = fn(&mut v1::ExplainResponse);
        let changes: [(Change, &str); 7] = [
            (|a| a.zone.as_mut().unwrap().number = 65_536, "zone.number"),
            (|a| a.cell.as_mut().unwrap().state = 99, "cell.state"),
            (|a| a.memory = 99, "memory"),
            (|a| a.unserved.get_or_insert_default().cause = 99, "unserved.cause"),
            (|a| a.regions[0].outcome = 99, "regions.outcome"),
            (|a| a.service.as_mut().unwrap().affinity = 99, "service.affinity"),
            (|a| a.choice.as_mut().unwrap().encapsulation = 99, "choice.encapsulation"),
        ];
        for (change, field) in changes {
            let mut answer = good();
            change(&mut answer);
            let error = explanation(&flow(), answer).unwrap_err();
            let said =
                format!("the explanation: {field} has a value that this version does not know");
            assert_eq!(error.to_string(), said);
        }
    }
}
