//! The values of keys: JSON, each with the version of its format.
//!
//! A field that is not known here is kept, and written back when the value is rewritten: a balancer must not drop what a
//! newer one wrote. A change that an older balancer must not ignore raises the version instead, and is refused as a whole.
//! Only fields at the top of a value are kept this way, so new ones are added there. What is inside of them refuses unknown
//! fields.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
    time::{Duration, SystemTime},
};

use lb_model::{
    Name,
    overrides::{Action, Key, Moment, Override},
    plan::MarkedOut,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use lb_pieces::Digest;
use lb_sharing::epoch::Statement;

use crate::births::owners_by_birth;

/// The version that this program writes, and the newest that it reads.
const FORMAT: u32 = 1;

/// A value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    #[error(
        "{key}: has format {format}, and this version reads up to {FORMAT}: upgrade this balancer"
    )]
    Newer { key: String, format: u32 },
    #[error("{key}: is malformed: {cause}")]
    Malformed { key: String, cause: String },
    /// It can be read, but what it refers to cannot be used.
    #[error("{key}: is damaged: {cause}")]
    Damaged { key: String, cause: String },
}

/// A value, with the fields of it that are not known here.
#[derive(Clone, Debug, PartialEq)]
pub struct Document<T> {
    pub body: T,
    unknown: Map<String, Value>,
}

impl<T> From<T> for Document<T> {
    fn from(body: T) -> Self {
        Self { body, unknown: Map::new() }
    }
}

#[derive(Serialize, Deserialize)]
struct Stored<T> {
    format: u32,
    #[serde(flatten)]
    body: T,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

#[derive(Deserialize)]
struct Version {
    format: u32,
}

impl<T> Document<T> {
    /// The value that replaces this one: what is not known here stays.
    #[must_use]
    pub fn replaced_by(&self, body: T) -> Self {
        Self { body, unknown: self.unknown.clone() }
    }
}

impl<T: Serialize + DeserializeOwned + Clone> Document<T> {
    /// # Errors
    /// [`DocumentError`]; it names `key`.
    pub fn read(key: &[u8], value: &[u8]) -> Result<Self, DocumentError> {
        let key = || String::from_utf8_lossy(key).into_owned();
        let malformed = |error: serde_json::Error| DocumentError::Malformed {
            key: key(),
            cause: error.to_string(),
        };
        let Version { format } = serde_json::from_slice(value).map_err(malformed)?;
        if format > FORMAT {
            return Err(DocumentError::Newer { key: key(), format });
        }
        if format == 0 {
            return Err(DocumentError::Malformed {
                key: key(),
                cause: "there is no format 0".into(),
            });
        }
        let Stored { body, unknown, .. } = serde_json::from_slice(value).map_err(malformed)?;
        Ok(Self { body, unknown })
    }

    /// # Errors
    /// [`DocumentError`], which names `key`: a body that JSON cannot hold, such as a map whose keys are no texts.
    pub fn write(&self, key: &str) -> Result<Vec<u8>, DocumentError> {
        let stored =
            Stored { format: FORMAT, body: self.body.clone(), unknown: self.unknown.clone() };
        serde_json::to_vec(&stored)
            .map_err(|error| DocumentError::Malformed { key: key.into(), cause: error.to_string() })
    }
}

/// Milliseconds since 1970: of the wall clock, because balancers have no other clock in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WallTime(u64);

impl From<SystemTime> for WallTime {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

impl WallTime {
    pub fn to_system_time(self) -> SystemTime {
        let since = Duration::from_millis(self.0);
        SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH)
    }

