use super::*;
use crate::{
    Transfer,
    epoch::{EpochStep, Forgotten, Statement},
    fixture::{group, name},
};

const SECOND: Duration = Duration::from_secs(1);

/// One of two balancers, with half of a group.
fn balancer(own: &str, lost_maps: bool) -> Sharing {
    let owners: BTreeSet<Name> = [name("a"), name("b")].into();
    let awaited = lost_maps.then(|| [name(if own == "a" { "b" } else { "a" })].into());
    let ledger = Ledger { incarnation: 1, ..Ledger::default() };
    let mut sharing = Sharing::start(name(own), ledger, SECOND, awaited);
    sharing.set_groups(1, [(group(), owners)].into());
    assert!(sharing.round(SECOND).is_some());
    sharing.stored(true);
    sharing
}

fn demand(per_second: f64) -> Demand {
    let capacity = ReportedCapacity::PerSecond(1_000.0);
    Demand { per_second, capacity, may_send: true }
}

fn enforced(sharing: &Sharing) -> Parts {
    sharing.enforced().map(|(_, parts)| parts).sum()
}

fn tell(from: &mut Sharing, to: &mut Sharing) {
    tell_at(SECOND, from, to);
}

fn tell_at(now: Duration, from: &mut Sharing, to: &mut Sharing) {
    let name = to.name().clone();
    for (_, message) in from.messages(now, [&name]) {
        to.receive(now, message).unwrap();
    }
}

fn stored_round(sharing: &mut Sharing, now: Duration) {
    if sharing.round(now).is_some() {
        sharing.stored(true);
    }
}

const HALF: Parts = Parts(Parts::WHOLE.0 / 2);

#[test]
fn nothing_moves_before_it_is_stored() {
    let (mut a, mut b) = (balancer("a", false), balancer("b", false));
    a.set_demand(&group(), demand(0.0));
    b.set_demand(&group(), demand(900.0));
    tell(&mut a, &mut b);
    tell(&mut b, &mut a);
    assert!(a.round(SECOND).is_some());
    assert_eq!(enforced(&a), HALF);
    tell(&mut a, &mut b);
    assert_eq!(b.round(SECOND), None, "nothing was sent yet");
    a.stored(false);
    assert_eq!(enforced(&a), HALF, "the write failed");
    assert!(a.round(SECOND).is_some());
    a.stored(true);
    let given = HALF - enforced(&a);
    assert!(given > Parts::NONE);
    tell(&mut a, &mut b);
    assert!(b.round(SECOND).is_some());
    assert_eq!(enforced(&b), HALF);
    tell(&mut b, &mut a);
    assert_eq!(a.ledger().on_its_way(&name("b"), &group()), given, "it may still be lost");
    b.stored(true);
    assert_eq!(enforced(&b), HALF + given);
    tell(&mut b, &mut a);
    assert_eq!(a.ledger().on_its_way(&name("b"), &group()), Parts::NONE);
}

#[test]
fn one_that_does_not_hear_is_given_nothing() {
    let (mut a, mut b) = (balancer("a", false), balancer("b", false));
    a.set_demand(&group(), demand(0.0));
    b.set_demand(&group(), demand(900.0));
    for round in 4..60 {
        let now = round * SECOND / 4;
        tell_at(now, &mut b, &mut a);
        stored_round(&mut a, now);
        stored_round(&mut b, now);
    }
    assert_eq!(enforced(&a), HALF, "no message has reached b");
    tell_at(15 * SECOND, &mut a, &mut b);
    tell_at(15 * SECOND, &mut b, &mut a);
    stored_round(&mut a, 15 * SECOND);
    assert!(enforced(&a) < HALF);
}

#[test]
fn one_that_confirms_nothing_is_given_no_more() {
    let (mut a, mut b) = (balancer("a", false), balancer("b", false));
    a.set_demand(&group(), demand(400.0));
    tell(&mut a, &mut b);
    // From now on messages reach only a. b is offered more, and three seconds later much more.
    let mut owned = Vec::new();
    for round in 4..60 {
        let now = round * SECOND / 4;
        b.set_demand(&group(), demand(if round < 16 { 1_200.0 } else { 90_000.0 }));
        tell_at(now, &mut b, &mut a);
        stored_round(&mut a, now);
        stored_round(&mut b, now);
        owned.push(enforced(&a));
    }
    assert!(owned[0] < HALF, "it was given something once");
    assert!(owned.iter().all(|it| *it == owned[0]), "{owned:?}");
    // It hears again, and confirms what was on its way.
    let now = 15 * SECOND;
    tell_at(now, &mut a, &mut b);
    stored_round(&mut b, now);
    assert_eq!(enforced(&a) + enforced(&b), Parts::WHOLE);
    tell_at(now, &mut b, &mut a);
    stored_round(&mut a, now);
    assert!(enforced(&a) < owned[0], "it gives again");
}

