//! What a later version may not do to those who were made for an earlier one, on the wire and in the
//! source of clients alike: the rules of buf's FILE category that apply to what we use.

use prost_reflect::{
    Cardinality, DescriptorPool, EnumDescriptor, FieldDescriptor, Kind, MessageDescriptor,
    MethodDescriptor, ServiceDescriptor,
};

/// The package that is promised.
const PACKAGE: &str = "spillway.v1";

/// Everything of `old` that does not hold in `new`.
pub(super) fn broken(old: &DescriptorPool, new: &DescriptorPool) -> Vec<String> {
    let mut broken = Vec::new();
    for service in old.services().filter(|service| service.package_name() == PACKAGE) {
        match new.get_service_by_name(service.full_name()) {
            None => broken.push(format!("service {}: is gone", service.name())),
            Some(now) => methods(&service, &now, &mut broken),
        }
    }
    for message in old.all_messages().filter(|message| message.package_name() == PACKAGE) {
        match new.get_message_by_name(message.full_name()) {
            None => broken.push(format!("message {}: is gone", message.name())),
            Some(now) => fields(&message, &now, &mut broken),
        }
    }
    for list in old.all_enums().filter(|list| list.package_name() == PACKAGE) {
        match new.get_enum_by_name(list.full_name()) {
            None => broken.push(format!("enum {}: is gone", list.name())),
            Some(now) => values(&list, &now, &mut broken),
        }
    }
    broken
}

fn methods(old: &ServiceDescriptor, new: &ServiceDescriptor, broken: &mut Vec<String>) {
    for was in old.methods() {
        let place = format!("{}.{}", old.name(), was.name());
        let Some(is) = new.methods().find(|method| method.name() == was.name()) else {
            broken.push(format!("{place}: is gone"));
            continue;
        };
        let shape = |method: &MethodDescriptor| {
            let stream = |is: bool| if is { "stream " } else { "" };
            format!(
                "({}{}) returns ({}{})",
                stream(method.is_client_streaming()),
                method.input().full_name(),
                stream(method.is_server_streaming()),
                method.output().full_name()
            )
        };
        differs(&place, "is", shape(&was), shape(&is), broken);
    }
}

fn fields(old: &MessageDescriptor, new: &MessageDescriptor, broken: &mut Vec<String>) {
    for was in old.fields() {
        let place = format!("{}.{}", old.name(), was.name());
        let Some(is) = new.get_field(was.number()) else {
            let number = was.number();
            let reserved = new.reserved_ranges().any(|range| range.contains(&number))
                && new.reserved_names().any(|name| name == was.name());
            if !reserved {
                broken.push(format!("{place}: is gone, and its name and number not reserved"));
            }
            continue;
        };
        differs(&place, "its name", was.name(), is.name(), broken);
        differs(&place, "its type", kind(&was), kind(&is), broken);
        differs(&place, "it is", cardinality(&was), cardinality(&is), broken);
        differs(&place, "its choice", choice(&was), choice(&is), broken);
        differs(&place, "its JSON name", was.json_name(), is.json_name(), broken);
    }
}

fn values(old: &EnumDescriptor, new: &EnumDescriptor, broken: &mut Vec<String>) {
    for was in old.values() {
        let place = format!("{}.{}", old.name(), was.name());
        match new.get_value(was.number()) {
            None => {
                let number = was.number();
                let reserved = new.reserved_ranges().any(|range| range.contains(&number))
                    && new.reserved_names().any(|name| name == was.name());
                if !reserved {
                    broken.push(format!("{place}: is gone, and its name and number not reserved"));
                }
            }
            Some(is) => differs(&place, "its name", was.name(), is.name(), broken),
        }
    }
}

fn differs(
    place: &str,
    what: &str,
    was: impl AsRef<str>,
    is: impl AsRef<str>,
    broken: &mut Vec<String>,
) {
    let (was, is) = (was.as_ref(), is.as_ref());
    if was != is {
        broken.push(format!("{place}: {what} {is}, was {was}"));
    }
}

fn kind(field: &FieldDescriptor) -> String {
    match field.kind() {
        Kind::Message(message) => message.full_name().to_owned(),
        Kind::Enum(list) => list.full_name().to_owned(),
        scalar => format!("{scalar:?}").to_lowercase(),
    }
}

fn cardinality(field: &FieldDescriptor) -> &'static str {
    match field.cardinality() {
        Cardinality::Repeated => "repeated",
        _ if field.supports_presence() => "optional",
        _ => "single",
    }
}

/// The `oneof` that somebody wrote; that of an `optional` field is not one.
fn choice(field: &FieldDescriptor) -> String {
    let written = field.containing_oneof().filter(|choice| !choice.is_synthetic());
    written.map_or_else(|| "none".into(), |choice| choice.name().to_owned())
}
