use std::{collections::BTreeMap, str::FromStr};

use lb_control::command::Actor;

use super::{Peer, Role, UnknownRole};

/// Names of a certificate that are shown where none is listed, and characters of each.
const MOST: usize = 3;
const LONGEST: usize = 100;

/// A name of a certificate, and the role of who has it: `ops.example=operator`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    name: String,
    role: Role,
}

/// Why a text names no client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// It has no `=`, or nothing before it.
    #[error("must be NAME=ROLE, a DNS name or URI of a certificate and its role")]
    Form,
    /// What stands after it.
    #[error(transparent)]
    Role(#[from] UnknownRole),
}

impl FromStr for Client {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Self, ClientError> {
        // A URI may have a '=', a role has none.
        let (name, role) = text.rsplit_once('=').ok_or(ClientError::Form)?;
        if name.is_empty() {
            return Err(ClientError::Form);
        }
        Ok(Self { name: spelt(name), role: role.parse()? })
    }
}

/// Everybody who is let in over TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clients(BTreeMap<String, Role>);

impl Clients {
    /// Who has a certificate with these names. Of several that are listed the one with most rights
    /// counts; without any they may do nothing.
    pub fn peer(&self, names: &[String]) -> Peer {
        let listed = names.iter().filter_map(|name| Some((self.0.get(&spelt(name))?, name)));
        let (role, name) = match listed.max_by_key(|(role, _)| **role) {
            Some((role, name)) => (Some(*role), name.clone()),
            None if names.is_empty() => (None, "without a DNS name or URI".into()),
            None => (None, unlisted(names)),
        };
        Peer { actor: Actor::Certificate(name), role, connection: None }
    }
}

impl FromIterator<Client> for Clients {
    /// A name that is given twice has the role that is given last.
    fn from_iter<I: IntoIterator<Item = Client>>(clients: I) -> Self {
        Self(clients.into_iter().map(|client| (client.name, client.role)).collect())
    }
}

/// Names that nobody listed, so that they fit a line whatever an authority has signed.
fn unlisted(names: &[String]) -> String {
    let short = |name: &String| name.chars().take(LONGEST).collect::<String>();
    let shown = names.iter().take(MOST).map(|name| short(name).escape_debug().to_string());
    let mut shown: Vec<_> = shown.collect();
    if names.len() > MOST {
        shown.push(format!("{} more", names.len() - MOST));
    }
    shown.join(", ")
}

/// Names of hosts know no case, RFC 4343; URIs do.
fn spelt(name: &str) -> String {
    if name.contains("://") { name.to_owned() } else { name.to_ascii_lowercase() }
}
