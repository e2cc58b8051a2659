//! Fields that follow others. The configuration in force has every default spelt out, so who changes
//! a check's interval would be held to the timeout that followed from the old one.

use prost_reflect::{DynamicMessage, FieldDescriptor, Value};

use super::{Id, Object, find};

/// Unsets what stands in an object of the configuration in force as it would be if it were left out,
/// whoever set it: validation fills it again, by what the others are then.
pub(super) fn clear_derived<O: Object>(object: &O, message: DynamicMessage) -> DynamicMessage {
    if object.alone().is_none() {
        return message;
    }
    paths(&message).iter().fold(message, |message, path| {
        let without = without(&message, path);
        match spelt_out::<O>(&without).as_ref() == Some(object) {
            true => without,
            false => message,
        }
    })
}

/// The fields that are set, each before those in it.
fn paths(message: &DynamicMessage) -> Vec<Vec<FieldDescriptor>> {
    let below = |(field, value): (FieldDescriptor, &Value)| {
        let inner = match value {
            // What is on stays on: nobody stops verifying because the file goes that it followed from.
            Value::Bool(true) => return Vec::new(),
            Value::Message(inner) => paths(inner),
            _ => Vec::new(),
        };
        let inner = inner.into_iter().map(|path| [vec![field.clone()], path].concat());
        [vec![vec![field.clone()]], inner.collect()].concat()
    };
    message.fields().flat_map(below).collect()
}

/// A message without one field.
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

/// The object that a message is, with its defaults, if it is valid.
fn spelt_out<O: Object>(message: &DynamicMessage) -> Option<O> {
    let object: O = message.transcode_to().ok()?;
    let configuration = lb_config::validate(&object.alone()?).ok()?;
    let configuration = lb_config::to_message(&configuration);
    find(&configuration, &Id::of_listed(None, &object)).ok()?.cloned()
}
