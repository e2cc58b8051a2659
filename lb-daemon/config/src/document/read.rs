//! Reads a file that has mistakes: collects all of them, and keeps what is right.
//!
//! Serde stops at the first mistake of an object. So each object is read by itself, and as often as it takes: what it stops
//! at is reported and taken out, until the rest can be read. A value that is not TOML is taken out too. Any other text that is
//! not TOML may hide what follows it, so then nothing else is reported.

use std::{mem, ops::Range};

use serde::de::DeserializeOwned;
use spillway_proto::v1;
use toml::{
    Spanned,
    de::{DeArray, DeTable, DeValue, Error, ValueDeserializer},
};

use super::{
    Document, DocumentError, Pool,
    error::{LeftOut, Mistake, explain, located},
    position::{Header, message_name},
};
use crate::{
    MOST_MISTAKES,
    validate::{Unread, mistakes_of_read},
};

/// All mistakes of a file that is no configuration, because of `error` at least.
pub(super) fn document_mistakes(text: &str, error: &Error) -> DocumentError {
    let read = |reader: &mut Reader<'_>, root: Spanned<DeTable<'_>>| {
        let document = root.get_ref().clone();
        let message: v1::Configuration = reader.document(root).into();
        let (invalid, may_be_more) = mistakes_of_read(&message, &reader.unread);
        reader.mistakes.extend(located(Some(&document), &invalid));
        LeftOut { count: invalid.count() - invalid.mistakes().len(), may_be_more }
    };
    mistakes(text, error, read)
}

/// All mistakes of the text of a single object, but not those that validation finds.
pub(super) fn object_mistakes<T>(text: &str, error: &Error) -> DocumentError
where
    T: DeserializeOwned + Default,
{
    let read = |reader: &mut Reader<'_>, root: Spanned<DeTable<'_>>| {
        let _object: T = reader.object(table(root), &Subject::default());
        LeftOut::default()
    };
    mistakes(text, error, read)
}

/// `read` collects the mistakes of a text that is TOML, and returns how many it left out.
fn mistakes(
    text: &str,
    error: &Error,
    read: impl FnOnce(&mut Reader<'_>, Spanned<DeTable<'_>>) -> LeftOut,
) -> DocumentError {
    let (root, mut not_toml) = DeTable::parse_recoverable(text);
    // Another on the same line comes from the first.
    not_toml.sort_by_key(start);
    not_toml.dedup_by_key(|error| line(text, start(error)));
    // The first value of a key counts.
    let (repeated, values): (Vec<_>, _) =
        not_toml.iter().cloned().partition(|error| is_repeated_field(text, error));
    let mistakes = repeated.iter().map(|error| explain(text, error, ("", ""))).collect();
    let mut reader = Reader { text, mistakes, unread: Unread::default(), values };
    let mut left_out = LeftOut::default();
    if reader.values.len() <= MOST_MISTAKES {
        left_out = read(&mut reader, root);
    }
    if !reader.values.is_empty() {
        reader.mistakes = one_a_line(text, not_toml.iter().map(|it| explain(text, it, ("", ""))));
        left_out = LeftOut::default();
    }
    if reader.mistakes.is_empty() {
        reader.mistakes.push(explain(text, error, ("", "")));
    }
    DocumentError::new(text, reader.mistakes, left_out)
}

fn start(error: &Error) -> Option<usize> {
    error.span().map(|span| span.start)
}

/// What is the same for all bytes of a line.
fn line(text: &str, at: Option<usize>) -> Option<usize> {
    text.get(..at?)?.rfind('\n')
}

fn is_repeated_field(text: &str, error: &Error) -> bool {
    let is_header = start(error).is_none_or(|at| Header::at(text, at).is_some());
    error.message() == "duplicate key" && !is_header
}

/// What is not TOML, one mistake for each line. Repeated keys come from headers with one bracket, which are reported at the first.
fn one_a_line(text: &str, mistakes: impl Iterator<Item = Mistake>) -> Vec<Mistake> {
    let mut mistakes: Vec<_> = mistakes.collect();
    if mistakes.iter().any(|(_, cause)| cause.ends_with("with two brackets")) {
        mistakes.retain(|(_, cause)| cause != "duplicate key");
    }
    mistakes.sort_by_key(|(at, _)| *at);
    mistakes.dedup_by_key(|(at, _)| line(text, *at));
    mistakes
}

struct Reader<'t> {
    text: &'t str,
    mistakes: Vec<Mistake>,
    unread: Unread,
    /// What is not TOML and not yet found in an object.
    values: Vec<Error>,
}

/// An object of a file.
#[derive(Clone, Debug, Default)]
struct Subject {
    /// `pools[0].backends[1]`, as in [`crate::validate::Mistake::path`]; empty: the file itself.
    path: String,
    /// `pools[0] "web": backends[1] "10.0.0.1": `
    shown: String,
}

