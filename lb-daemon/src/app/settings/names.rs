//! Settings by their names: which of them a reload takes, and what a failure calls them.

use std::collections::BTreeSet;

use clap::{ArgMatches, Command, parser::ValueSource};

use super::merge::settings;
use crate::app::{Failure, arguments::Role};

/// Settings of the balancer that a reload brings into force. docs/settings.md, docs/install.md and the comments of
/// packaging/etc say the same, which a test compares.
const BALANCER: &[&str] = &["apply", "tls-client"];

/// Settings of the receiver that a reload brings into force; likewise.
const RECEIVER: &[&str] = &["allow-source", "gue-port", "tunnel-endpoint", "vip"];

/// Names of the settings that a reload brings into force; all others wait for the next start.
pub(in crate::app) fn reloaded(role: &Role) -> &'static [&'static str] {
    match role {
        Role::Balancer(_) => BALANCER,
        Role::Receiver(_) => RECEIVER,
    }
}

/// Settings that a failure calls by their names in the settings file: where there is one, all that the command line
/// does not give, since the file is where to change them.
#[derive(Clone, Debug, Default)]
pub(in crate::app) struct Names(BTreeSet<String>);

impl Names {
    /// The names of a role's settings; `given` is what the command line alone says.
    pub(super) fn new(relaxed: &Command, role: &str, given: &ArgMatches) -> Self {
        if !given.contains_id("config") {
            return Self::default();
        }
        let in_the_file = settings(relaxed, role).filter(|argument| {
            given.value_source(argument.get_id().as_str()) != Some(ValueSource::CommandLine)
        });
        Self(in_the_file.filter_map(|argument| argument.get_long()).map(str::to_owned).collect())
    }

    /// A failure with these names, where it has the flags'.
    pub(in crate::app) fn spell(&self, failure: Failure) -> Failure {
        failure.reworded(|text| self.without_dashes(text))
    }

    fn without_dashes(&self, text: &str) -> String {
        let mut parts = text.split("--");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |before, part| {
            let name = part.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).next();
            let is_setting = name.is_some_and(|name| self.0.contains(name));
            before + if is_setting { "" } else { "--" } + part
        })
    }
}
