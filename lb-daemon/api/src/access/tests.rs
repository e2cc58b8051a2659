use std::collections::BTreeSet;

use prost_reflect::DescriptorPool;

use super::{
    calls::{CALLS, operated, other_concern},
    permitted,
};
use lb_config::document::Document;
use lb_control::command::Actor;
use lb_secure::access::{Peer, Role, Scope};
use spillway_proto::v1;

/// Calls of everything that is served, from the descriptors.
fn served() -> BTreeSet<String> {
    let sets = [
        spillway_proto::DESCRIPTORS,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
    ];
    let pools = sets.map(|set| DescriptorPool::decode(set).unwrap());
    let services = pools.iter().flat_map(|pool| pool.services().collect::<Vec<_>>());
    let methods = services.flat_map(|service| service.methods().collect::<Vec<_>>());
    methods.map(|m| format!("/{}/{}", m.parent_service().full_name(), m.name())).collect()
}

#[test]
fn every_call_that_is_served_has_a_role_and_no_other_has() {
    let named: Vec<_> = CALLS.iter().map(|(call, _)| (*call).to_owned()).collect();
    assert!(named.is_sorted(), "the table is in order, so that nothing is in it twice");
    assert_eq!(named.len(), named.iter().collect::<BTreeSet<_>>().len());
    assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), served());
}

#[test]
fn each_role_may_what_it_may() {
    let web: Scope = "web-*".parse().unwrap();
    let may = |role, scope: Option<&Scope>, call: &str| {
        let (actor, scope) = (Actor::Certificate("x".into()), scope.cloned());
        permitted(&Peer { actor, role, scope, connection: None }, call).is_ok()
    };
    for call in served() {
        let name = call.rsplit('/').next().unwrap();
        let is = |names: &[&str]| names.iter().any(|it| name.starts_with(it));
        // By their names, not by the table. What can be a dry run is for plan too; the call itself looks whether it is one.
        let of_objects =
            is(&["Batch", "Create", "Update", "Delete", "SetOverrides", "RemoveOverrides"]);
        let of_fleets = is(&["JoinFleet", "LeaveFleet", "RemoveFleet", "RestoreFleet"]);
        let plans = of_objects || of_fleets || is(&["Apply", "Rollback"]);
        // Packets have what people say to each other in them; and probes are packets that are sent.
        let operates = is(&["Capture", "ProbeVips", "CountBackendPackets"]);
        let reads = !plans && !operates && name != "Reload";
        for (role, expected) in [
            (None, false),
            (Some(Role::Viewer), reads),
            (Some(Role::Plan), reads || plans),
            (Some(Role::Operator), reads || plans || operates),
            (Some(Role::Admin), true),
        ] {
            assert_eq!(may(role, None, &call), expected, "{call} {role:?}");
            // It counts what Stats counts, and `drain --wait` of an operator asks it.
            let of_pools = expected && (reads || of_objects || name == "CountBackendPackets");
            assert_eq!(may(role, Some(&web), &call), of_pools, "{call} {role:?} of some pools");
        }
    }
    for call in ["/spillway.v1.Spillway/New", "", "/spillway.v1.Spillway/Status/"] {
        assert!(!may(Some(Role::Operator), None, call), "{call}");
        assert!(!may(Some(Role::Admin), Some(&web), call), "{call}");
    }
}

#[test]
fn what_concerns_other_pools_is_found() {
    let before = document(
        "hash_key = \"000102030405060708090a0b0c0d0e0f\"\n[[region]]\nname = \"eu\"\n\
         [[health_check]]\nname = \"own\"\nport = 80\ntcp = {}\n\
         [[health_check]]\nname = \"shared\"\nport = 81\ntcp = {}\n\
         [[pool]]\nname = \"web-a\"\nhealth_checks = [\"own\", \"shared\"]\n\
         [[pool.backend]]\naddress = \"10.0.0.1\"\nregion = \"eu\"\n\
         [[pool]]\nname = \"api\"\nhealth_checks = [\"shared\"]\n\
         [[service]]\nname = \"web\"\naddress = \"192.0.2.1\"\nport = 80\nprotocol = \"tcp\"\npool = \"web-a\"\n\
         [[service]]\nname = \"api\"\naddress = \"192.0.2.2\"\nport = 80\nprotocol = \"tcp\"\npool = \"api\"\n",
    );
    let web: Scope = "web-*".parse().unwrap();
    type Edit = fn(&mut v1::Configuration);
    let edits: [(&str, Edit, Option<&str>); 14] = [
        ("nothing", |_| {}, None),
        ("the order", |c| c.pools.reverse(), None),
        ("a backend of its own", |c| c.pools[0].backends.clear(), None),
        ("a backend of another pool", |c| c.pools[1].slots = Some(31), Some("pool api")),
        ("another pool removed", |c| drop(c.pools.pop()), Some("pool api")),
        ("another pool added", |c| c.pools.push(named("new")), Some("pool new")),
        ("its own pool added", |c| c.pools.push(named("web-b")), None),
        ("its own service", |c| c.services[0].port = 81, None),
        ("another's service", |c| c.services[1].port = 81, Some("a service of pool api")),
        (
            "another's service taken over",
            |c| c.services[1].pool = "web-a".into(),
            Some("a service of pool api"),
        ),
        ("its own check", |c| c.health_checks[0].port = 8080, None),
        (
            "a check of others too",
            |c| c.health_checks[1].port = 8080,
            Some("a health check of pool api"),
        ),
        ("a region", |c| c.regions[0].name = "us".into(), Some("a region, which all pools share")),
        ("the key", |c| c.hash_key.clear(), Some("all pools")),
    ];
    for (what, edit, expected) in edits {
        let mut after = before.clone();
        edit(&mut after);
        assert_eq!(other_concern(&web, &before, &after).as_deref(), expected, "{what}");
        assert_eq!(other_concern(&web, &after, &before).as_deref(), expected, "{what}, back");
    }
}

