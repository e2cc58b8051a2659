//! What is wrong with a configuration: where, in which object, and why.

use std::fmt;

/// The first mistake found: `services[2] "web": port: 70000 is not a port; give 1 to 65535`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject}{field}: {cause}")]
pub struct Invalid {
    /// The objects from the outside in, each with its name and followed by `": "`.
    subject: String,
    /// The objects' places and names without the field, `pools[0].backends[1].`.
    prefix: String,
    field: &'static str,
    cause: String,
}

impl Invalid {
    /// The field without names, for programs: `services[2].port`.
    pub fn path(&self) -> String {
        format!("{}{}", self.prefix, self.field)
    }
}

/// An object in the message that is being read.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    subject: String,
    prefix: String,
}

impl Place {
    /// The `index`-th object of a list, with the name it gives itself.
    pub(super) fn child(&self, list: &str, index: usize, name: &str) -> Self {
        Self {
            subject: format!("{}{list}[{index}] {}: ", self.subject, Quoted(name)),
            prefix: format!("{}{list}[{index}].", self.prefix),
        }
    }

    /// A mistake in one of its fields.
    pub(super) fn wrong(&self, field: &'static str, cause: impl fmt::Display) -> Invalid {
        let Self { subject, prefix } = self.clone();
        Invalid { subject, prefix, field, cause: cause.to_string() }
    }
}

/// A text of the caller's: escaped, and shortened where it would drown the message.
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 70;
        match self.0.char_indices().nth(LONGEST) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
        }
    }
}
