//! The error of validation: where, in which object, and why.

use std::fmt;

use lb_base::Quoted;

/// The first mistake found: `services[2] "web": port: 70000 is not a port; give 1 to 65535`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{field}: {cause}", Subject(.root.as_deref(), .levels))]
pub struct Invalid {
    /// The object, if a single one was sent; then `levels` are the objects in it.
    root: Option<Box<Root>>,
    /// The objects from the outside in.
    levels: Vec<Level>,
    field: &'static str,
    cause: String,
}

impl Invalid {
    /// The field without names, for programs: `services[2].port`.
    pub fn path(&self) -> String {
        let root = self.root.iter().map(|root| format!("{}.", root.field));
        let levels = self.levels.iter().map(|level| format!("{}[{}].", level.list, level.index));
        root.chain(levels).chain([self.field.to_owned()]).collect()
    }

    /// Rephrases the error for a caller who sent a single object as `field` of a request, if the mistake is in it:
    /// `service "web": port: …`, `service.port`. `place` is its place in the configuration.
    #[must_use]
    pub fn for_single_object(
        mut self,
        place: &[(&str, usize)],
        kind: &'static str,
        field: &'static str,
    ) -> Self {
        let is = |(level, (list, index)): (&Level, &(&str, usize))| {
            level.list == *list && level.index == *index
        };
        if self.levels.len() >= place.len() && self.levels.iter().zip(place).all(is) {
            let name = self.levels.drain(..place.len()).next_back().map(|level| level.name);
            self.root = name.map(|name| Box::new(Root { kind, field, name }));
        }
        self
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Root {
    kind: &'static str,
    field: &'static str,
    name: String,
}

/// An object of a list, with the name it gives itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Level {
    list: &'static str,
    index: usize,
    name: String,
}

struct Subject<'a>(Option<&'a Root>, &'a [Level]);

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Root { kind, name, .. }) = self.0 {
            write!(f, "{kind} {}: ", Quoted(name))?;
        }
        let mut levels = self.1.iter();
        levels.try_for_each(|l| write!(f, "{}[{}] {}: ", l.list, l.index, Quoted(&l.name)))
    }
}

/// An object in the message that is being read.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectPath(Vec<Level>);

impl ObjectPath {
    /// The `index`-th object of a list, with its name.
    pub(super) fn child(&self, list: &'static str, index: usize, name: &str) -> Self {
        let mut levels = Vec::with_capacity(self.0.len() + 1);
        levels.extend_from_slice(&self.0);
        levels.push(Level { list, index, name: name.into() });
        Self(levels)
    }

    /// A mistake in one of its fields.
    pub(super) fn invalid(&self, field: &'static str, cause: impl fmt::Display) -> Invalid {
        Invalid { root: None, levels: self.0.clone(), field, cause: cause.to_string() }
    }
}
