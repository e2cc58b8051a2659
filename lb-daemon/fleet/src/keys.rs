//! The layout of a fleet's keys. A name holds only `a-z`, `0-9` and `-`, so no part of a key has to be escaped; anything
//! else that stands below the prefix is [`FleetKey::Unknown`], and is left alone.

use lb_model::{
    Name, NamedValue,
    overrides::{Key as OverrideKey, Kind},
};

use lb_pieces::Digest;

/// Where all fleets are.
pub(crate) const ROOT: &str = "/spillway/";

/// The first possible key after all fleets.
pub(crate) const AFTER_ROOT: &str = "/spillway0";

/// A key below a fleet's prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FleetKey {
    /// An immutable piece of a configuration.
    Chunk(Digest),
    /// Empty; written whenever pieces are removed, so that one comparison says that all are still there.
    ChunkRemoved,
    Current,
    History(u64),
    Override(OverrideKey),
    /// What is marked out for a region's balancers, by pool.
    Homes {
        region: Name,
        pool: Name,
    },
    Discovered(Name),
    /// An epoch, by its number.
    Shares(u64),
    /// What a balancer says in an epoch.
    Contribution {
        epoch: u64,
        name: Name,
    },
    Member(Name),
    /// Empty; written whenever a member is removed, so that its `mod_revision` and those of the members say together when the
    /// members changed last.
    MemberRemoved,
    Alive(Name),
    /// Its `mod_revision` is the revision.
    Changed,
    /// No version that is known here writes it.
    Unknown,
}

/// The keys of one fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    prefix: String,
}

/// The fleet that a key below [`ROOT`] is of; `None`: it is of no fleet.
pub(crate) fn fleet_of(key: &[u8]) -> Option<Name> {
    let below = std::str::from_utf8(key).ok()?.strip_prefix(ROOT)?;
    Name::new(below.split_once('/')?.0).ok()
}

impl Keys {
    pub fn new(fleet: &Name) -> Self {
        Self { prefix: format!("{ROOT}{fleet}/") }
    }

    /// Ends with `/`.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The key as etcd has it; `None` for an unknown one, which is never written.
    pub fn text(&self, key: &FleetKey) -> Option<String> {
        let prefix = &self.prefix;
        Some(match key {
            FleetKey::Chunk(digest) => self.chunk(digest),
            FleetKey::ChunkRemoved => self.chunk_removed(),
            FleetKey::Current => self.current(),
            FleetKey::History(number) => self.history(*number),
            FleetKey::Override(key) => self.override_of(key),
            FleetKey::Homes { region, pool } => self.homes(region, pool),
            FleetKey::Discovered(pool) => format!("{prefix}discovered/{pool}"),
            FleetKey::Shares(epoch) => self.epoch(*epoch),
            FleetKey::Contribution { epoch, name } => self.contribution(*epoch, name),
            FleetKey::Member(name) => self.member(name),
            FleetKey::MemberRemoved => self.member_removed(),
            FleetKey::Alive(name) => self.alive(name),
            FleetKey::Changed => self.changed(),
            FleetKey::Unknown => return None,
        })
    }

    /// What a key names. A key with a second spelling, such as `history/01`, is unknown: otherwise two keys would be one
    /// object.
    pub fn parse(&self, key: &[u8]) -> FleetKey {
        let text = std::str::from_utf8(key).ok();
        let parsed = text.and_then(|text| parse_below(text.strip_prefix(&self.prefix)?));
        let is_canonical = |it: &FleetKey| self.text(it).as_deref() == text;
        parsed.filter(is_canonical).unwrap_or(FleetKey::Unknown)
    }

    pub(crate) fn chunk(&self, digest: &Digest) -> String {
        format!("{}chunks/{digest}", self.prefix)
    }

    /// No digest has a dot.
    pub(crate) fn chunk_removed(&self) -> String {
        format!("{}chunks/.removed", self.prefix)
    }

