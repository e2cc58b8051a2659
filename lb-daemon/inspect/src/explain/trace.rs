//! The very decision of the packet program, run over the maps and watched.

use lb_common::{
    abi::{
        clock::Coarse,
        member::{Accepts, MemberWord},
        next_hop::NextHopWord,
        pool::Descriptor,
        service::{SERVICE_BY_ADDRESS, SERVICE_BY_PORT, Service},
        slot::{RANKS_PER_SLOT, TableRef},
        verdict::Verdict,
    },
    flow_hash::FlowHash,
    flow_table::Cell,
    path::{self, Kind, Outcome, Parsed, Position, Query, Tables, encapsulate, select},
};

use super::{
    Chosen, Entry, Explanation, FlowCell, ServicePart, Slot, Zone,
    flow::Flow,
    reason::{self, place_name},
    regions::{self, Recorder, VisitedEntry},
};
use crate::names::{self, Names};
use lb_model::{Affinity, Encapsulation};

/// A packet whose address, port and protocol no service has.
pub fn no_service(flow: &Flow) -> Explanation {
    let mut explanation = Explanation::for_flow(flow);
    explanation.verdict = Verdict::NotOurs.name().into();
    explanation.why = reason::verdict(Verdict::NotOurs);
    explanation
}

/// What becomes of a service's packet, and why.
pub fn explain<T: Tables>(
    tables: &T,
    names: &Names,
    service: &Service,
    flow: &Flow,
) -> Explanation {
    let parsed = flow.parsed();
    let mut explanation = Explanation::for_flow(flow);
    explanation.service = Some(ServicePart {
        name: names.service(service.index),
        pool: names.pool(service.pool),
        affinity: affinity(service),
    });
    let line = tables.pool(service.pool);
    let descriptor = line.and_then(|line| tables.descriptor(line.versions().latest()));
    let slot = descriptor.filter(|d| d.home.slots > 0).map(|d| home_slot(d, service, flow));
    if let Some((hash, slot, slots)) = slot {
        explanation.hash = Some(format!("{hash:016x}"));
        explanation.slot = Some(Slot { number: slot, of: slots });
    }

    let mut recorder = Recorder::default();
    let query = Query::new(tables, service, &parsed).ok();
    let cell = query.as_ref().and_then(|query| cell(tables, query));
    if let Some(query) = &query {
        (explanation.home, explanation.next) = homes(tables, query);
        explanation.zone = explanation
            .home
            .as_ref()
            .map(|_| Zone { number: query.zone(), looks_for_cells: query.may_have_cell(tables) });
    }
    explanation.cell = cell.as_ref().and_then(|cell| describe_cell(tables, cell));
    let parsed = with_sequence(parsed, cell.as_ref());
    let forward = path::forward(tables, service, parsed, &mut recorder);
    let choice = forward.as_ref().ok().map(|forward| forward.choice);
    let head = forward.and_then(|forward| encapsulate::head(tables, &forward).map(drop));
    if let Some(descriptor) = descriptor {
        explanation.regions =
            regions::assess(tables, names, descriptor, &recorder, choice.as_ref());
    }
    explanation.remembered = recorder.remembered;
    let asked = std::mem::take(&mut recorder.looked);
    let looked = with_unasked(tables, descriptor, slot.map(|s| s.1), asked);
    let region = |place: Position| region_name(tables, names, descriptor, place.region);
    let is_awaited = recorder.remembered.is_some()
        || looked.iter().any(|looked| looked.outcome == Some(Outcome::Awaited));
    explanation.why = match (head, choice, recorder.remembered) {
        (Err(Verdict::NextHopUnresolved), None, _) if is_awaited => reason::AWAITED.into(),
        (Err(verdict), _, _) => reason::verdict(verdict),
        (Ok(()), Some(choice), Some(by)) => {
            reason::memory(by, flow.kind, &address_in(tables)(choice.member))
        }
        (Ok(()), Some(choice), None)
            if flow.kind != Kind::OpenConnection && choice.member.accepts() != Accepts::All =>
        {
            reason::last_resort(&address_in(tables)(choice.member))
        }
        (Ok(()), Some(choice), None) => {
            let address = address_in(tables);
            reason::beyond_limits(&explanation.regions, &address(choice.member))
                .unwrap_or_else(|| reason::choice(&looked, &explanation.regions, &address))
        }
        (Ok(()), None, _) => String::new(),
    };
    explanation.verdict = head.map_or_else(Verdict::name, |()| Explanation::FORWARDED).into();
    explanation.choice = choice.as_ref().map(|choice| {
        let hop = tables.next_hop(u32::from(choice.member.next_hop()));
        let hop = hop.unwrap_or(NextHopWord::UNRESOLVED);
        let home = descriptor.zip(slot).and_then(|(descriptor, (hash, ..))| {
            select::home(tables, descriptor, FlowHash(hash)).ok()
        });
        let position = descriptor.and_then(|d| regions::position(tables, d, choice));
        let encapsulation = descriptor.map_or(Encapsulation::IpInIp, |descriptor| {
            Encapsulation::from_form(descriptor.form())
        });
        Chosen {
            backend: address_in(tables)(choice.member),
            region: position.map(|at| region_name(tables, names, descriptor, at)),
            accepts: choice.member.accepts().name().into(),
            owner: home.is_some_and(|home| select::placement(home.member) == choice.placement()),
            encapsulation,
            gue_port: encapsulation.gue_port(),
            next_hop: hop.mac().map(|byte| format!("{byte:02x}")).join(":"),
            interface: hop.interface(),
            interface_name: names.interface(hop.interface()),
        }
    });
    explanation.entries = looked
        .iter()
        .map(|looked| Entry {
            region: region(looked.place),
            slot: looked.place.slot,
            place: place_name(looked.place),
            backend: address_in(tables)(looked.member),
            accepts: looked.member.accepts().name().into(),
            outcome: reason::outcome(looked),
            asked: looked.outcome,
        })
        .collect();
    explanation
}

