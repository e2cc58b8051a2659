use lb_common::abi::{
    limiter::LimitWord,
    member::Accepts,
    pool::{LIMITED, PoolWord},
};
use lb_common_fake::FakeTables;
use lb_inspect::{
    explain::{Explanation, Flow, explain as explained, kind_name, no_service},
    names::{Names, interface_words},
};
use lb_maps::directory::Directory;

use super::*;
use crate::output::Report;

fn names() -> Names {
    Names(Directory {
        regions: [(0, "eu".into()), (1, "us".into())].into(),
        pools: [(1, "web".into())].into(),
        services: [(1, "shop".into())].into(),
        ..Directory::default()
    })
}

fn explain(fake: &FakeTables, open: bool) -> Explanation {
    let flow: Flow = parse_flow("198.51.100.7:40000", "192.0.2.1:80", Protocol::Tcp, open).unwrap();
    explained(fake, &names(), &fake.services[&flow.tuple().service_key()], &flow)
}

/// Explaining changes nothing in pinned maps; in the fake it leaves the cell of its SYN.
fn forget(fake: &FakeTables) {
    fake.flows.iter().for_each(|word| word.set(0));
}

/// Limits a region to one connection a second, and uses that up.
fn fill_up(fake: &mut FakeTables, region: usize) {
    let limiter = &fake.limiters[fake.groups[region].limiter as usize];
    limiter.0.set(LimitWord::new(16 * 1_000_000_000, 1));
    // One second ahead of the clock: no more than that may come early.
    limiter.1.set((fake.now.get() + 1_000_000_000) * 16);
    fake.descriptors[1].flags |= LIMITED;
}

/// The table without its hash, which other tests check, and without the name of the second interface, which
/// depends on the host.
fn table(explanation: &Explanation) -> String {
    let hash = explanation.hash.clone().unwrap();
    let out = explanation.choice.as_ref().map_or_else(String::new, |choice| {
        format!("on {}\n", interface_words(choice.interface_name.clone(), choice.interface))
    });
    explanation.table().replace(&hash, "HASH").replace(&out, "on OUT\n")
}

#[test]
fn the_owner_has_the_packet() {
    assert_eq!(
        table(&explain(&FakeTables::one_slot(), false)),
        "\
packet    tcp 198.51.100.7:40000 -> 192.0.2.1:80, new connection
service   shop, pool web, affinity connection
slot      0 of 1 (hash HASH)
verdict   forwarded
backend   10.0.0.0, region eu
next hop  02:00:00:00:00:fe on OUT
why       10.0.0.0 owns the slot and is up

REGION  SLOT  PLACE        BACKEND   ACCEPTS  OUTCOME
eu      0     owner        10.0.0.0  all      chosen
eu      0     alternate 1  10.0.0.1  all      not asked
eu      0     alternate 2  10.0.0.2  all      not asked
"
    );
}

#[test]
fn an_alternate_has_it_when_the_owner_may_not() {
    let mut fake = FakeTables::one_slot();
    fake.set(0, 0, Accepts::OpenOnly);
    fake.set_next_hop(0, 1, 0);
    assert_eq!(
        table(&explain(&fake, false)),
        "\
packet    tcp 198.51.100.7:40000 -> 192.0.2.1:80, new connection
service   shop, pool web, affinity connection
slot      0 of 1 (hash HASH)
verdict   forwarded
backend   10.0.0.2, region eu
next hop  02:00:00:00:00:fe on OUT
why       10.0.0.0 owns the slot but takes no new connections; alternate 2 is
          the first on its list that can take the packet

REGION  SLOT  PLACE        BACKEND   ACCEPTS  OUTCOME
eu      0     owner        10.0.0.0  open     passed over: it takes no new
                                              connections
eu      0     alternate 1  10.0.0.1  all      passed over: its next hop is
                                              unresolved
eu      0     alternate 2  10.0.0.2  all      chosen
"
    );
    forget(&fake);
    let open = explain(&fake, true);
    assert_eq!(open.why, "10.0.0.0 owns the slot and takes no new connections");
    assert_eq!(kind_name(open.packet), "open connection");
    assert!(open.choice.unwrap().owner);
}