#[test]
fn one_that_was_forgotten_enforces_nothing_before_it_has_stored_that() {
    let mut a = balancer("a", false);
    let forgotten = [name("a")].into();
    let epoch = Epoch { number: 1, generation: 1, forgotten, ..Epoch::default() };
    a.set_membership(SECOND, Membership::default(), Some(epoch));
    assert_eq!(enforced(&a), Parts::NONE);
    assert!(a.round(SECOND).is_some());
    a.stored(false);
    assert_eq!(enforced(&a), Parts::NONE);
}

/// Of one whose store is lost: what the epoch forgot is all that it owned, unless it came back since.
#[test]
fn one_that_came_back_and_loses_its_store_has_to_be_forgotten_again() {
    for (since, is_old) in [(0, false), (1, true)] {
        let ledger = Ledger { incarnation: 2, is_old_copy: true, ..Ledger::default() };
        let mut a = Sharing::start(name("a"), ledger, SECOND, None);
        let owners: BTreeSet<Name> = [name("a"), name("b")].into();
        a.set_groups(1, [(group(), owners)].into());
        let forgotten = [name("a")].into();
        let epoch = Epoch { number: 1, generation: 1, forgotten, closed: true, ..Epoch::default() };
        let members = [(name("a"), since), (name("b"), 0)].into();
        let membership = Membership { members, ..Membership::default() };
        a.set_membership(SECOND, membership, Some(epoch));
        stored_round(&mut a, SECOND);
        assert_eq!((a.ledger().epoch, a.store_is_old()), (1, is_old), "it came back at {since}");
        assert_eq!(enforced(&a), Parts::NONE);
    }
}

/// It may not see etcd, or must not follow it. What peers say is enough.
#[test]
fn one_that_hears_of_an_epoch_that_it_missed_enforces_nothing() {
    let (mut a, mut b) = (balancer("a", false), balancer("b", false));
    let tell_of = |number, a: &mut Sharing, b: &mut Sharing| {
        let (_, message) = a.messages(SECOND, [&name("b")]).remove(0);
        b.receive(SECOND, Message { epoch: number, ..message }).unwrap();
    };
    tell_of(0, &mut a, &mut b);
    assert_eq!(enforced(&b), HALF);
    // It said what it owns, so that stays its own when the epoch is closed.
    let epoch = Epoch { number: 1, generation: 1, ..Epoch::default() };
    b.set_membership(SECOND, b.membership.clone(), Some(epoch));
    stored_round(&mut b, SECOND);
    assert_eq!(b.ledger().frozen, Some(1));
    tell_of(1, &mut a, &mut b);
    assert!(!b.is_overtaken() && enforced(&b) == HALF);
    tell_of(2, &mut a, &mut b);
    assert!(b.is_overtaken() && enforced(&b) == Parts::NONE);
    // It had nothing of it.
    let forgotten = [name("b")].into();
    let epoch = Epoch { number: 2, generation: 1, forgotten, closed: true, ..Epoch::default() };
    b.set_membership(SECOND, b.membership.clone(), Some(epoch));
    stored_round(&mut b, SECOND);
    assert!(!b.is_overtaken() && b.ledger().epoch == 2 && enforced(&b) == Parts::NONE);
}

