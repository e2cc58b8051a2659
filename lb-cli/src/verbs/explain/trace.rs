//! The very decision of the packet program, run over the maps and watched.

use lb_common::{
    abi::{
        descriptor::Descriptor,
        member::MemberWord,
        next_hop::NextHopWord,
        service::{SERVICE_BY_ADDRESS, Service},
        slot::RANKS_PER_SLOT,
        table_ref::TableRef,
        verdict::Verdict,
    },
    path::{self, Observe, Outcome, Place, Tables, encapsulate},
};

use super::{
    Chosen, Entry, Explanation, ServicePart, Slot,
    flow::Flow,
    reason::{self, place_name},
};
use crate::{names::Names, pinned};

/// One entry that the decision looked at, or would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Looked {
    pub(super) place: Place,
    pub(super) member: MemberWord,
    /// `None`: it was not asked, another had the packet before.
    pub(super) outcome: Option<Outcome>,
}

#[derive(Default)]
struct Recorder(Vec<Looked>);

impl Observe for Recorder {
    fn entry(&mut self, place: Place, _: u16, member: MemberWord, outcome: Outcome) {
        self.0.push(Looked { place, member, outcome: Some(outcome) });
    }
}

/// A packet whose address, port and protocol no service has.
pub(super) fn no_service(flow: &Flow) -> Explanation {
    let mut explanation = Explanation::of(flow);
    explanation.verdict = Verdict::NotOurs.name();
    explanation.why = reason::verdict(Verdict::NotOurs);
    explanation
}

/// What becomes of a service's packet, and why.
pub(super) fn explain<T: Tables>(
    tables: &T,
    names: &Names,
    service: &Service,
    flow: &Flow,
) -> Explanation {
    let parsed = flow.parsed();
    let mut explanation = Explanation::of(flow);
    explanation.service = Some(ServicePart {
        name: names.service(service.index),
        pool: names.pool(service.pool),
        affinity: affinity(service),
    });
    let line = tables.pool(service.pool);
    let descriptor = line.and_then(|line| tables.descriptor(line.versions().current()));
    let slot = descriptor.filter(|d| d.group_count > 0).map(|d| home_slot(d, service, flow));
    if let Some((hash, slot, slots)) = slot {
        explanation.hash = Some(format!("{hash:016x}"));
        explanation.slot = Some(Slot { number: slot, of: slots });
    }

    let mut recorder = Recorder::default();
    let forward = path::forward(tables, service, parsed, &mut recorder);
    let choice = recorder.0.last().filter(|last| last.outcome == Some(Outcome::Chosen)).copied();
    let head = forward.and_then(|forward| {
        encapsulate::head(tables, &forward)?;
        Ok(())
    });
    let looked = with_unasked(tables, descriptor, slot.map(|s| s.1), recorder.0);
    let region = |place: Place| region_name(tables, names, descriptor, place.region);
    explanation.why = match head {
        Ok(()) => reason::choice(&looked, &address_in(tables), &region),
        Err(verdict) => reason::verdict(verdict),
    };
    explanation.verdict = head.map_or_else(Verdict::name, |()| Explanation::FORWARDED);
    explanation.choice = choice.map(|looked| {
        let hop = tables.next_hop(u32::from(looked.member.next_hop()));
        let home = Place { region: 0, slot: slot.map(|s| s.1), entry: 0 };
        let hop = hop.unwrap_or(NextHopWord::UNRESOLVED);
        Chosen {
            backend: address_in(tables)(looked.member),
            region: region(looked.place),
            state: looked.member.state().name(),
            owner: looked.place == home,
            next_hop: hop.mac().map(|byte| format!("{byte:02x}")).join(":"),
            interface: hop.interface(),
        }
    });
    explanation.entries = looked
        .iter()
        .map(|looked| Entry {
            region: region(looked.place),
            slot: looked.place.slot,
            place: place_name(looked.place),
            backend: address_in(tables)(looked.member),
            state: looked.member.state().name(),
            outcome: reason::outcome(looked, flow.kind),
        })
        .collect();
    explanation
}

fn affinity(service: &Service) -> &'static str {
    if service.flags & SERVICE_BY_ADDRESS != 0 { "client" } else { "connection" }
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
    mut looked: Vec<Looked>,
) -> Vec<Looked> {
    let Some((descriptor, slot)) = descriptor.zip(slot) else { return looked };
    let home = &descriptor.home;
    let Some(word) = tables.slot(TableRef(home.table), slot) else { return looked };
    for entry in 0..RANKS_PER_SLOT as u32 {
        let place = Place { region: 0, slot: Some(slot), entry };
        let rank = u32::from(word.rank(entry));
        if rank < home.member_count
            && !looked.iter().any(|looked| looked.place == place)
            && let Some(member) = tables.member(home.members.saturating_add(rank))
        {
            looked.push(Looked { place, member, outcome: None });
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
    let index = descriptor.and_then(|d| d.groups.get(position as usize)).copied();
    let group = index.and_then(|index| tables.group(index));
    group.map_or_else(|| "?".into(), |group| names.region(group.region))
}

fn address_in<T: Tables>(tables: &T) -> impl Fn(MemberWord) -> String {
    |member| tables.backend(member.backend()).map_or_else(|| "?".into(), pinned::address)
}
