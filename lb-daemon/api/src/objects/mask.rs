//! Field masks (`google.protobuf.FieldMask`), by the descriptors of the API, so that new fields work without code here.

use std::sync::LazyLock;

use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, MessageDescriptor, ReflectMessage,
};
use prost_types::FieldMask;

use super::{Object, ObjectRefused, defaults};
use lb_base::Quoted;

/// The descriptors of the API; a test checks that they can be decoded.
static DESCRIPTORS: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(spillway_proto::DESCRIPTORS).unwrap_or_default());

/// Package of our own messages.
const PACKAGE: &str = "spillway.v1";

/// The field of requests that holds a mask.
const MASK: &str = "update_mask";

/// `old` with the fields of `new` that a mask names; without a mask, with the set fields of `new`. Defaults that depend on
/// other fields are left out.
pub(super) fn merge<O: Object>(
    old: &O,
    new: &O,
    mask: Option<&FieldMask>,
) -> Result<O, ObjectRefused> {
    let paths = mask.map_or(&[][..], |mask| &mask.paths);
    if paths.iter().any(|path| path == "*") {
        return match paths {
            [_] => Ok(new.clone()),
            _ => Err(ObjectRefused::wrong(
                MASK,
                "\"*\" means all fields, so it must be the only path",
            )),
        };
    }
    let mut target = defaults::clear_derived(old, dynamic(old)?);
    let source = dynamic(new)?;
    if paths.is_empty() {
        for (field, value) in source.fields() {
            target.set_field(&field, value.clone());
        }
    }
    for path in paths {
        let names: Vec<_> = path.split('.').collect();
        copy_field(&mut target, &source, &names)
            .map_err(|cause| ObjectRefused::wrong(MASK, format!("{}: {cause}", Quoted(path))))?;
    }
    target.transcode_to().map_err(|error| ObjectRefused::wrong(O::FIELD, error.to_string()))
}

/// Whether an update replaces whole messages of ours, which may have fields that the client does not know.
pub(super) fn replaces<O: Object>(
    new: &O,
    mask: Option<&FieldMask>,
) -> Result<bool, ObjectRefused> {
    let is_ours = |field: &FieldDescriptor| {
        field.kind().as_message().is_some_and(|inner| inner.package_name() == PACKAGE)
    };
    let paths = mask.map_or(&[][..], |mask| &mask.paths);
    let message = dynamic(new)?;
    if paths.is_empty() {
        return Ok(message.fields().any(|(field, _)| is_ours(&field)));
    }
    let takes = |path: &String| {
        let (mut within, mut last) = (Some(message.descriptor()), None);
        for name in path.split('.') {
            last = within.and_then(|message| message.get_field_by_name(name));
            within = last.as_ref().and_then(|field| field.kind().as_message().cloned());
        }
        path == "*" || last.as_ref().is_some_and(is_ours)
    };
    Ok(paths.iter().any(takes))
}

/// Copies one field.
fn copy_field(
    target: &mut DynamicMessage,
    source: &DynamicMessage,
    names: &[&str],
) -> Result<(), String> {
    let [name, inner @ ..] = names else { return Ok(()) };
    let message = target.descriptor();
    let field = message.get_field_by_name(name).ok_or_else(|| unknown(&message, name))?;
    if inner.is_empty() {
        match source.has_field(&field) {
            true => target.set_field(&field, source.get_field(&field).into_owned()),
            false => target.clear_field(&field),
        }
        return Ok(());
    }
    let (mut below, above) = (message_of(target, &field)?, message_of(source, &field)?);
    copy_field(&mut below, &above, inner)?;
    // A message that is unset in both stays unset.
    if source.has_field(&field) || target.has_field(&field) {
        target.set_field(&field, prost_reflect::Value::Message(below));
    }
    Ok(())
}

/// The message in a field, empty if unset.
fn message_of(message: &DynamicMessage, field: &FieldDescriptor) -> Result<DynamicMessage, String> {
    if field.is_list() {
        return Err(format!("{} is a list, which can only be replaced as a whole", field.name()));
    }
    let value = message.get_field(field);
    value.as_message().cloned().ok_or_else(|| format!("{} has no fields", field.name()))
}

fn unknown(message: &MessageDescriptor, name: &str) -> String {
    // Of an object of its own: no update changes them.
    let is_own = |name: &str| name == "etag" || (name, message.name()) == ("pool", "Backend");
    let fields = message.fields().map(|field| field.name().to_owned());
    let fields: Vec<_> = fields.filter(|name| !is_own(name)).collect();
    let (what, fields) = (message.name(), fields.join(", "));
    format!("{} is not a field of {what}, which has {fields}", Quoted(name))
}

fn dynamic<O: Object>(object: &O) -> Result<DynamicMessage, ObjectRefused> {
    let error = |cause: String| ObjectRefused::wrong(O::FIELD, cause);
    let descriptor = DESCRIPTORS
        .get_message_by_name(O::MESSAGE)
        .ok_or_else(|| error(format!("{} has no descriptor", O::MESSAGE)))?;
    let mut message = DynamicMessage::new(descriptor);
    message.transcode_from(object).map_err(|cause| error(cause.to_string()))?;
    Ok(message)
}
