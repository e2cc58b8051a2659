//! Who makes a call and what the caller may do: roles, and the names in certificates that roles are given to.

mod quota;
mod scope;

use std::{collections::BTreeMap, fmt, net::SocketAddr, str::FromStr};

use lb_model::Actor;

pub use quota::{Lease, Quota, QuotaExceeded, source_of};
pub use scope::{PatternError, Scope};

/// What a caller may do. Each role includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// May read.
    Viewer,
    /// May also check changes without making them (dry runs).
    Plan,
    /// May set and remove overrides, change weight, administrative state and limit of existing backends, capture packets, and
    /// probe VIPs.
    Operator,
    /// May change everything.
    Admin,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a role; give viewer, plan, operator or admin")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        match text {
            "viewer" => Ok(Self::Viewer),
            "plan" => Ok(Self::Plan),
            "operator" => Ok(Self::Operator),
            "admin" => Ok(Self::Admin),
            _ => Err(UnknownRole(text.into())),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Viewer => "viewer",
            Self::Plan => "plan",
            Self::Operator => "operator",
            Self::Admin => "admin",
        })
    }
}

/// The client at the other end of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer {
    pub actor: Actor,
    /// `None`: it may do nothing.
    pub role: Option<Role>,
    /// What it may change with that role; `None`: everything.
    pub scope: Option<Scope>,
    /// Addresses of a TLS connection; `None`: the connection came through the unix socket.
    pub connection: Option<TcpEnds>,
}

impl Peer {
    /// Whether it may see the hash key: with it one can choose connections that all go to one backend.
    pub fn sees_hash_key(&self) -> bool {
        self.role == Some(Role::Admin) && self.scope.is_none()
    }
}

/// The two ends of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpEnds {
    pub client: SocketAddr,
    pub daemon: SocketAddr,
}

/// Limits of what is shown of a certificate without a role: names, and characters of each.
const MAX_NAMES: usize = 3;
const MAX_NAME_LENGTH: usize = 100;

/// A name in a certificate, and the role of its client: `ops.example=operator`, or `web.example=operator:web-*` for a
/// [`Scope`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    name: String,
    grant: Grant,
}

/// What a name may do.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Grant {
    role: Role,
    scope: Option<Scope>,
}

