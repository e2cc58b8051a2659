//! What an encoded configuration uses of the schema: the revision that a balancer must understand to read all of it.
//!
//! Generated code drops what it does not know, and has no list of what is set. So the bytes are walked, with the descriptors
//! of the API beside them.

use std::{collections::HashMap, sync::LazyLock};

use prost::{
    DecodeError, Message as _,
    encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field},
};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FileDescriptorSet, field_descriptor_proto::Type,
};

use lb_model::Configuration;

use super::Revision;

/// The package of the API, as full names begin.
const PACKAGE: &str = "spillway.v1.";

const ROOT: &str = "spillway.v1.Configuration";

/// Of configurations as this program knows them.
static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::new(spillway_proto::ADDED));

/// What a configuration needs of the balancers that read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaNeed {
    /// The earliest revision that has everything in it.
    pub revision: Revision,
    /// The first field or value of that revision, as `Pool.slots`; `None`: it is the first revision.
    pub of: Option<String>,
}

/// Why it is not known what a configuration needs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SchemaUseError {
    /// Only a newer program can have written it.
    #[error("{0}")]
    Unknown(String),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("a field is longer than what it is in")]
    Truncated,
}

/// The earliest revision that has everything in a configuration: an older program that understands it can read it all.
pub fn needed_by(configuration: &Configuration) -> Revision {
    // All fields are of the first one.
    if Revision::CURRENT == Revision::FIRST {
        return Revision::FIRST;
    }
    let need = needed(&lb_config::encode(configuration));
    need.map_or(Revision::CURRENT, |need| need.revision)
}

/// What the bytes of a `v1::Configuration` need.
///
/// # Errors
/// [`SchemaUseError`]
pub(super) fn needed(configuration: &[u8]) -> Result<SchemaNeed, SchemaUseError> {
    SCHEMA.needed(configuration)
}

/// The fields and values that there are, with their revisions.
#[derive(Debug)]
pub(super) struct Schema {
    messages: HashMap<String, HashMap<u32, Field>>,
    enums: HashMap<String, HashMap<u64, Item>>,
}

#[derive(Debug)]
struct Field {
    item: Item,
    kind: FieldKind,
}

/// A field or a value.
#[derive(Debug)]
struct Item {
    /// Without the package.
    name: String,
    revision: Revision,
}

#[derive(Debug)]
enum FieldKind {
    /// Full name.
    Message(String),
    /// Full name.
    Enum(String),
    Plain,
}

impl Schema {
    /// That of the API, with the revisions of what was added after the first one.
    pub(super) fn new(added: &[(&str, i32)]) -> Self {
        let added: HashMap<&str, i32> = added.iter().copied().collect();
        let item = |full_name: String| {
            let revision = added.get(full_name.as_str()).copied().unwrap_or_default();
            let name = full_name.strip_prefix(PACKAGE).map(str::to_owned).unwrap_or(full_name);
            Item { name, revision: Revision::new(revision) }
        };
        let mut schema = Self { messages: HashMap::new(), enums: HashMap::new() };
        // The build made it, and a test reads it.
        let set = FileDescriptorSet::decode(spillway_proto::DESCRIPTORS).unwrap_or_default();
        for file in &set.file {
            let scope = file.package();
            file.enum_type.iter().for_each(|it| schema.add_enum(scope, it, &item));
            file.message_type.iter().for_each(|it| schema.add_message(scope, it, &item));
        }
        schema
    }

    fn add_message(
        &mut self,
        scope: &str,
        message: &DescriptorProto,
        item: &impl Fn(String) -> Item,
    ) {
        let full_name = format!("{scope}.{}", message.name());
        message.enum_type.iter().for_each(|it| self.add_enum(&full_name, it, item));
        message.nested_type.iter().for_each(|it| self.add_message(&full_name, it, item));
        let fields = message.field.iter().map(|field| {
            let of_type = field.type_name().trim_start_matches('.').to_owned();
            let kind = match field.r#type() {
                Type::Message => FieldKind::Message(of_type),
                Type::Enum => FieldKind::Enum(of_type),
                _ => FieldKind::Plain,
            };
            let item = item(format!("{full_name}.{}", field.name()));
            (field.number().unsigned_abs(), Field { item, kind })
        });
        let fields = fields.collect();
        self.messages.insert(full_name, fields);
    }

    fn add_enum(
        &mut self,
        scope: &str,
        list: &EnumDescriptorProto,
        item: &impl Fn(String) -> Item,
    ) {
        // The names of values stand beside that of their enum.
        let values = list
            .value
            .iter()
            .map(|value| (encoded(value.number()), item(format!("{scope}.{}", value.name()))));
        let values = values.collect();
        self.enums.insert(format!("{scope}.{}", list.name()), values);
    }

    pub(super) fn needed(&self, configuration: &[u8]) -> Result<SchemaNeed, SchemaUseError> {
        let mut need = SchemaNeed { revision: Revision::FIRST, of: None };
        self.walk(ROOT, configuration, &mut need)?;
        Ok(need)
    }

    /// A message has no message of its own kind in it, directly or not, so this ends.
    fn walk(
        &self,
        message: &str,
        mut bytes: &[u8],
        need: &mut SchemaNeed,
    ) -> Result<(), SchemaUseError> {
        // Those of other packages do not change.
        let Some(fields) = self.messages.get(message) else { return Ok(()) };
        while !bytes.is_empty() {
            let (number, wire_type) = decode_key(&mut bytes)?;
            let Some(field) = fields.get(&number) else {
                let message = message.trim_start_matches(PACKAGE);
                return Err(SchemaUseError::Unknown(format!("field {number} of {message}")));
            };
            need.note(&field.item);
            match (&field.kind, wire_type) {
                (FieldKind::Message(inner), WireType::LengthDelimited) => {
                    self.walk(inner, delimited(&mut bytes)?, need)?;
                }
                (FieldKind::Enum(list), WireType::Varint) => {
                    self.note_value(list, &field.item, decode_varint(&mut bytes)?, need)?;
                }
                (FieldKind::Enum(list), WireType::LengthDelimited) => {
                    let mut packed = delimited(&mut bytes)?;
                    while !packed.is_empty() {
                        self.note_value(list, &field.item, decode_varint(&mut packed)?, need)?;
                    }
                }
                _ => skip_field(wire_type, number, &mut bytes, DecodeContext::default())?,
            }
        }
        Ok(())
    }

    fn note_value(
        &self,
        list: &str,
        field: &Item,
        value: u64,
        need: &mut SchemaNeed,
    ) -> Result<(), SchemaUseError> {
        let Some(values) = self.enums.get(list) else { return Ok(()) };
        match values.get(&value) {
            Some(item) => need.note(item),
            None => {
                let text = format!("value {} of {}", value.cast_signed(), field.name);
                return Err(SchemaUseError::Unknown(text));
            }
        }
        Ok(())
    }
}