#[test]
fn both_homes_and_the_cell_are_shown() {
    let mut fake = FakeTables::one_slot();
    fill_up(&mut fake, 0);
    explain(&fake, false);
    let next = fake.add_version(&[1, 0], &[]);
    fake.set_versions(PoolWord::new(1, next));
    let explained = explain(&fake, true);
    // Any of the pool's block.
    let zone = explained.zone.unwrap().number.to_string();
    let text = table(&explained).replace(&zone, "ZONE");
    let shown: Vec<_> = text.lines().skip(3).take(3).collect();
    assert_eq!(
        shown,
        [
            "home      10.0.0.0 now, 10.0.1.0 next (the remap moves it)",
            "zone      ZONE (displaced check on)",
            "cell      half open, at 10.0.1.0, 64 s left",
        ]
    );
}

#[test]
fn an_empty_pool_has_no_slot() {
    let fake = FakeTables::new(&[], 4).with_service("192.0.2.1", 80, 6, 0);
    assert_eq!(
        explain(&fake, false).table(),
        "\
packet   tcp 198.51.100.7:40000 -> 192.0.2.1:80, new connection
service  shop, pool web, affinity connection
verdict  no_backend
why      The pool of the service has no member that may have the packet.
"
    );
}

#[test]
fn no_service_is_an_answer() {
    let flow: Flow =
        parse_flow("[2001:db8::7]:1", "[2001:db8:1::1]:53", Protocol::Udp, false).unwrap();
    assert_eq!(
        no_service(&flow).table(),
        "\
packet   udp [2001:db8::7]:1 -> [2001:db8:1::1]:53, datagram
verdict  not_ours
why      No service has this address, port and protocol, and the packet is left
         to the host.
"
    );
}

#[test]
fn a_full_region_is_named_and_the_next_has_it() {
    let mut fake = FakeTables::one_slot();
    fill_up(&mut fake, 0);
    let explanation = explain(&fake, false);
    assert_eq!(
        table(&explanation),
        "\
packet    tcp 198.51.100.7:40000 -> 192.0.2.1:80, new connection
service   shop, pool web, affinity connection
slot      0 of 1 (hash HASH)
verdict   forwarded
backend   10.0.1.0, region us
next hop  02:00:00:00:00:fe on OUT
why       region eu is full; owner of slot 0 is the next that can
regions   eu is full; us has it

REGION  SLOT  PLACE        BACKEND   ACCEPTS  OUTCOME
us      0     owner        10.0.1.0  all      chosen
eu      0     owner        10.0.0.0  all      not asked
eu      0     alternate 1  10.0.0.1  all      not asked
eu      0     alternate 2  10.0.0.2  all      not asked
"
    );
    let json = serde_json::to_value(&explanation).unwrap();
    assert_eq!(json["regions"][0], serde_json::json!({ "region": "eu", "outcome": "full" }));
    assert_eq!(json["choice"]["region"], "us");
    assert_eq!(json["remembered"], serde_json::Value::Null);
}

#[test]
fn mixed_ip_versions_and_open_datagrams_are_refused() {
    let mixed = parse_flow("[2001:db8::7]:1", "192.0.2.1:80", Protocol::Tcp, false);
    assert_eq!(
        mixed.unwrap_err().to_string(),
        "error: client [2001:db8::7]:1 and vip 192.0.2.1:80: different IP versions\n\
         hint: give both as IPv4 or both as IPv6 addresses"
    );
    let open = parse_flow("198.51.100.7:1", "192.0.2.1:53", Protocol::Udp, true);
    assert_eq!(open.unwrap_err().exit, Exit::Usage);
}
