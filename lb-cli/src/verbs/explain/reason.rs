//! Why a packet goes where it goes, in words.

use lb_common::{
    abi::{
        member::{MemberState, MemberWord},
        verdict::Verdict,
    },
    path::{Kind, Outcome, Place},
};

use super::trace::Looked;

/// A verdict's meaning on one line.
pub(super) fn verdict(verdict: Verdict) -> String {
    verdict.meaning().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A place in the order of a group: `owner`, `alternate 2`, `standby 5`.
pub(super) fn place_name(place: Place) -> String {
    match (place.slot, place.entry) {
        (None, standby) => format!("standby {standby}"),
        (Some(_), 0) => "owner".into(),
        (Some(_), alternate) => format!("alternate {alternate}"),
    }
}

/// What was made of an entry.
pub(super) fn outcome(looked: &Looked, kind: Kind) -> String {
    let state = looked.member.state();
    match looked.outcome {
        Some(Outcome::Chosen) => "chosen".into(),
        Some(Outcome::State) if state == MemberState::Unfit && kind == Kind::NewConnection => {
            "passed over: it takes no new connections".into()
        }
        Some(Outcome::State) => format!("passed over: it is {}", state.name()),
        Some(Outcome::Ramp) => "passed over: slow start leaves it this slot later".into(),
        Some(Outcome::NextHop) => "passed over: its next hop has no address".into(),
        Some(Outcome::Full) => "passed over: it has its own limit of new connections".into(),
        None => "not asked".into(),
    }
}

/// Why the entry that was chosen was: the last that has an outcome.
pub(super) fn choice(
    looked: &[Looked],
    address: &impl Fn(MemberWord) -> String,
    region: &impl Fn(Place) -> String,
) -> String {
    let asked: Vec<_> = looked.iter().filter(|l| l.outcome.is_some()).collect();
    let Some((chosen, before)) = asked.split_last() else { return "it was chosen".into() };
    let (place, state) = (chosen.place, chosen.member.state().name());
    let Some(first) = before.first() else {
        return format!("{} owns the slot and is {state}", address(chosen.member));
    };
    let found = match place.slot {
        None => format!("standby {} of its region", place.entry),
        Some(slot) if Some(slot) == first.place.slot && place.region == 0 => {
            let owner = (first.place.entry == 0).then(|| why_not(first, &address(first.member)));
            let owner = owner.unwrap_or_else(|| "the slot has no owner".into());
            let name = place_name(place);
            return format!("{owner}; {name} is the first of its list that may have the packet");
        }
        Some(slot) => format!("{} of slot {slot}", place_name(place)),
    };
    let passed = if place.region == 0 {
        "nobody on the slot's own list may have the packet".into()
    } else {
        let mut regions: Vec<String> = before.iter().map(|l| region(l.place)).collect();
        regions.dedup();
        regions.retain(|name| *name != region(place));
        format!("nobody asked in region {} may have the packet", regions.join(", "))
    };
    format!("{passed}; {found} is the next that may")
}

/// Why the owner of a slot does not have the packet.
fn why_not(owner: &Looked, address: &str) -> String {
    let cause = match owner.outcome {
        Some(Outcome::NextHop) => "has no resolved next hop".into(),
        Some(Outcome::Ramp) => "starts slowly".into(),
        Some(Outcome::Full) => "has all the new connections of its own limit".into(),
        _ => format!("is {}", owner.member.state().name()),
    };
    format!("{address} owns the slot but {cause}")
}