impl SchemaNeed {
    fn note(&mut self, item: &Item) {
        if item.revision > self.revision {
            (self.revision, self.of) = (item.revision, Some(item.name.clone()));
        }
    }
}

/// A negative number takes ten bytes, as one of 64 bits.
fn encoded(value: i32) -> u64 {
    i64::from(value).cast_unsigned()
}

/// Takes a length and as many bytes.
fn delimited<'b>(bytes: &mut &'b [u8]) -> Result<&'b [u8], SchemaUseError> {
    let length = decode_varint(bytes)?;
    let length = usize::try_from(length).map_err(|_| SchemaUseError::Truncated)?;
    let (inner, rest) = bytes.split_at_checked(length).ok_or(SchemaUseError::Truncated)?;
    *bytes = rest;
    Ok(inner)
}

#[cfg(test)]
mod tests {
    use spillway_proto::v1;

    use super::*;

    fn configuration() -> v1::Configuration {
        let backend = v1::Backend {
            address: "192.0.2.1".into(),
            admin_state: v1::AdminState::Drain.into(),
            ..v1::Backend::default()
        };
        let pool = v1::Pool {
            name: "web".into(),
            slots: Some(31),
            backends: vec![backend],
            ..v1::Pool::default()
        };
        v1::Configuration { pools: vec![pool], ..v1::Configuration::default() }
    }

    /// With a table of which fields and values a later revision added.
    fn need(added: &[(&str, i32)], configuration: &v1::Configuration) -> (i32, Option<String>) {
        let need = Schema::new(added).needed(&configuration.encode_to_vec()).unwrap();
        (need.revision.number(), need.of)
    }

    #[test]
    fn a_configuration_needs_the_latest_revision_that_it_uses() {
        const ADDED: &[(&str, i32)] = &[
            ("spillway.v1.Pool.slots", 2),
            ("spillway.v1.Configuration.hash_key", 2),
            ("spillway.v1.ADMIN_STATE_DRAIN", 3),
            ("spillway.v1.Backend.weight", 4),
        ];
        assert_eq!(need(&[], &configuration()), (1, None));
        let mut used = configuration();
        assert_eq!(need(ADDED, &used), (3, Some("ADMIN_STATE_DRAIN".into())));
        used.pools[0].backends[0].admin_state = v1::AdminState::Active.into();
        assert_eq!(need(ADDED, &used), (2, Some("Pool.slots".into())));
        used.pools[0].slots = None;
        assert_eq!(need(ADDED, &used), (1, None));
        // That it is set counts, whatever it is set to.
        used.pools[0].backends[0].weight = Some(0);
        assert_eq!(need(ADDED, &used), (4, Some("Backend.weight".into())));
        used.pools.clear();
        used.hash_key = "00".into();
        assert_eq!(need(ADDED, &used), (2, Some("Configuration.hash_key".into())));
    }

    #[test]
    fn what_no_revision_has_is_unknown() {
        let unknown = |bytes: &[u8]| needed(bytes).unwrap_err().to_string();
        let mut bytes = configuration().encode_to_vec();
        // Field 2047, a varint.
        bytes.extend([0xf8, 0x7f, 0x01]);
        assert_eq!(unknown(&bytes), "field 2047 of Configuration");
        let mut newer = configuration();
        newer.pools[0].backends[0].admin_state = 77;
        assert_eq!(unknown(&newer.encode_to_vec()), "value 77 of Backend.admin_state");
        newer.pools[0].backends[0].admin_state = -1;
        assert_eq!(unknown(&newer.encode_to_vec()), "value -1 of Backend.admin_state");
    }

    #[test]
    fn broken_bytes_are_refused() {
        let bytes = configuration().encode_to_vec();
        for length in [1, 2, 3, bytes.len() - 1] {
            let error = needed(&bytes[..length]).unwrap_err();
            assert!(!matches!(error, SchemaUseError::Unknown(_)), "{length}: {error}");
        }
        assert_eq!(needed(&[]).unwrap().revision, Revision::FIRST);
    }
}
