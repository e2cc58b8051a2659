use std::collections::BTreeSet;

use prost_reflect::DescriptorPool;

use super::{
    calls::{CALLS, operated},
    permitted,
};
use crate::access::{Peer, Role};
use lb_config::document::Document;
use lb_control::command::Actor;

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
    let may = |role, call: &str| {
        permitted(&Peer { actor: Actor::Certificate("x".into()), role, connection: None }, call)
            .is_ok()
    };
    for call in served() {
        let name = call.rsplit('/').next().unwrap();
        // By their names, not by the table.
        let writes = ["Apply", "Create", "Update", "Delete", "Reload", "Rollback"]
            .iter()
            .any(|w| name.starts_with(w));
        // Packets have what people say to each other in them; and probes are packets that are sent.
        let operates = ["Capture", "ProbeVips", "SetOverrides", "RemoveOverrides"];
        let reads = !writes && !operates.contains(&name);
        assert_eq!(may(Some(Role::Viewer), &call), reads, "{call}");
        let operates = !writes || name == "UpdateBackend";
        assert_eq!(may(Some(Role::Operator), &call), operates, "{call}");
        assert!(may(Some(Role::Admin), &call), "{call}");
        assert!(!may(None, &call), "{call}");
    }
    for call in ["/spillway.v1.Spillway/New", "", "/spillway.v1.Spillway/Status/"] {
        assert!(!may(Some(Role::Operator), call), "{call}");
    }
}

#[test]
fn an_operator_changes_three_fields_of_backends_that_are_there() {
    let text = |backend: &str, pool: &str| {
        let text = format!(
            "[[region]]\nname = \"eu\"\n[[region]]\nname = \"us\"\n[[pool]]\nname = \"a\"\n{pool}\n\
             [[pool.backend]]\naddress = \"10.0.0.1\"\nregion = \"eu\"\n{backend}\n"
        );
        spillway_proto::v1::Configuration::from(Document::parse(&text).unwrap())
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