#[test]
fn a_step_names_those_on_whose_statements_it_was_decided() {
    let names = |texts: &[&str]| texts.iter().map(|text| name(text)).collect::<BTreeSet<Name>>();
    let statement = || Statement { epoch: 0, silent: names(&["d"]) };
    let membership = || Membership {
        members: names(&["a", "b", "c", "d"]).into_iter().map(|name| (name, 0)).collect(),
        alive: names(&["a", "b", "c"]),
        statements: [(name("b"), statement()), (name("c"), statement())].into(),
    };
    let (mut a, mut c) = (balancer("a", false), balancer("c", false));
    let mut steps = Vec::new();
    for second in 1..=40 {
        let now = second * SECOND;
        a.set_membership(now, membership(), None);
        c.set_membership(now, membership(), None);
        stored_round(&mut a, now);
        stored_round(&mut c, now);
        tell_at(now, &mut c, &mut a);
        steps.extend(a.epoch_step(now));
    }
    // The messages of c come, and say what its statement says.
    let forgotten =
        Forgotten { gone: names(&["d"]), stated_by: names(&["b"]), ..Forgotten::default() };
    assert_eq!(steps.last(), Some(&EpochStep::Open { number: 1, forgotten }));
    // An old copy is forgotten on what it says itself.
    let step = |a: &mut Sharing, membership: Membership| {
        a.set_membership(40 * SECOND, membership, None);
        a.epoch_step(40 * SECOND)
    };
    let alive = names(&["a", "b", "c", "d"]);
    a.ledger.is_old_copy = true;
    let forgotten = Forgotten { old_copies: names(&["a"]), ..Forgotten::default() };
    let expected = Some(EpochStep::Open { number: 1, forgotten });
    let statements = ["b", "d"].map(|text| (name(text), statement())).into();
    assert_eq!(step(&mut a, Membership { alive, statements, ..membership() }), expected);
}

#[test]
fn one_that_was_forgotten_contributes_once_it_knows_all_groups() {
    let mut a = balancer("a", false);
    let forgotten = [name("a")].into();
    let epoch = Epoch { number: 1, generation: 2, forgotten, ..Epoch::default() };
    a.set_membership(SECOND, Membership::default(), Some(epoch));
    assert!(a.round(SECOND).is_some());
    a.stored(true);
    assert_eq!(a.ledger().frozen, None);
    let later = GroupKey { birth: 2, ..group() };
    let owners: BTreeSet<Name> = [name("b")].into();
    a.set_groups(2, [(later.clone(), owners)].into());
    assert!(a.round(SECOND).is_some());
    a.stored(true);
    assert_eq!(a.ledger().frozen, Some(1));
    assert_eq!(a.ledger().owned.get(&later), Some(&Parts::NONE));
}

#[test]
fn after_a_boot_it_waits_for_an_answer_or_ten_seconds() {
    let (mut a, mut b) = (balancer("a", true), balancer("b", false));
    tell(&mut b, &mut a);
    a.round(2 * SECOND);
    assert_eq!(enforced(&a), Parts::NONE, "the message is older than the start");
    tell(&mut a, &mut b);
    tell(&mut b, &mut a);
    a.round(2 * SECOND);
    assert_eq!(enforced(&a), HALF);
    let mut alone = balancer("a", true);
    alone.round(10 * SECOND);
    assert_eq!(enforced(&alone), Parts::NONE);
    alone.round(11 * SECOND);
    assert_eq!(enforced(&alone), HALF);
}

#[test]
fn messages_of_others_or_of_itself_are_refused() {
    let (mut a, mut b) = (balancer("a", false), balancer("b", false));
    let (_, message) = b.messages(SECOND, [&name("a")]).remove(0);
    let own = Message { from: name("a"), ..message.clone() };
    assert_eq!(a.receive(SECOND, own), Err(SharingError::OwnName(name("a"))));
    let transfers = vec![Transfer { number: 2, group: group(), parts: HALF }];
    let wrong = Message { sent: 1, transfers, ..message };
    let refused = a.receive(SECOND, wrong).unwrap_err().to_string();
    assert_eq!(refused, "b: transfers to this balancer are numbered 2 to 2, but 1 were sent");
}

#[test]
fn a_start_of_a_peer_is_named_once_what_its_earlier_ones_gave_is_stored() {
    let (mut a, mut b) = (balancer("a", false), balancer("b", false));
    let named = |a: &mut Sharing| a.messages(SECOND, [&name("b")])[0].1.receiver_incarnation;
    tell(&mut b, &mut a);
    assert_eq!(named(&mut a), 1);
    a.set_groups(2, BTreeMap::new());
    assert!(a.round(SECOND).is_some());
    b.ledger.incarnation = 2;
    tell(&mut b, &mut a);
    assert_eq!(named(&mut a), 1, "a write is under way");
    a.stored(false);
    tell(&mut b, &mut a);
    assert_eq!(named(&mut a), 1, "the write failed");
    assert!(a.round(SECOND).is_some());
    a.stored(true);
    assert_eq!(named(&mut a), 2, "without another message");
    b.ledger.incarnation = 3;
    tell(&mut b, &mut a);
    assert_eq!(named(&mut a), 3);
}
