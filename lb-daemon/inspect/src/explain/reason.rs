//! Why a packet goes where it goes, in words.

use lb_common::{
    abi::{
        member::{Accepts, MemberWord},
        verdict::Verdict,
    },
    path::{Kind, Memory, Outcome, Position},
};

use super::regions::{self, Region, VisitedEntry};

/// A verdict's meaning on one line.
pub(super) fn verdict(verdict: Verdict) -> String {
    verdict.meaning().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A place in the order of a group: `owner`, `alternate 2`, `standby 5`.
pub(super) fn place_name(place: Position) -> String {
    match (place.slot, place.entry) {
        (None, standby) => format!("standby {standby}"),
        (Some(_), 0) => "owner".into(),
        (Some(_), alternate) => format!("alternate {alternate}"),
    }
}

/// What a member takes, as the end of a sentence.
const fn describe(accepts: Accepts) -> &'static str {
    match accepts {
        Accepts::All => "is up",
        Accepts::OpenOnly => "takes no new connections",
        Accepts::Nothing => "takes no packets",
    }
}

/// Why a packet of an open connection is dropped that no other backend may have.
pub(super) const AWAITED: &str = "the connection's backend has lost its next hop, and keeps its \
     connections for now: their packets are dropped until it has one again";

/// What was made of an entry.
pub(super) fn outcome(looked: &VisitedEntry) -> String {
    match looked.outcome {
        Some(Outcome::Chosen) => "chosen".into(),
        Some(Outcome::State) => format!("passed over: it {}", describe(looked.member.accepts())),
        Some(Outcome::Ramp) => "passed over: in slow start, it does not take this slot yet".into(),
        Some(Outcome::NextHop) => "passed over: its next hop is unresolved".into(),
        Some(Outcome::Awaited) => "dropped: it awaits its next hop".into(),
        Some(Outcome::Full) => "passed over: its own limit of new connections is reached".into(),
        None => "not asked".into(),
    }
}

/// What the packet goes by, by name.
pub(super) const fn memory_name(by: Memory) -> &'static str {
    match by {
        Memory::Handshake => "handshake",
        Memory::Displaced => "displaced",
        Memory::Tracked => "tracked",
        Memory::PreviousHome => "previous_home",
    }
}

/// Why a packet goes where its connection is remembered to be.
pub(super) fn memory(by: Memory, kind: Kind, backend: &str) -> String {
    match by {
        Memory::Handshake if kind == Kind::NewConnection => {
            format!("the SYN is repeated; the first one went to {backend} (a half-open cell)")
        }
        Memory::Handshake => {
            format!("its SYN went to {backend}, which is remembered for 64 s (a half-open cell)")
        }
        Memory::Displaced => {
            format!("it is a displaced connection: it lives at {backend}, not at its home")
        }
        Memory::Tracked => format!("its flow is tracked: it lives at {backend}"),
        Memory::PreviousHome => format!(
            "{backend} is its home until the pool's change is settled, and keeps its connections for the settle time"
        ),
    }
}

/// Why a backend that is not healthy has a new connection.
pub(super) fn last_resort(backend: &str) -> String {
    format!("no healthy backend can take it; {backend} is the pool's last resort (panic threshold)")
}

/// Why a region has a packet that is beyond its limit; `None`: none has.
pub(super) fn beyond_limits(regions: &[Region], backend: &str) -> Option<String> {
    let has = |outcome| regions.iter().find(|region| region.outcome == outcome);
    if let Some(region) = has(regions::RegionOutcome::Held) {
        return Some(format!(
            "region {} is full, but the flow table has no room for more connections away from home: {backend} takes it over capacity",
            region.region
        ));
    }
    has(regions::RegionOutcome::OverCapacity).map(|region| {
        format!(
            "every region that could take it is full; {backend} in region {} takes it over capacity",
            region.region
        )
    })
}

/// Why the entry that was chosen was.
pub(super) fn choice(
    looked: &[VisitedEntry],
    regions: &[Region],
    address: &impl Fn(MemberWord) -> String,
) -> String {
    let asked: Vec<_> = looked.iter().filter(|l| l.outcome.is_some()).collect();
    let Some((chosen, before)) = asked.split_last() else { return "it was chosen".into() };
    let (place, accepts) = (chosen.place, chosen.member.accepts());
    if place.region == 0 && before.is_empty() && place.entry == 0 && place.slot.is_some() {
        return format!("{} owns the slot and {}", address(chosen.member), describe(accepts));
    }
    let found = match place.slot {
        None => format!("standby {} of its region", place.entry),
        Some(slot)
            if place.region == 0 && before.first().is_some_and(|f| f.place.slot == Some(slot)) =>
        {
            let first = before[0];
            let owner = (first.place.entry == 0).then(|| why_not(first, &address(first.member)));
            let owner = owner.unwrap_or_else(|| "the slot has no owner".into());
            let name = place_name(place);
            return format!("{owner}; {name} is the first on its list that can take the packet");
        }
        Some(slot) => format!("{} of slot {slot}", place_name(place)),
    };
    let passed = if place.region == 0 {
        "no backend on the slot's list can take the packet".into()
    } else {
        left_behind(&regions[..regions.len().min(place.region as usize)])
    };
    format!("{passed}; {found} is the next that can")
}

/// Why regions that come before the chosen one have not the packet.
fn left_behind(regions: &[Region]) -> String {
    use regions::RegionOutcome::NobodyUsable;
    let nobody = |region: &&Region| region.outcome == NobodyUsable;
    let names: Vec<_> = regions.iter().filter(nobody).map(|r| r.region.as_str()).collect();
    let others = regions.iter().filter(|region| !nobody(region));
    let mut words: Vec<_> =
        others.map(|r| format!("region {} {}", r.region, r.outcome.words())).collect();
    if !names.is_empty() {
        words.push(format!("no backend in region {} can take the packet", names.join(", ")));
    }
    words.join(", ")
}

/// Why the owner of a slot does not have the packet.
fn why_not(owner: &VisitedEntry, address: &str) -> String {
    let cause = match owner.outcome {
        Some(Outcome::NextHop) => "has no resolved next hop",
        Some(Outcome::Ramp) => "starts slowly",
        Some(Outcome::Full) => "has reached its own limit of new connections",
        _ => describe(owner.member.accepts()),
    };
    format!("{address} owns the slot but {cause}")
}