impl Reader<'_> {
    fn document(&mut self, root: Spanned<DeTable<'_>>) -> Document {
        let file = Subject::default();
        let mut root = table(root);
        Document {
            regions: self.list(&mut root, &file, ("region", "regions", "name"), Self::object),
            health_checks: self.list(
                &mut root,
                &file,
                ("health_check", "health_checks", "name"),
                Self::object,
            ),
            pools: self.list(
                &mut root,
                &file,
                ("pool", "pools", "name"),
                |reader, mut pool, at| Pool {
                    groups: reader.list(&mut pool, at, ("group", "groups", "region"), Self::object),
                    backends: reader.list(
                        &mut pool,
                        at,
                        ("backend", "backends", "address"),
                        Self::object,
                    ),
                    ..reader.object(pool, at)
                },
            ),
            services: self.list(&mut root, &file, ("service", "services", "name"), Self::object),
            vips: self.list(&mut root, &file, ("vip", "vips", "prefix"), Self::object),
            ..self.object(root, &file)
        }
    }

    /// Reads each object of a list, and leaves an empty one. A list has a name in the file and one in the message, and its
    /// objects are called by a field.
    fn list<'i, T>(
        &mut self,
        outer: &mut Spanned<DeValue<'i>>,
        at: &Subject,
        (list, in_message, name): (&str, &str, &str),
        read: impl Fn(&mut Self, Spanned<DeValue<'i>>, &Subject) -> T,
    ) -> Vec<T> {
        let DeValue::Table(outer) = outer.get_mut() else { return Vec::new() };
        let Some(DeValue::Array(items)) = outer.get_mut(list).map(Spanned::get_mut) else {
            return Vec::new();
        };
        let objects =
            mem::replace(items, DeArray::new()).into_iter().enumerate().map(|(index, object)| {
                let name = object.get_ref().get(name).and_then(|name| name.get_ref().as_str());
                // One that is not TOML may have anything in it.
                let name = name.filter(|name| name.bytes().all(|byte| byte.is_ascii_graphic()));
                let name = name.map_or(String::new(), |name| format!(" {name:?}"));
                let dot = if at.path.is_empty() { "" } else { "." };
                let at = Subject {
                    path: format!("{}{dot}{in_message}[{index}]", at.path),
                    shown: format!("{}{in_message}[{index}]{name}: ", at.shown),
                };
                read(self, object, &at)
            });
        objects.collect()
    }

    /// Reads what can be read of an object.
    fn object<T: DeserializeOwned + Default>(
        &mut self,
        mut object: Spanned<DeValue<'_>>,
        Subject { path, shown }: &Subject,
    ) -> T {
        let mut mistakes = 0;
        let mut broken = mem::take(&mut self.values).into_iter();
        loop {
            let (error, field) = match broken.next() {
                Some(error) => match self.take_out_broken(&mut object, &error) {
                    None => {
                        self.values.push(error);
                        continue;
                    }
                    field => (error, field),
                },
                None => match T::deserialize(ValueDeserializer::from(object.clone())) {
                    Ok(object) => return object,
                    Err(error) => {
                        let at = error.span().unwrap_or_default();
                        let field = take_out(&mut object, &|span, _| *span == at);
                        (error, field)
                    }
                },
            };
            let in_field = field.as_ref().map_or(shown.clone(), |it| format!("{shown}{it}: "));
            let (at, cause) = explain(self.text, &error, (shown, &in_field));
            let meant = meant_field(&cause).map(str::to_owned);
            // What is about the object as a whole comes without a place.
            self.mistakes.push((at.or((!path.is_empty()).then_some(object.span().start)), cause));
            mistakes += 1;
            // The object is read again after each.
            let Some(field) = field.filter(|_| mistakes < MOST_MISTAKES) else {
                self.values.extend(broken);
                self.unread.insert(path.clone());
                return T::default();
            };
            for field in [field].into_iter().chain(meant) {
                let (first, rest) = field.split_once('.').unwrap_or((&field, ""));
                let dots = [path, rest].map(|it| if it.is_empty() { "" } else { "." });
                let first = message_name(first, path.is_empty());
                self.unread.insert(format!("{path}{}{first}{}{rest}", dots[0], dots[1]));
            }
        }
    }

    /// Takes out the value that is not TOML, if it is one of the object and ends on its line.
    fn take_out_broken(&self, object: &mut Spanned<DeValue<'_>>, error: &Error) -> Option<String> {
        let at = error.span()?;
        take_out(object, &|span, value| {
            let is_scalar = value.is_some_and(|it| !it.is_table() && !it.is_array());
            let has_it = span.start <= at.start && at.end <= span.end;
            is_scalar && has_it && self.text.get(span.clone()).is_some_and(|it| !it.contains('\n'))
        })
    }
}

/// The field that a misspelt one may be.
fn meant_field(cause: &str) -> Option<&str> {
    let (_, meant) = cause.strip_suffix("`?")?.rsplit_once("did you mean `")?;
    meant.trim_matches(['[', ']']).rsplit('.').next()
}

fn table(table: Spanned<DeTable<'_>>) -> Spanned<DeValue<'_>> {
    let span = table.span();
    Spanned::new(span, DeValue::Table(table.into_inner()))
}

/// Takes the first key or value that is meant out of a table, and returns the name of the field that had it. Of a list only
/// the item is taken out.
fn take_out(
    value: &mut Spanned<DeValue<'_>>,
    is_meant: &impl Fn(&Range<usize>, Option<&DeValue<'_>>) -> bool,
) -> Option<String> {
    let DeValue::Table(table) = value.get_mut() else { return None };
    let mut found = None;
    for (key, value) in table.iter_mut() {
        let name = key.get_ref().to_string();
        if is_meant(&key.span(), None) || is_meant(&value.span(), Some(value.get_ref())) {
            found = Some(name);
            break;
        }
        if let DeValue::Array(items) = value.get_mut() {
            let is_meant =
                |item: &Spanned<DeValue<'_>>| is_meant(&item.span(), Some(item.get_ref()));
            if let Some(index) = items.iter().position(is_meant) {
                let all = mem::replace(items, DeArray::new()).into_iter().enumerate();
                *items = all.filter(|(at, _)| *at != index).map(|(_, item)| item).collect();
                return Some(name);
            }
        } else if let Some(inner) = take_out(value, is_meant) {
            return Some(format!("{name}.{inner}"));
        }
    }
    table.remove(found.as_deref()?);
    found
}