/// Why a text is not a [`Client`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// It has no `=`, or nothing before it.
    #[error(
        "must be NAME=ROLE, NAME=ROLE:POOLS or NAME=ROLE:POOLS@ADDRESSES, a DNS name or URI in a certificate and its role"
    )]
    Form,
    /// The part after `=` is not a role.
    #[error(transparent)]
    Role(#[from] UnknownRole),
    /// The part after the role is no [`Scope`].
    #[error(transparent)]
    Scope(#[from] PatternError),
    /// A viewer changes nothing.
    #[error("a viewer may read everything; only plan, operator and admin can be for some pools")]
    ViewerOfPools,
}

impl FromStr for Client {
    type Err = ClientError;

    fn from_str(text: &str) -> Result<Self, ClientError> {
        // A URI may contain '=', a role does not.
        let (name, role) = text.rsplit_once('=').ok_or(ClientError::Form)?;
        if name.is_empty() {
            return Err(ClientError::Form);
        }
        let (role, scope) = match role.split_once(':') {
            Some((role, scope)) => (role.parse()?, Some(scope.parse()?)),
            None => (role.parse()?, None),
        };
        if role == Role::Viewer && scope.is_some() {
            return Err(ClientError::ViewerOfPools);
        }
        Ok(Self { name: normalize(name), grant: Grant { role, scope } })
    }
}

/// Roles by names in certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clients(BTreeMap<String, Grant>);

impl Clients {
    /// The peer whose certificate has these names. If several have a role, the highest one counts, and of equal ones that
    /// for all pools.
    pub fn peer(&self, names: &[String]) -> Peer {
        let listed = names.iter().filter_map(|name| Some((self.0.get(&normalize(name))?, name)));
        let (grant, name) = match listed.max_by_key(|(it, _)| (it.role, it.scope.is_none())) {
            Some((grant, name)) => (Some(grant.clone()), name.clone()),
            None if names.is_empty() => (None, "without a DNS name or URI".into()),
            None => (None, shorten(names)),
        };
        let (role, scope) = grant.map_or((None, None), |it| (Some(it.role), it.scope));
        Peer { actor: Actor::Certificate(name), role, scope, connection: None }
    }
}

impl FromIterator<Client> for Clients {
    /// A name that is given twice has the role that is given last.
    fn from_iter<I: IntoIterator<Item = Client>>(clients: I) -> Self {
        Self(clients.into_iter().map(|client| (client.name, client.grant)).collect())
    }
}

/// Shortens names without a role, so that they fit a line whatever an authority has signed.
fn shorten(names: &[String]) -> String {
    let short = |name: &String| name.chars().take(MAX_NAME_LENGTH).collect::<String>();
    let shown = names.iter().take(MAX_NAMES).map(|name| short(name).escape_debug().to_string());
    let mut shown: Vec<_> = shown.collect();
    if names.len() > MAX_NAMES {
        shown.push(format!("{} more", names.len() - MAX_NAMES));
    }
    shown.join(", ")
}

/// Host names are case-insensitive (RFC 4343), URIs are not.
fn normalize(name: &str) -> String {
    if name.contains("://") { name.to_owned() } else { name.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients(list: &[&str]) -> Clients {
        list.iter().map(|text| text.parse::<Client>().unwrap()).collect()
    }

    fn role(clients: &Clients, names: &[&str]) -> Option<Role> {
        clients.peer(&names.iter().map(ToString::to_string).collect::<Vec<_>>()).role
    }

    #[test]
    fn a_certificate_has_the_role_of_its_name_and_without_one_none() {
        let clients =
            clients(&["Eye.example=viewer", "hand.example=operator", "spiffe://x/a=b?=admin"]);
        assert_eq!(role(&clients, &["eye.EXAMPLE"]), Some(Role::Viewer));
        assert_eq!(role(&clients, &["eye.example", "hand.example"]), Some(Role::Operator));
        assert_eq!(role(&clients, &["spiffe://x/a=b?"]), Some(Role::Admin));
        for none in [&["spiffe://X/a=b?"][..], &["example"], &["eye.example."], &["*.example"], &[]]
        {
            assert_eq!(role(&clients, none), None, "{none:?}");
        }
        let peer = clients.peer(&["eye.example".into(), "hand.example".into()]);
        assert_eq!(peer.actor.to_string(), "certificate hand.example");
    }

    #[test]
    fn a_role_may_be_for_some_pools() {
        let clients = clients(&[
            "web.example=operator:web-*,api",
            "all.example=operator",
            "v6.example=admin:*@2001:db8::/64",
            "spiffe://x/ci=plan",
        ]);
        let of = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            let Peer { role, scope, .. } = clients.peer(&names);
            (role, scope.map(|scope| scope.to_string()))
        };
        let operator = Some(Role::Operator);
        assert_eq!(of(&["web.example"]), (operator, Some("web-*,api".into())));
        assert_eq!(of(&["web.example", "all.example"]), (operator, None));
        let v6 = Some("* with services at 2001:db8::/64".into());
        assert_eq!(of(&["v6.example"]), (Some(Role::Admin), v6));
        assert_eq!(of(&["spiffe://x/ci"]), (Some(Role::Plan), None));
        let admin = Peer { role: Some(Role::Admin), ..Peer::default() };
        assert!(admin.sees_hash_key());
        assert!(!Peer { scope: Some("*".parse().unwrap()), ..admin }.sees_hash_key());
        assert!(!clients.peer(&["all.example".into()]).sees_hash_key());
    }

    #[test]
    fn names_without_a_role_fit_a_line() {
        let names = ["a\nb".to_owned(), "x".repeat(4000), "c".into(), "d".into(), "e".into()];
        let expected = format!("certificate a\\nb, {}, c, 2 more", "x".repeat(100));
        assert_eq!(clients(&[]).peer(&names).actor.to_string(), expected);
    }

    #[test]
    fn what_is_no_client_is_refused() {
        let refusal = |text: &str| text.parse::<Client>().unwrap_err().to_string();
        assert!(refusal("eye.example").starts_with("must be NAME=ROLE"));
        assert!(refusal("=viewer").starts_with("must be NAME=ROLE"));
        assert!(refusal("a=viewer:web").starts_with("a viewer may read everything"));
        assert!(refusal("a=operator:").starts_with("a pattern of pools is empty"));
        assert_eq!(
            refusal("a=root"),
            "\"root\" is not a role; give viewer, plan, operator or admin"
        );
        assert_eq!(
            refusal("a=Admin"),
            "\"Admin\" is not a role; give viewer, plan, operator or admin"
        );
    }
}
