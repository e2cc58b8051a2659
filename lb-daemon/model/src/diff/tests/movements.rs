use std::num::NonZeroU32;

use super::*;
use crate::PortList;

/// What becomes of open connections in a daemon that stands in a region.
fn moved(own: &str, change: impl FnOnce(&mut Configuration)) -> Vec<(String, Effect, f64)> {
    let mut new = configuration();
    change(&mut new);
    moved_from(&configuration(), &new, own)
}

fn moved_from(old: &Configuration, new: &Configuration, own: &str) -> Vec<(String, Effect, f64)> {
    const OWN_KEY: [u64; 2] = [7, 7];
    let diffs = TableDiffs::new(old, new, &in_turn);
    let movements = movements(old, new, Some(&name(own)), OWN_KEY, &diffs);
    movements
        .into_iter()
        .map(|moved| (moved.object.to_string(), moved.effect, moved.share))
        .collect()
}

fn expected(all: &[(&str, Effect, f64)]) -> Vec<(String, Effect, f64)> {
    all.iter().map(|(object, effect, share)| ((*object).into(), *effect, *share)).collect()
}

#[test]
fn what_moves_no_connection_is_not_said_to() {
    assert_eq!(moved("eu", |_| {}), []);
    let quiet = moved("eu", |new| {
        new.balancers = NonZeroU32::new(4).unwrap();
        new.vips.insert("0.0.0.0/0".parse().unwrap(), Unserved::Drop);
        new.health_checks.get_mut(&name("tcp")).unwrap().port = 81;
        let pool = web(new);
        pool.health_checks.clear();
        pool.backends.get_mut(&ip(1)).unwrap().admin_state = AdminState::Drain;
        // Not where connections are at home.
        pool.backends.insert(ip(4), backend("us"));
    });
    assert_eq!(quiet, []);
}

/// Slots of the home before: 1, 2, 1, 2, 1, 2, 1.
#[test]
fn a_change_of_home_settles_and_says_how_much_of_it() {
    let settles = |share| expected(&[("pool web", Effect::Settle, share)]);
    // 1, 2, 4, 1, 2, 4, 1
    let added = |new: &mut Configuration| drop(web(new).backends.insert(ip(4), backend("eu")));
    assert_eq!(moved("eu", added), settles(4.0 / 7.0));
    // 3, 3, 3, 3, 3, 3, 3 becomes 3, 4, 3, 4, 3, 4, 3.
    let there = |new: &mut Configuration| drop(web(new).backends.insert(ip(4), backend("us")));
    assert_eq!(moved("us", there), settles(3.0 / 7.0));
    // The other region first: all.
    let prefers = |new: &mut Configuration| web(new).preferred_regions = vec![name("us")];
    assert_eq!(moved("eu", prefers), settles(1.0));
    // Counted over thirteen places of the hash.
    assert_eq!(moved("eu", |new| web(new).slots = 13), settles(7.0 / 13.0));
    // Of two equal backends another hash finds the same half of the time.
    assert_eq!(moved("eu", |new| new.hash_key = Some([1, 2])), settles(0.5));
    // Nobody's connections.
    let mut idle = configuration();
    idle.services.clear();
    let mut more = idle.clone();
    added(&mut more);
    assert_eq!(moved_from(&idle, &more, "eu"), []);
}

#[test]
fn what_moves_at_once_or_ends_is_named() {
    let off = |new: &mut Configuration| {
        web(new).backends.get_mut(&ip(1)).unwrap().admin_state = AdminState::Disabled;
    };
    let backend_1 = expected(&[("pool web: backend 10.0.0.1", Effect::AtOnce, 1.0)]);
    assert_eq!(moved("eu", off), backend_1);

    let service = |new: &mut Configuration| new.services.get_mut(&name("web")).unwrap().clone();
    let with = |change: fn(&mut Service)| {
        move |new: &mut Configuration| {
            let mut other = service(new);
            change(&mut other);
            // A pool with the first backend alone.
            let mut pool = web(new).clone();
            pool.backends.remove(&ip(2));
            new.pools.insert(name("one"), pool.into());
            new.services.insert(name("web"), other);
        }
    };
    let at_once = |share| expected(&[("service web", Effect::AtOnce, share)]);
    assert_eq!(moved("eu", with(|s| s.affinity = Affinity::Client)), at_once(0.5));
    assert_eq!(moved("eu", with(|s| s.pool = name("one"))), at_once(3.0 / 7.0));
    assert_eq!(moved("eu", with(|s| s.when_full = WhenFull::Reject)), []);
    let end = expected(&[("service web", Effect::End, 1.0)]);
    assert_eq!(moved("eu", with(|s| s.ports = Ports::one(81))), end);
    assert_eq!(moved("eu", |new| new.services.clear()), end);
}

/// Each packet of stateless UDP goes by its slot: nothing settles.
#[test]
fn stateless_flows_move_at_once() {
    let mut old = configuration();
    let dns = old.services.get_mut(&name("web")).unwrap();
    dns.protocol = Protocol::Udp;
    let mut new = old.clone();
    web(&mut new).backends.insert(ip(4), backend("eu"));
    let at_once = expected(&[("service web", Effect::AtOnce, 4.0 / 7.0)]);
    assert_eq!(moved_from(&old, &new, "eu"), at_once);
    // Remembered ones do as connections.
    for configuration in [&mut old, &mut new] {
        let dns = configuration.services.get_mut(&name("web")).unwrap();
        dns.idle_timeout = Some(Duration::from_secs(60));
    }
    let settles = expected(&[("pool web", Effect::Settle, 4.0 / 7.0)]);
    assert_eq!(moved_from(&old, &new, "eu"), settles);
}

/// Connections are taken to be spread evenly over the ports.
#[test]
fn of_ports_that_go_the_connections_end() {
    let with = |ports| {
        let mut configuration = configuration();
        configuration.services.get_mut(&name("web")).unwrap().ports = ports;
        configuration
    };
    let two = Ports::Listed(PortList::new([(80, 80), (443, 443)]).unwrap());
    let (one, two, any) = (with(Ports::one(80)), with(two), with(Ports::Any));
    let end = |share| expected(&[("service web", Effect::End, share)]);
    assert_eq!(moved_from(&two, &one, "eu"), end(0.5));
    assert_eq!(moved_from(&any, &one, "eu"), end(1.0 - 1.0 / 65_535.0));
    assert_eq!(moved_from(&one, &two, "eu"), []);
    assert_eq!(moved_from(&two, &any, "eu"), []);
}
