//! The schema revision rises with every field and value that a configuration can have: a program of an older
//! revision would erase what it does not know.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;

use prost_reflect::{Cardinality, DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};
use spillway_proto::{ADDED, SCHEMA_REVISION};
use xxhash_rust::xxh64::xxh64;

/// Of each revision from 1: how many fields and values there were, and the digest of their list. A row never
/// changes once a release has its revision.
const REVISIONS: &[(usize, u64)] = &[(123, 7724064898041281899), (130, 9561011424819560847)];

fn pool() -> DescriptorPool {
    DescriptorPool::decode(spillway_proto::DESCRIPTORS).unwrap()
}

/// The fields and values of a message and of all that is in it: `Region.name = 1: string`. Some are left out by their full
/// names, with all that is only in them.
fn schema(message: &MessageDescriptor, is_left_out: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let (mut schema, mut seen, mut next) =
        (BTreeSet::new(), BTreeSet::new(), vec![message.clone()]);
    while let Some(message) = next.pop() {
        if !seen.insert(message.full_name().to_owned()) {
            continue;
        }
        for field in message.fields().filter(|field| !is_left_out(field.full_name())) {
            schema.insert(line(&message, &field));
            match field.kind() {
                Kind::Message(inner) => next.push(inner),
                Kind::Enum(list) => schema.extend(
                    list.values()
                        .filter(|value| !is_left_out(value.full_name()))
                        .map(|value| format!("{} = {}", value.full_name(), value.number())),
                ),
                _ => {}
            }
        }
    }
    schema
}

fn line(message: &MessageDescriptor, field: &FieldDescriptor) -> String {
    let (name, number) = (field.name(), field.number());
    let kind = match field.kind() {
        Kind::Message(inner) => inner.full_name().to_owned(),
        Kind::Enum(list) => list.full_name().to_owned(),
        plain => format!("{plain:?}"),
    };
    // Whether unset and the zero value are two things is part of what a program knows.
    let label = match field.cardinality() {
        Cardinality::Repeated => "repeated ",
        _ if field.field_descriptor_proto().proto3_optional() => "optional ",
        _ => "",
    };
    format!("{}.{name} = {number}: {label}{kind}", message.full_name())
}

fn configuration() -> MessageDescriptor {
    pool().get_message_by_name("spillway.v1.Configuration").unwrap()
}

/// How many fields and values there are, and the digest of their list.
fn row(schema: &BTreeSet<String>) -> (usize, u64) {
    let text: Vec<_> = schema.iter().map(String::as_str).collect();
    (schema.len(), xxh64(text.join("\n").as_bytes(), 0))
}

#[test]
fn what_a_configuration_can_have_is_that_of_the_last_revision() {
    let now = row(&schema(&configuration(), |_| false));
    assert_eq!(
        REVISIONS.last(),
        Some(&now),
        "a field or value of a configuration was added or changed: add the next SCHEMA_REVISION_N to \
         configuration.proto, with what is new in its comment, run `cargo xtask proto`, make SCHEMA_REVISION of \
         proto/src/lib.rs the new one, name what is new in ADDED there, and add {now:?} as the last row of REVISIONS here"
    );
}

#[test]
fn the_revision_that_programs_name_is_the_highest_of_the_sources() {
    let list = pool().get_enum_by_name("spillway.v1.SchemaRevision").unwrap();
    let highest = list.values().map(|value| value.number()).max().unwrap();
    assert_eq!(SCHEMA_REVISION as i32, highest);
    assert_eq!(usize::try_from(highest).unwrap(), REVISIONS.len(), "each revision has its row");
}

/// Without what later revisions added, the schema is that of each earlier one: the list of additions has all of them.
#[test]
fn the_additions_are_those_of_each_revision() {
    for (number, expected) in (1..).zip(REVISIONS) {
        let added: BTreeSet<&str> = ADDED
            .iter()
            .filter(|(_, revision)| *revision > number)
            .map(|(name, _)| *name)
            .collect();
        let earlier = schema(&configuration(), |name| added.contains(name));
        assert_eq!(row(&earlier), *expected, "ADDED of proto/src/lib.rs: revision {number}");
    }
    let all = schema(&configuration(), |_| false);
    for (name, revision) in ADDED {
        let is_there = |line: &String| line.starts_with(&format!("{name} = "));
        assert!(all.iter().any(is_there), "{name} is not in a configuration");
        assert!((2..=SCHEMA_REVISION as i32).contains(revision), "{name}: {revision}");
    }
}

#[test]
fn what_is_left_out_takes_along_what_is_only_in_it() {
    let all = schema(&configuration(), |_| false);
    let less = schema(&configuration(), |name| {
        ["spillway.v1.Configuration.services", "spillway.v1.ADMIN_STATE_DRAIN"].contains(&name)
    });
    let gone: BTreeSet<_> = all.difference(&less).collect();
    let is_gone = |start: &str| gone.iter().any(|line| line.starts_with(start));
    assert!(
        is_gone("spillway.v1.Configuration.services = ") && is_gone("spillway.v1.Service.name")
    );
    assert!(is_gone("spillway.v1.ADMIN_STATE_DRAIN = 3"), "{gone:#?}");
    assert!(
        !is_gone("spillway.v1.Pool.") && !is_gone("spillway.v1.ADMIN_STATE_ACTIVE"),
        "{gone:#?}"
    );
}

/// The list sees what an older program would erase.
#[test]
fn a_new_field_and_a_new_value_are_seen() {
    let all = schema(&configuration(), |_| false);
    for expected in ["spillway.v1.PortRange.last = 2: ", "spillway.v1.Backend.weight = 3: "] {
        assert!(all.iter().any(|line| line.starts_with(expected)), "{expected}\n{all:#?}");
    }
    assert!(all.contains("spillway.v1.ADMIN_STATE_DRAIN = 3"), "{all:#?}");
    assert!(!all.iter().any(|line| line.contains("ApplyRequest")), "{all:#?}");
}