    /// How long ago it was at `now`; zero if it is yet to come.
    pub fn age(self, now: Self) -> Duration {
        Duration::from_millis(now.0.saturating_sub(self.0))
    }
}

/// The value of `config/current` and of `config/history/<n>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Generation {
    pub number: u64,
    /// Digest of the value of the generation before; `None` for the first.
    pub parent: Option<Digest>,
    /// Random, different for each attempt to commit: tells whose attempt it was when a reply is lost.
    pub attempt: String,
    /// One after the other they are the configuration.
    pub pieces: Vec<Digest>,
    /// Bytes of the configuration.
    pub size: u64,
    /// Balancers that were alive: they own the groups that are born in this generation.
    pub live: BTreeSet<Name>,
    /// By pool and region, the generation in which a group was created.
    pub births: BTreeMap<Name, BTreeMap<Name, u64>>,
    /// By generation that created a group which is still there, the balancers that were alive then.
    #[serde(default, with = "owners_by_birth")]
    pub owners: BTreeMap<u64, BTreeSet<Name>>,
    /// The last generation that an operator decided on, whatever was before: this one, or one that it descends from; 0: none.
    #[serde(default)]
    pub restored: u64,
    /// Longest time, in milliseconds, for which a change of home settles in this configuration: several settle times, if
    /// changes go on ([`Settling::LONGEST`](lb_model::remap::Settling::LONGEST)). So long its history is kept.
    pub settles_ms: u64,
    pub author: String,
    pub reason: String,
    pub applied_at: WallTime,
}

impl Generation {
    /// Longest time for which a change of home settles in its configuration.
    pub const fn settles(&self) -> Duration {
        Duration::from_millis(self.settles_ms)
    }
}

/// The value of `overrides/<kind>/<name>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedOverride {
    pub action: Action,
    pub author: String,
    /// Why; empty: no reason was given.
    pub reason: String,
    pub set_at: WallTime,
    /// From when on any balancer may delete it.
    pub until: Option<WallTime>,
}

impl Document<SharedOverride> {
    /// # Errors
    /// The override is of another kind than its key, or its target does not allow it. `text` is the key in etcd.
    pub(crate) fn check(&self, key: &Key, text: &[u8]) -> Result<(), DocumentError> {
        let action = self.body.action;
        let cause = match action.check(&key.target) {
            Err(error) => error.to_string(),
            Ok(()) if action.kind() != key.kind => format!("its action is {action}"),
            Ok(()) => return Ok(()),
        };
        Err(DocumentError::Malformed { key: String::from_utf8_lossy(text).into_owned(), cause })
    }
}

/// The value of `homes/<region>/<pool>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Homes {
    pub now: MarkedOut,
    pub before: MarkedOut,
    pub since: WallTime,
    pub generation: u64,
}

/// A backend that a discoverer found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiscoveredBackend {
    pub region: Name,
    /// `None`: that of the pool.
    pub weight: Option<u32>,
    /// It takes no new connections.
    pub is_draining: bool,
}

/// The value of `discovered/<pool>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discovered {
    pub backends: BTreeMap<IpAddr, DiscoveredBackend>,
}

/// The value of `members/<name>`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetMember {
    /// Where its peers reach it.
    pub address: SocketAddr,
    pub region: Option<Name>,
    pub incarnation: u64,
    /// The last epoch that it is known to have the result of: the one in which it joined, or in which it gave up what it
    /// owned after it had been forgotten.
    #[serde(default)]
    pub epoch: u64,
    /// Version of the program at its last start. Empty: one that did not say.
    #[serde(default)]
    pub version: String,
    /// The schema revision of configurations that its program understood at its last start.
    #[serde(default = "first_schema")]
    pub schema: u32,
}

/// What a program understands that does not say it.
pub(crate) const fn first_schema() -> u32 {
    1
}

/// The value of `shares/<epoch>`. What each balancer says in the epoch has a key of its own, whose value is a
/// [`Contribution`](lb_sharing::epoch::Contribution).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedEpoch {
    /// That was in force when the epoch was opened; 0: none.
    pub generation: u64,
    pub forgotten: BTreeSet<Name>,
    pub closed: bool,
}

