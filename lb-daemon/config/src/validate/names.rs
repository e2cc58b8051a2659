//! Names of one kind of object: well-formed, unique, and what references resolve to.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    Unread,
    invalid::{Invalid, ObjectPath, each},
};
use lb_base::Quoted;
use lb_model::Name;

/// The names of a list, by its order.
pub(super) struct Names<'a> {
    list: &'static str,
    in_order: Vec<(&'a str, Option<Name>)>,
    known: HashMap<Name, usize>,
    /// Those that are no names, or are taken.
    invalid: Invalid,
}

impl<'a> Names<'a> {
    /// Reads the names of a list. Its mistakes are those of the objects.
    pub(super) fn read(list: &'static str, texts: impl Iterator<Item = &'a str>) -> Self {
        let invalid = Invalid::default();
        let mut names = Self { list, in_order: Vec::new(), known: HashMap::new(), invalid };
        for (index, text) in texts.enumerate() {
            let at = ObjectPath::default().child(list, index, text);
            let name = Name::new(text).map_err(|error| at.invalid("name", error));
            let name = names.invalid.value(name).filter(|name| {
                let first = *names.known.entry(name.clone()).or_insert(index);
                if first != index {
                    let cause = format!("is already the name of {list}[{first}]");
                    names.invalid.add(at.invalid("name", cause));
                }
                first == index
            });
            names.in_order.push((text, name));
        }
        names
    }

    /// Makes an object of every message of the list that is right, by name.
    pub(super) fn build<M, T>(
        &self,
        invalid: &mut Invalid,
        messages: &[M],
        object: impl Fn(&ObjectPath, Option<&Name>, &M) -> Result<T, Invalid>,
    ) -> BTreeMap<Name, T> {
        let mut objects = BTreeMap::new();
        invalid.add(self.invalid.clone());
        for (index, ((text, name), message)) in self.in_order.iter().zip(messages).enumerate() {
            let at = ObjectPath::default().child(self.list, index, text);
            let object = invalid.value(object(&at, name.as_ref(), message));
            objects.extend(name.clone().zip(object));
        }
        objects
    }

    /// Whether all of the object with this name was read.
    pub(super) fn is_read(&self, name: &Name, unread: &Unread) -> bool {
        let index = self.known.get(name);
        index.is_none_or(|index| unread.has_all(&format!("{}[{index}]", self.list)))
    }

    /// The name of the object at this place, unless it is none or another object's.
    pub(super) fn at(&self, index: usize) -> Option<&Name> {
        self.in_order.get(index).and_then(|(_, name)| name.as_ref())
    }

    /// The names in their order.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Name> {
        self.in_order.iter().filter_map(|(_, name)| name.as_ref())
    }

    /// The name that a field of another object refers to.
    pub(super) fn resolve(
        &self,
        at: &ObjectPath,
        field: &'static str,
        text: &str,
    ) -> Result<Name, Invalid> {
        if text.is_empty() {
            return Err(at.invalid(field, "must be set"));
        }
        let known = Name::new(text).ok().filter(|name| self.known.contains_key(name));
        known.ok_or_else(|| {
            let cause = format!("{} is not among the {}", Quoted(text), self.kind());
            at.invalid(field, cause).depending_on(format!("{}[].name", self.list))
        })
    }

    /// The names that a list field refers to, each once, in its order.
    pub(super) fn resolve_each(
        &self,
        at: &ObjectPath,
        field: &'static str,
        texts: &[String],
    ) -> Result<Vec<Name>, Invalid> {
        let mut names = BTreeSet::new();
        each(texts.iter().map(|text| {
            let name = self.resolve(at, field, text)?;
            match names.insert(name.clone()) {
                true => Ok(name),
                false => Err(at.invalid(field, format_args!("{name:?} is named twice"))),
            }
        }))
    }

    fn kind(&self) -> String {
        self.list.replace('_', " ")
    }
}
