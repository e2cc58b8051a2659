//! Version 1 stays what it was: whoever was made for a release works with every later one.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../../examples/regenerate/generate.rs"]
#[allow(dead_code, reason = "only its files are of interest here")]
mod generate;
mod rules;
mod style;

use prost_reflect::{DescriptorPool, prost::Message};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FileDescriptorSet, ServiceDescriptorProto,
    descriptor_proto::ReservedRange,
    field_descriptor_proto::{Label, Type},
};

fn now() -> FileDescriptorSet {
    FileDescriptorSet::decode(spillway_proto::DESCRIPTORS).unwrap()
}

fn pool(set: FileDescriptorSet) -> DescriptorPool {
    DescriptorPool::from_file_descriptor_set(set).unwrap()
}

/// Nothing is promised of `spillway.peers.v1`: balancers refuse another protocol than their own.
#[test]
fn what_was_promised_holds() {
    let promised = std::fs::read(generate::promised()).unwrap();
    let old = DescriptorPool::decode(&*promised).unwrap();
    assert!(old.get_message_by_name("spillway.v1.Configuration").is_some(), "nothing is promised");
    let broken = rules::broken(&old, &pool(now()));
    assert!(broken.is_empty(), "clients of the last release would break:\n{}", broken.join("\n"));
}

#[test]
fn every_field_says_what_unset_means() {
    for descriptors in [generate::descriptors().unwrap(), generate::peer_descriptors().unwrap()] {
        let wrong = style::wrong(&descriptors);
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    }
}

fn message<'a>(set: &'a mut FileDescriptorSet, name: &str) -> &'a mut DescriptorProto {
    let mut messages = set.file.iter_mut().flat_map(|file| &mut file.message_type);
    messages.find(|message| message.name() == name).unwrap()
}

fn list<'a>(set: &'a mut FileDescriptorSet, name: &str) -> &'a mut EnumDescriptorProto {
    let mut lists = set.file.iter_mut().flat_map(|file| &mut file.enum_type);
    lists.find(|list| list.name() == name).unwrap()
}

fn service(set: &mut FileDescriptorSet) -> &mut ServiceDescriptorProto {
    let mut services = set.file.iter_mut().flat_map(|file| &mut file.service);
    services.find(|service| service.name() == "Spillway").unwrap()
}

/// A change of the API, and what it breaks.
type Case = (fn(&mut FileDescriptorSet), &'static [&'static str]);

const CASES: &[Case] = &[
    (
        |set| drop(message(set, "Region").field.remove(1)),
        &["Region.overflow_to: is gone, and its name and number not reserved"],
    ),
    (
        |set| {
            let region = message(set, "Region");
            region.field.remove(1);
            region.reserved_name.push("overflow_to".into());
            region.reserved_range.push(ReservedRange { start: Some(2), end: Some(3) });
        },
        &[],
    ),
    (
        |set| message(set, "Region").field[1].number = Some(9),
        &["Region.overflow_to: is gone, and its name and number not reserved"],
    ),
    (
        |set| {
            let field = &mut message(set, "Region").field[1];
            (field.name, field.json_name) = (Some("spills_to".into()), Some("spillsTo".into()));
        },
        &[
            "Region.overflow_to: its name spills_to, was overflow_to",
            "Region.overflow_to: its JSON name spillsTo, was overflowTo",
        ],
    ),
    (
        |set| message(set, "Region").field[1].set_label(Label::Optional),
        &["Region.overflow_to: it is single, was repeated"],
    ),
    (
        |set| message(set, "Service").field[2].set_type(Type::Uint64),
        &["Service.port: its type uint64, was uint32"],
    ),
    (
        |set| message(set, "Service").field[5].type_name = Some(".spillway.v1.WhenFull".into()),
        &["Service.affinity: its type spillway.v1.WhenFull, was spillway.v1.Affinity"],
    ),
    (
        |set| {
            let backend = message(set, "Backend");
            let weight = &mut backend.field[2];
            weight.proto3_optional = None;
            let choice = weight.oneof_index.take().unwrap();
            backend.oneof_decl.remove(usize::try_from(choice).unwrap());
            let later = backend.field.iter_mut().filter_map(|field| field.oneof_index.as_mut());
            later.filter(|index| **index > choice).for_each(|index| *index -= 1);
        },
        &["Backend.weight: it is single, was optional"],
    ),
    (
        |set| message(set, "HealthCheck").field[1].oneof_index = None,
        &["HealthCheck.tcp: its choice none, was kind"],
    ),
    (
        |set| drop(list(set, "AdminState").value.pop()),
        &["AdminState.ADMIN_STATE_DRAIN: is gone, and its name and number not reserved"],
    ),
    (
        |set| list(set, "AdminState").value[3].name = Some("ADMIN_STATE_DRAINED".into()),
        &["AdminState.ADMIN_STATE_DRAIN: its name ADMIN_STATE_DRAINED, was ADMIN_STATE_DRAIN"],
    ),
    (|set| drop(service(set).method.remove(0)), &["Spillway.Apply: is gone"]),
    (
        |set| service(set).method[0].server_streaming = Some(true),
        &[
            "Spillway.Apply: is (spillway.v1.ApplyRequest) returns (stream spillway.v1.ApplyResponse), \
           was (spillway.v1.ApplyRequest) returns (spillway.v1.ApplyResponse)",
        ],
    ),
    (|set| service(set).name = Some("Balancer".into()), &["service Spillway: is gone"]),
    // What is new breaks nobody.
    (
        |set| {
            let mut field = message(set, "Region").field[0].clone();
            (field.name, field.json_name) = (Some("more".into()), Some("more".into()));
            field.number = Some(77);
            message(set, "Region").field.push(field);
            let mut value = list(set, "Protocol").value[1].clone();
            (value.name, value.number) = (Some("PROTOCOL_SCTP".into()), Some(3));
            list(set, "Protocol").value.push(value);
        },
        &[],
    ),
];

#[test]
fn every_rule_sees_its_break() {
    let old = pool(now());
    assert_eq!(rules::broken(&old, &old), [""; 0]);
    for (number, (change, expected)) in CASES.iter().enumerate() {
        let mut set = now();
        change(&mut set);
        assert_eq!(rules::broken(&old, &pool(set)), *expected, "case {number}");
    }
}
