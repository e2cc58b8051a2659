//! The schema revision rises with every field and value that a configuration can have: a program of an older
//! revision would erase what it does not know.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeSet;

use prost_reflect::{Cardinality, DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};
use xxhash_rust::xxh64::xxh64;

/// Of each revision from 1: how many fields and values there were, and the digest of their list. A row never
/// changes once a release has its revision.
const REVISIONS: &[(usize, u64)] = &[(123, 7724064898041281899)];

fn pool() -> DescriptorPool {
    DescriptorPool::decode(spillway_proto::DESCRIPTORS).unwrap()
}

/// The fields and values of a message and of all that is in it: `Region.name = 1: string`.
fn schema(message: &MessageDescriptor) -> BTreeSet<String> {
    let (mut schema, mut seen, mut next) =
        (BTreeSet::new(), BTreeSet::new(), vec![message.clone()]);
    while let Some(message) = next.pop() {
        if !seen.insert(message.full_name().to_owned()) {
            continue;
        }
        for field in message.fields() {
            schema.insert(line(&message, &field));
            match field.kind() {
                Kind::Message(inner) => next.push(inner),
                Kind::Enum(list) => schema.extend(
                    list.values()
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

#[test]
fn what_a_configuration_can_have_is_that_of_the_last_revision() {
    let pool = pool();
    let schema = schema(&pool.get_message_by_name("spillway.v1.Configuration").unwrap());
    let text: Vec<_> = schema.iter().map(String::as_str).collect();
    let now = (schema.len(), xxh64(text.join("\n").as_bytes(), 0));
    assert_eq!(
        REVISIONS.last(),
        Some(&now),
        "a field or value of a configuration was added or changed: add the next SCHEMA_REVISION_N to \
         configuration.proto, with what is new in its comment, run `cargo xtask proto`, make SCHEMA_REVISION of \
         proto/src/lib.rs the new one, and add {now:?} as the last row of REVISIONS here"
    );
}

#[test]
fn the_revision_that_programs_name_is_the_highest_of_the_sources() {
    let list = pool().get_enum_by_name("spillway.v1.SchemaRevision").unwrap();
    let highest = list.values().map(|value| value.number()).max().unwrap();
    assert_eq!(spillway_proto::SCHEMA_REVISION as i32, highest);
    assert_eq!(usize::try_from(highest).unwrap(), REVISIONS.len(), "each revision has its row");
}

/// The list sees what an older program would erase.
#[test]
fn a_new_field_and_a_new_value_are_seen() {
    let all = schema(&pool().get_message_by_name("spillway.v1.Configuration").unwrap());
    for expected in ["spillway.v1.PortRange.last = 2: ", "spillway.v1.Backend.weight = 3: "] {
        assert!(all.iter().any(|line| line.starts_with(expected)), "{expected}\n{all:#?}");
    }
    assert!(all.contains("spillway.v1.ADMIN_STATE_DRAIN = 3"), "{all:#?}");
    assert!(!all.iter().any(|line| line.contains("ApplyRequest")), "{all:#?}");
}