    pub(crate) fn chunks(&self) -> String {
        format!("{}chunks/", self.prefix)
    }

    /// The first possible key after all pieces.
    pub(crate) fn after_chunks(&self) -> String {
        format!("{}chunks0", self.prefix)
    }

    /// The first possible key after all of the fleet: `0` follows `/`.
    pub(crate) fn end(&self) -> String {
        format!("{}0", self.prefix.trim_end_matches('/'))
    }

    pub(crate) fn current(&self) -> String {
        format!("{}config/current", self.prefix)
    }

    pub(crate) fn history(&self, number: u64) -> String {
        format!("{}config/history/{number}", self.prefix)
    }

    pub(crate) fn histories(&self) -> String {
        format!("{}config/history/", self.prefix)
    }

    /// The first possible key after the history.
    pub(crate) fn after_histories(&self) -> String {
        format!("{}config/history0", self.prefix)
    }

    pub(crate) fn changed(&self) -> String {
        format!("{}changed", self.prefix)
    }

    pub(crate) fn all_homes(&self) -> String {
        format!("{}homes/", self.prefix)
    }

    pub(crate) fn homes(&self, region: &Name, pool: &Name) -> String {
        format!("{}homes/{region}/{pool}", self.prefix)
    }

    /// Of all epochs.
    pub(crate) fn shares(&self) -> String {
        format!("{}shares/", self.prefix)
    }

    pub(crate) fn epoch(&self, number: u64) -> String {
        format!("{}shares/{number}", self.prefix)
    }

    /// The first possible key after an epoch and its contributions.
    pub(crate) fn after_epoch(&self, number: u64) -> String {
        format!("{}shares/{number}0", self.prefix)
    }

    pub(crate) fn contribution(&self, epoch: u64, name: &Name) -> String {
        format!("{}shares/{epoch}/{name}", self.prefix)
    }

    pub(crate) fn members(&self) -> String {
        format!("{}members/", self.prefix)
    }

    /// No name has a dot.
    pub(crate) fn member_removed(&self) -> String {
        format!("{}members/.removed", self.prefix)
    }

    pub(crate) fn member(&self, name: &Name) -> String {
        format!("{}members/{name}", self.prefix)
    }

    pub fn alive(&self, name: &Name) -> String {
        format!("{}alive/{name}", self.prefix)
    }

    /// The kind comes first, the target's path after it.
    pub(crate) fn override_of(&self, key: &OverrideKey) -> String {
        let path = key.to_string();
        let kind = key.kind.name();
        let target = path.strip_suffix(kind).and_then(|it| it.strip_suffix('/'));
        format!("{}overrides/{kind}/{}", self.prefix, target.unwrap_or(&path))
    }
}

