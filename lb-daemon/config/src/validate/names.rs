//! Names of one kind of object: well-formed, unique, and what references resolve to.

use std::collections::{BTreeMap, HashMap};

use super::invalid::{Invalid, ObjectPath};
use lb_base::Quoted;
use lb_model::Name;

/// The names of a list, by its order.
pub(super) struct Names {
    list: &'static str,
    in_order: Vec<Name>,
    known: HashMap<Name, usize>,
}

impl Names {
    /// Reads the names of a list.
    pub(super) fn read<'a>(
        list: &'static str,
        texts: impl Iterator<Item = &'a str>,
    ) -> Result<Self, Invalid> {
        let mut names = Self { list, in_order: Vec::new(), known: HashMap::new() };
        for (index, text) in texts.enumerate() {
            let at = ObjectPath::default().child(list, index, text);
            let name = Name::new(text).map_err(|error| at.invalid("name", error))?;
            if let Some(first) = names.known.insert(name.clone(), index) {
                return Err(
                    at.invalid("name", format_args!("is already the name of {list}[{first}]"))
                );
            }
            names.in_order.push(name);
        }
        Ok(names)
    }

    /// Makes an object of every message of the list, by name.
    pub(super) fn build<M, T>(
        &self,
        messages: &[M],
        object: impl Fn(&ObjectPath, &Name, &M) -> Result<T, Invalid>,
    ) -> Result<BTreeMap<Name, T>, Invalid> {
        let each = self.in_order.iter().zip(messages).enumerate();
        each.map(|(index, (name, message))| {
            let at = ObjectPath::default().child(self.list, index, name.as_str());
            Ok((name.clone(), object(&at, name, message)?))
        })
        .collect()
    }

    /// The names in their order.
    pub(super) fn in_order(&self) -> impl Iterator<Item = &Name> {
        self.in_order.iter()
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
            at.invalid(field, format_args!("{} is not among the {}", Quoted(text), self.kind()))
        })
    }

    /// The names that a list field refers to, each once, in its order.
    pub(super) fn resolve_each(
        &self,
        at: &ObjectPath,
        field: &'static str,
        texts: &[String],
    ) -> Result<Vec<Name>, Invalid> {
        let mut names = Vec::with_capacity(texts.len());
        for text in texts {
            let name = self.resolve(at, field, text)?;
            if names.contains(&name) {
                return Err(at.invalid(field, format_args!("{name:?} is named twice")));
            }
            names.push(name);
        }
        Ok(names)
    }

    fn kind(&self) -> String {
        self.list.replace('_', " ")
    }
}