#[test]
fn a_role_for_some_addresses_concerns_no_service_at_others() {
    let before = document(
        "[[region]]\nname = \"eu\"\n[[pool]]\nname = \"web-a\"\n\
         [[service]]\nname = \"in\"\naddress = \"192.0.2.1\"\nport = 80\nprotocol = \"tcp\"\npool = \"web-a\"\n\
         [[service]]\nname = \"out\"\naddress = \"198.51.100.1\"\nport = 80\nprotocol = \"tcp\"\npool = \"web-a\"\n",
    );
    let scope: Scope = "web-*@192.0.2.0/24".parse().unwrap();
    let concern = |edit: &dyn Fn(&mut v1::Configuration)| {
        let mut after = before.clone();
        edit(&mut after);
        other_concern(&scope, &before, &after)
    };
    assert_eq!(concern(&|_| {}), None);
    assert_eq!(concern(&|c| c.services[0].port = 81), None);
    assert_eq!(concern(&|c| c.services[0].address = "192.0.2.255".into()), None);
    assert_eq!(concern(&|c| c.pools[0].slots = Some(31)), None);
    let at = |name: &str, address: &str| Some(format!("service {name} at {address}"));
    let moved = concern(&|c| c.services[0].address = "192.0.3.1".into());
    assert_eq!(moved, at("in", "192.0.3.1"));
    assert_eq!(concern(&|c| c.services[1].port = 81), at("out", "198.51.100.1"));
    assert_eq!(concern(&|c| drop(c.services.pop())), at("out", "198.51.100.1"));
    assert_eq!(concern(&|c| c.services[0].address = "::1".into()), at("in", "::1"));
}

fn document(text: &str) -> v1::Configuration {
    Document::parse(text).unwrap().into()
}

fn named(name: &str) -> v1::Pool {
    v1::Pool { name: name.into(), ..Default::default() }
}

#[test]
fn an_operator_changes_three_fields_of_backends_that_are_there() {
    let text = |backend: &str, pool: &str| {
        document(&format!(
            "[[region]]\nname = \"eu\"\n[[region]]\nname = \"us\"\n[[pool]]\nname = \"a\"\n{pool}\n\
             [[pool.backend]]\naddress = \"10.0.0.1\"\nregion = \"eu\"\n{backend}\n"
        ))
    };
    let before = text("", "");
    for backend in ["weight = 7", "admin_state = \"drain\"", "max_connection_rate = \"5/s\""] {
        let after = text(backend, "");
        assert_ne!(after, before);
        assert_eq!(operated(&before, &after), after, "{backend}");
    }
    for (backend, pool) in [
        ("mtu = 1400", ""),
        ("", "slots = 31"),
        ("[[pool.backend]]\naddress = \"10.0.0.2\"\nregion = \"eu\"", ""),
        ("weight = 7\n[[pool]]\nname = \"b\"", ""),
    ] {
        let after = text(backend, pool);
        assert_ne!(operated(&before, &after), after, "{backend}{pool}");
        assert_ne!(operated(&after, &before), before, "{backend}{pool}: taken away");
    }
    let mut moved = before.clone();
    moved.pools[0].backends[0].region = "us".into();
    assert_ne!(operated(&before, &moved), moved);
    let mut emptied = before.clone();
    emptied.pools[0].backends.clear();
    assert_ne!(operated(&before, &emptied), emptied);
}
