//! Defaults that depend on other fields. The configuration in force has every default filled in, so a client that
//! changes a check's interval would keep the timeout that was derived from the old one.

use prost_reflect::{DynamicMessage, FieldDescriptor, Value};

use super::{Id, Object, find};

/// Unsets fields of an object whose value equals their default. Validation fills them in again, from the fields as they
/// are then.
pub(super) fn clear_derived<O: Object>(object: &O, message: DynamicMessage) -> DynamicMessage {
    if object.alone().is_none() {
        return message;
    }
    paths(&message).iter().fold(message, |message, path| {
        let without = without(&message, path);
        match with_defaults::<O>(&without).as_ref() == Some(object) {
            true => without,
            false => message,
        }
    })
}

/// Paths of the set fields, each before those in it.
fn paths(message: &DynamicMessage) -> Vec<Vec<FieldDescriptor>> {
    let below = |(field, value): (FieldDescriptor, &Value)| {
        let inner = match value {
            // `true` stays: removing a CA file must not turn off the verification that it implied.
            Value::Bool(true) => return Vec::new(),
            Value::Message(inner) => paths(inner),
            _ => Vec::new(),
        };
        let inner = inner.into_iter().map(|path| [vec![field.clone()], path].concat());
        [vec![vec![field.clone()]], inner.collect()].concat()
    };
    message.fields().flat_map(below).collect()
}

/// The message without one field.
fn without(message: &DynamicMessage, path: &[FieldDescriptor]) -> DynamicMessage {
    let mut message = message.clone();
    match path {
        [field] => message.clear_field(field),
        [field, path @ ..] if message.has_field(field) => {
            if let Some(inner) = message.get_field_mut(field).as_message_mut() {
                *inner = without(inner, path);
            }
        }
        _ => {}
    }
    message
}

/// The object with its defaults, if it is valid.
fn with_defaults<O: Object>(message: &DynamicMessage) -> Option<O> {
    let object: O = message.transcode_to().ok()?;
    let configuration = lb_config::validate_first(&object.alone()?).ok()?;
    let configuration = lb_config::to_message(&configuration);
    find(&configuration, &Id::from_listed(None, &object)).ok()?.cloned()
}
