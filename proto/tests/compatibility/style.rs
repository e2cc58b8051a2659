//! What we promise of every message: comments that say what unset means, durations that are
//! durations, enums that begin with UNSPECIFIED.

use std::collections::BTreeMap;

use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

/// Numbers of the fields of `FileDescriptorProto`, `DescriptorProto`, `ServiceDescriptorProto` and
/// `EnumDescriptorProto` that a path of source information goes by.
mod number {
    pub(super) const MESSAGES: i32 = 4;
    pub(super) const ENUMS: i32 = 5;
    pub(super) const SERVICES: i32 = 6;
    pub(super) const FIELDS: i32 = 2;
    pub(super) const NESTED: i32 = 3;
    pub(super) const NESTED_ENUMS: i32 = 4;
    pub(super) const VALUES: i32 = 2;
    pub(super) const METHODS: i32 = 2;
}

/// Words of which a comment must have one where a field may be left out.
const UNSET: [&str; 3] = ["Unset", "Must be set", "must be set"];

/// Ends of names that a time has.
const TIMES: [&str; 4] = ["interval", "timeout", "_time", "uptime"];

/// Everything in our own files that is not as it should be.
pub(super) fn wrong(descriptors: &FileDescriptorSet) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in descriptors.file.iter().filter(|file| file.package().starts_with("spillway.")) {
        let information = file.source_code_info.clone().unwrap_or_default();
        let comments = information.location.into_iter();
        let mut look = Look {
            configuration: file.name().ends_with("configuration.proto"),
            comments: comments.map(|l| (l.path.clone(), l.leading_comments().into())).collect(),
            wrong: &mut wrong,
        };
        for (index, message) in each(&file.message_type) {
            look.message(message, &[number::MESSAGES, index]);
        }
        for (index, list) in each(&file.enum_type) {
            look.values(list, &[number::ENUMS, index]);
        }
        for (index, service) in each(&file.service) {
            look.comment(service.name(), &[number::SERVICES, index]);
            for (method, name) in each(&service.method) {
                let path = [number::SERVICES, index, number::METHODS, method];
                look.comment(&format!("{}.{}", service.name(), name.name()), &path);
            }
        }
    }
    wrong
}

struct Look<'a> {
    /// Whether people write these messages.
    configuration: bool,
    comments: BTreeMap<Vec<i32>, String>,
    wrong: &'a mut Vec<String>,
}

impl Look<'_> {
    fn message(&mut self, message: &DescriptorProto, path: &[i32]) {
        self.comment(message.name(), path);
        let written = self.configuration || message.name().ends_with("Request");
        for (index, field) in each(&message.field) {
            let name = format!("{}.{}", message.name(), field.name());
            let comment = self.comment(&name, &below(path, number::FIELDS, index));
            let in_choice = field.oneof_index.is_some() && !field.proto3_optional();
            if written && !in_choice && !UNSET.iter().any(|words| comment.contains(words)) {
                self.wrong.push(format!("{name}: its comment does not say what unset means"));
            }
            self.time(&name, field);
        }
        for (index, nested) in each(&message.nested_type) {
            self.message(nested, &below(path, number::NESTED, index));
        }
        for (index, list) in each(&message.enum_type) {
            self.values(list, &below(path, number::NESTED_ENUMS, index));
        }
    }

    fn time(&mut self, name: &str, field: &FieldDescriptorProto) {
        let duration = field.type_name() == ".google.protobuf.Duration";
        let is_time = TIMES.iter().any(|end| field.name().ends_with(end));
        if is_time && !(duration && field.label() == Label::Optional) {
            self.wrong.push(format!("{name}: is a time and no google.protobuf.Duration"));
        }
        if field.r#type() == Type::Group {
            self.wrong.push(format!("{name}: is a group"));
        }
    }

    fn values(&mut self, list: &EnumDescriptorProto, path: &[i32]) {
        self.comment(list.name(), path);
        let capitals = capitals(list.name());
        for (index, value) in each(&list.value) {
            self.comment(value.name(), &below(path, number::VALUES, index));
            if !value.name().starts_with(&format!("{capitals}_")) {
                self.wrong.push(format!("{}: does not begin with {capitals}_", value.name()));
            }
        }
        let first = list.value.first().map(|value| (value.name().to_owned(), value.number()));
        if first != Some((format!("{capitals}_UNSPECIFIED"), 0)) {
            self.wrong.push(format!("{}: does not begin with {capitals}_UNSPECIFIED", list.name()));
        }
    }

    fn comment(&mut self, name: &str, path: &[i32]) -> String {
        let comment = self.comments.get(path).cloned().unwrap_or_default();
        if comment.trim().is_empty() {
            self.wrong.push(format!("{name}: has no comment"));
        }
        comment
    }
}

/// `AdminState` as `ADMIN_STATE`.
fn capitals(name: &str) -> String {
    let mut capitals = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !capitals.is_empty() {
            capitals.push('_');
        }
        capitals.extend(letter.to_uppercase());
    }
    capitals
}

fn each<T>(list: &[T]) -> impl Iterator<Item = (i32, &T)> {
    (0..).zip(list)
}

fn below(path: &[i32], field: i32, index: i32) -> Vec<i32> {
    [path, &[field, index]].concat()
}