/// The value of `alive/<name>`, which a lease holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Liveness {
    /// Of the program.
    pub version: String,
    /// The schema revision of configurations that the program understands.
    #[serde(default = "first_schema")]
    pub schema: u32,
    /// The revision that it has in force.
    pub revision: i64,
    /// The generation that it has in force; 0: none.
    #[serde(default)]
    pub generation: u64,
    /// The cluster of etcd that `revision` is of, if it follows that without a conflict; 0: it follows none.
    #[serde(default)]
    pub follows: u64,
    /// Whether it has everything in force that it needs to take traffic.
    #[serde(default)]
    pub ready: bool,
    /// Why it does not; empty: it does.
    #[serde(default)]
    pub not_ready: String,
    /// One digest of all its tables; empty: not known. A balancer that differs is asked for those of its pools: here they
    /// would be sent to each balancer after each change.
    #[serde(default)]
    pub digest: String,
    pub conditions: BTreeSet<String>,
    /// What it would mark out by its own checks, by pool.
    #[serde(default)]
    pub out: BTreeMap<Name, MarkedOut>,
    /// What it says of the others, for those that do not hear its messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<Statement>,
}

impl SharedOverride {
    /// As a balancer puts it in force. `now` is both clocks at one moment.
    pub fn to_override(&self, now: Moment) -> Override {
        // The wall clock as it was set, whatever the moment: else each look would find another override.
        let until = self.until.and_then(|until| {
            let left = until.0.saturating_sub(WallTime::from(now.wall).0);
            let end = now.after(Duration::from_millis(left))?;
            Some(Moment { wall: until.to_system_time(), ..end })
        });
        Override {
            action: self.action,
            who: self.author.clone(),
            reason: self.reason.clone(),
            set_at: self.set_at.to_system_time(),
            until,
            absent_since: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use lb_sharing::{GroupKey, Parts, epoch::Contribution};

    use super::*;

    fn read(value: &str) -> Result<Document<FleetMember>, DocumentError> {
        Document::read(b"members/a", value.as_bytes())
    }

    #[test]
    fn fields_of_a_newer_version_survive_a_rewrite() {
        let value = r#"{"format":1,"address":"192.0.2.1:7","region":null,"incarnation":4,"rack":{"row":9}}"#;
        let mut member = read(value).unwrap();
        member.body.incarnation = 5;
        let written = String::from_utf8(member.write("members/a").unwrap()).unwrap();
        assert_eq!(written, value.replace(":4,", ":5,\"epoch\":0,\"version\":\"\",\"schema\":1,"));
    }

    /// Where an unknown field would not be kept, the value is refused, so that it is not written again without it.
    #[test]
    fn unknown_fields_inside_of_others_are_refused() {
        let homes = r#"{"format":1,"now":{"members":[],"regions":[]},"before":{"members":[],"regions":[],"x":1},"since":7,"generation":3}"#;
        let error = Document::<Homes>::read(b"homes/eu/web", homes.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("unknown field `x`"), "{error}");
        let kept = homes.replace(r#","x":1}"#, "}").replace(r#""since""#, r#""y":1,"since""#);
        let homes = Document::<Homes>::read(b"homes/eu/web", kept.as_bytes()).unwrap();
        let written = String::from_utf8(homes.write("homes/eu/web").unwrap()).unwrap();
        assert!(written.contains(r#""y":1"#), "{written}");
        let found = r#"{"format":1,"backends":{"192.0.2.1":{"region":"eu","weight":1,"is_draining":false,"x":1}}}"#;
        let error = Document::<Discovered>::read(b"discovered/web", found.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("unknown field `x`"), "{error}");
    }

    fn rewritten<T: Serialize + DeserializeOwned + Clone>(body: &T) -> T {
        let written = Document::from(body.clone()).write("x").unwrap();
        Document::read(b"x", &written).unwrap().body
    }

    #[test]
    fn each_value_is_read_as_it_was_written() {
        let name = |text: &str| Name::new(text).unwrap();
        let addresses: [IpAddr; 2] = ["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        let out =
            MarkedOut { members: BTreeSet::from(addresses), regions: BTreeSet::from([name("eu")]) };
        let homes =
            Homes { now: out, before: MarkedOut::default(), since: WallTime(7), generation: 3 };
        assert_eq!(rewritten(&homes), homes);
        let backend =
            DiscoveredBackend { region: name("eu"), weight: Some(u32::MAX), is_draining: true };
        let backends = addresses.map(|address| (address, backend.clone()));
        let discovered = Discovered { backends: backends.into() };
        assert_eq!(rewritten(&discovered), discovered);
        let liveness = Liveness {
            version: "1.2".into(),
            schema: u32::MAX,
            revision: i64::MAX,
            digest: "0a".into(),
            conditions: BTreeSet::from(["a: b".into()]),
            generation: u64::MAX,
            follows: u64::MAX,
            ready: true,
            not_ready: "x".into(),
            out: BTreeMap::from([(name("web"), homes.now.clone())]),
            statement: Some(Statement { epoch: 3, silent: BTreeSet::from([name("lb-2")]) }),
        };
        assert_eq!(rewritten(&liveness), liveness);
        let generation = Generation {
            number: u64::MAX,
            parent: Some(Digest::new(b"")),
            attempt: "0f".into(),
            pieces: vec![Digest::new(b"1"); 2],
            size: 2,
            live: BTreeSet::from([name("lb-1")]),
            births: BTreeMap::from([(name("web"), BTreeMap::from([(name("eu"), 4)]))]),
            owners: BTreeMap::from([(4, BTreeSet::from([name("lb-1")]))]),
            restored: 3,
            settles_ms: u64::MAX,
            author: "alice".into(),
            reason: "\"quoted\"".into(),
            applied_at: WallTime(u64::MAX),
        };
        assert_eq!(rewritten(&generation), generation);
        let group = GroupKey { pool: name("web"), region: name("eu"), birth: u64::MAX };
        let contribution =
            Contribution { owned: BTreeMap::from([(group, Parts::WHOLE)]), pairs: BTreeMap::new() };
        assert_eq!(rewritten(&contribution), contribution);
    }

    #[test]
    fn a_timed_override_is_the_same_whenever_it_is_read() {
        let (author, reason) = ("alice".into(), String::new());
        let drain = SharedOverride {
            action: Action::Drain,
            author,
            reason,
            set_at: WallTime(1),
            until: Some(WallTime(60_000)),
        };
        let start = std::time::Instant::now();
        let at = |micros: u64| Moment {
            wall: SystemTime::UNIX_EPOCH + Duration::from_micros(micros),
            instant: start + Duration::from_micros(micros),
        };
        for micros in [0, 1, 999, 1_000, 20_000_499, 59_999_999, 60_000_000, 90_000_000] {
            let until = drain.to_override(at(micros)).until.unwrap();
            assert_eq!(until.wall, at(60_000_000).wall, "read after {micros} µs");
            let end = start + Duration::from_micros(micros.max(60_000_000));
            let late = until.instant.saturating_duration_since(end);
            let early = end.saturating_duration_since(until.instant);
            assert!(late.max(early) <= Duration::from_millis(1), "read after {micros} µs");
        }
    }

    #[test]
    fn newer_and_malformed_values_name_their_key() {
        let error = |value: &str| read(value).unwrap_err().to_string();
        assert_eq!(
            error(r#"{"format":2,"address":7}"#),
            "members/a: has format 2, and this version reads up to 1: upgrade this balancer"
        );
        for value in
            ["", "[]", "{}", "\0", r#"{"format":1}"#, r#"{"format":0}"#, r#"{"format":-1}"#]
        {
            assert!(error(value).starts_with("members/a: is malformed: "), "{value}");
        }
    }
}