fn affinity(service: &Service) -> Affinity {
    match service.flags & (SERVICE_BY_ADDRESS | SERVICE_BY_PORT) {
        0 => Affinity::Connection,
        SERVICE_BY_ADDRESS => Affinity::Client,
        _ => Affinity::Port,
    }
}

/// Hash, slot and number of slots of a flow in the first group of the order.
fn home_slot(descriptor: &Descriptor, service: &Service, flow: &Flow) -> (u64, u32, u32) {
    let hash = path::flow_hash(service, descriptor, &flow.parsed().flow);
    (hash.0, hash.slot(descriptor.home.slots), descriptor.home.slots)
}

/// The entries looked at, and the rest of the first slot's list.
fn with_unasked<T: Tables>(
    tables: &T,
    descriptor: Option<&Descriptor>,
    slot: Option<u32>,
    mut looked: Vec<VisitedEntry>,
) -> Vec<VisitedEntry> {
    let Some((descriptor, slot)) = descriptor.zip(slot) else { return looked };
    let home = &descriptor.home;
    let Some(word) = tables.slot(TableRef(home.table), slot) else { return looked };
    for entry in 0..RANKS_PER_SLOT as u32 {
        let place = Position { region: 0, slot: Some(slot), entry };
        let rank = u32::from(word.rank(entry));
        if rank < home.member_count
            && !looked.iter().any(|looked| looked.place == place)
            && let Some(member) = tables.member(home.members.saturating_add(rank))
        {
            looked.push(VisitedEntry { place, member, outcome: None });
        }
    }
    looked
}

fn region_name<T: Tables>(
    tables: &T,
    names: &Names,
    descriptor: Option<&Descriptor>,
    position: u32,
) -> String {
    descriptor
        .map_or_else(|| "?".into(), |descriptor| regions::name(tables, names, descriptor, position))
}

/// The backends that are home now, and by the version by which new connections are placed.
fn homes<T: Tables>(tables: &T, query: &Query) -> (Option<String>, Option<String>) {
    let Ok((now, next)) = path::homes(tables, query) else { return (None, None) };
    let address = address_in(tables);
    (Some(address(now.member)), next.map(|next| address(next.member)))
}

/// The flow's youngest cell.
fn cell<T: Tables>(tables: &T, query: &Query) -> Option<Cell> {
    let (key, now) = (path::flow_key(tables, query), Coarse::from_nanoseconds(tables.now()));
    let mut cell = Cell::NONE;
    tables.youngest(key, !query.is_tcp(), now, &mut cell).then_some(cell)
}

fn describe_cell<T: Tables>(tables: &T, cell: &Cell) -> Option<FlowCell> {
    let left = cell.owner.left(Coarse::from_nanoseconds(tables.now()));
    let backend = tables.backend(cell.place.placement().backend);
    Some(FlowCell {
        state: cell.owner.state()?,
        backend: backend.map_or_else(|| "?".into(), names::address),
        seconds_left: Coarse(left.max(0).cast_unsigned()).seconds(),
    })
}

/// The packet of an open connection with the number that its cell has come to, or that follows its SYN: so it is one of those
/// that go by the cell.
fn with_sequence(parsed: Parsed, cell: Option<&Cell>) -> Parsed {
    let Some(cell) = cell.filter(|_| parsed.kind == Kind::OpenConnection) else { return parsed };
    let beyond = u32::from(cell.owner.is_of_syn());
    Parsed { sequence: cell.place.sequence().wrapping_add(beyond), ..parsed }
}

fn address_in<T: Tables>(tables: &T) -> impl Fn(MemberWord) -> String {
    |member| tables.backend(member.backend()).map_or_else(|| "?".into(), names::address)
}