fn parse_below(text: &str) -> Option<FleetKey> {
    let name = |text: &str| Name::new(text).ok();
    match text.split_once('/') {
        None => (text == "changed").then_some(FleetKey::Changed),
        Some(("chunks", ".removed")) => Some(FleetKey::ChunkRemoved),
        Some(("chunks", digest)) => Digest::parse(digest).map(FleetKey::Chunk),
        Some(("config", "current")) => Some(FleetKey::Current),
        Some(("config", rest)) => {
            let number = rest.strip_prefix("history/")?;
            Some(FleetKey::History(number.parse().ok()?))
        }
        Some(("overrides", rest)) => {
            let (kind, target) = rest.split_once('/')?;
            Kind::from_name(kind)?;
            let key: OverrideKey = format!("{target}/{kind}").parse().ok()?;
            // Those of one balancer alone are no business of etcd.
            (!key.is_local()).then_some(FleetKey::Override(key))
        }
        Some(("homes", rest)) => {
            let (region, pool) = rest.split_once('/')?;
            Some(FleetKey::Homes { region: name(region)?, pool: name(pool)? })
        }
        Some(("discovered", pool)) => name(pool).map(FleetKey::Discovered),
        Some(("shares", rest)) => match rest.split_once('/') {
            None => Some(FleetKey::Shares(rest.parse().ok()?)),
            Some((epoch, it)) => {
                Some(FleetKey::Contribution { epoch: epoch.parse().ok()?, name: name(it)? })
            }
        },
        Some(("members", ".removed")) => Some(FleetKey::MemberRemoved),
        Some(("members", it)) => name(it).map(FleetKey::Member),
        Some(("alive", it)) => name(it).map(FleetKey::Alive),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn keys() -> Keys {
        Keys::new(&Name::new("edge").unwrap())
    }

    #[test]
    fn keys_stand_where_the_design_says() {
        let digest = Digest::new(b"");
        let parse = |text: &str| keys().parse(format!("/spillway/edge/{text}").as_bytes());
        let name = |text: &str| Name::new(text).unwrap();
        assert_eq!(parse(&format!("chunks/{digest}")), FleetKey::Chunk(digest));
        assert_eq!(parse("chunks/.removed"), FleetKey::ChunkRemoved);
        assert_eq!(parse("config/current"), FleetKey::Current);
        assert_eq!(parse("config/history/7"), FleetKey::History(7));
        let key = "pools/web/backends/2001:db8::1/drain".parse().unwrap();
        let target = "overrides/drain/pools/web/backends/2001:db8::1";
        assert_eq!(parse(target), FleetKey::Override(key));
        let homes = FleetKey::Homes { region: name("eu"), pool: name("web") };
        assert_eq!(parse("homes/eu/web"), homes);
        assert_eq!(parse("discovered/web"), FleetKey::Discovered(name("web")));
        assert_eq!(parse("shares/3"), FleetKey::Shares(3));
        let contribution = FleetKey::Contribution { epoch: 3, name: name("lb-1") };
        assert_eq!(parse("shares/3/lb-1"), contribution);
        assert_eq!(parse("members/lb-1"), FleetKey::Member(name("lb-1")));
        assert_eq!(parse("alive/lb-1"), FleetKey::Alive(name("lb-1")));
        assert_eq!(parse("members/.removed"), FleetKey::MemberRemoved);
        assert_eq!(parse("changed"), FleetKey::Changed);
    }

    #[test]
    fn second_spellings_and_strangers_are_unknown() {
        for text in [
            "config/history/07",
            "config/history/+7",
            "overrides/drain/backends/2001:DB8::1",
            "overrides/drain/backends/1.2.3.4/drain",
            "overrides/drain/local/backends/1.2.3.4",
            "members/LB",
            "members/a/b",
            "homes/eu",
            "shares/03",
            "shares/03/lb-1",
            "shares/3/",
            "shares/3/a/b",
            "changed/",
            "",
        ] {
            let key = format!("/spillway/edge/{text}");
            assert_eq!(keys().parse(key.as_bytes()), FleetKey::Unknown, "{text}");
        }
        assert_eq!(keys().parse(b"/spillway/edge2/changed"), FleetKey::Unknown);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_key_with_one_spelling(below in prop::collection::vec(any::<u8>(), 0..80)) {
            let key = [keys().prefix().as_bytes(), &below].concat();
            let parsed = keys().parse(&key);
            let text = keys().text(&parsed).map(String::into_bytes);
            prop_assert!(parsed == FleetKey::Unknown || text == Some(key));
        }

        #[test]
        fn any_words_are_a_key_with_one_spelling(
            words in prop::collection::vec(
                "(chunks|config|history|shares|members|[0-9]|overrides|drain|scale|pools|regions|homes|[a-z0-9.:-]{0,9})", 0..7),
        ) {
            let key = format!("{}{}", keys().prefix(), words.join("/"));
            let parsed = keys().parse(key.as_bytes());
            prop_assert!(parsed == FleetKey::Unknown || keys().text(&parsed) == Some(key));
        }
    }
}
