//! Balancers of several versions in one fleet: nothing is committed that one of them does not understand.

use lb_control::command::FleetRefusal;
use lb_fleet::reader::{Snapshot, Understood};
use lb_model::Name;
use lb_store::{Revision, SchemaNeed};

/// Balancers that a refusal names.
const MOST_NAMED: usize = 3;

/// The schema revision of configurations that this program understands, as the fleet's documents have it.
pub(super) fn own_schema() -> u32 {
    Revision::CURRENT.number().unsigned_abs()
}

/// Checks that every member understands a configuration. One that is not alive may be started again with what it was.
///
/// # Errors
/// [`FleetRefusal::HeldBack`] names those that do not.
pub(super) fn check(
    need: &SchemaNeed,
    snapshot: &Snapshot,
    own: &Name,
) -> Result<(), FleetRefusal> {
    let needed = need.revision.number().unsigned_abs();
    let members = snapshot.understood().into_iter();
    let older: Vec<_> =
        members.filter(|(name, it)| name != own && it.schema < needed).map(describe).collect();
    if older.is_empty() {
        return Ok(());
    }
    let what = need.of.as_deref().unwrap_or("the configuration");
    let mut named = older[..older.len().min(MOST_NAMED)].join(", ");
    if older.len() > MOST_NAMED {
        named += &format!(", and {} more", older.len() - MOST_NAMED);
    }
    Err(FleetRefusal::HeldBack(format!(
        "{what} needs schema revision {needed} at every balancer of the fleet, and older ones are in it: {named}"
    )))
}

/// `lb-3 (version 0.1.0, schema revision 1, not alive)`
fn describe((name, it): (Name, Understood)) -> String {
    let version = match &*it.version {
        "" => "unknown version".into(),
        version => format!("version {version}"),
    };
    let alive = if it.is_alive { "" } else { ", not alive" };
    format!("{name} ({version}, schema revision {}{alive})", it.schema)
}

/// Why this balancer must not change what the fleet shares, and is not ready when it starts: it is older than something of
/// it, which it would lose. `None`: it is not.
pub(super) fn newer_value(snapshot: &Snapshot) -> Option<String> {
    let mut newer = snapshot.newer_values();
    let first = newer.next()?;
    Some(match newer.count() {
        0 => first.to_string(),
        more => format!("{first}; and {more} more"),
    })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use lb_fleet::{
        Document,
        documents::{FleetMember, Liveness},
        reader::Versioned,
    };

    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn versioned<T>(body: T) -> Versioned<T>
    where
        Document<T>: From<T>,
    {
        Versioned { document: body.into(), mod_revision: 1 }
    }

    /// Members that understood a schema at their last start, and what those that are alive understand now.
    fn snapshot(members: &[(&str, u32)], alive: &[(&str, u32)]) -> Snapshot {
        let version = |schema: u32| format!("0.{schema}.0");
        let address: SocketAddr = "192.0.2.1:7946".parse().unwrap();
        let members = members.iter().map(|(text, schema)| {
            let (version, schema) = (version(*schema), *schema);
            let (incarnation, epoch, region) = (1, 0, None);
            let member = FleetMember { address, region, incarnation, epoch, version, schema };
            (name(text), versioned(member))
        });
        let alive = alive.iter().map(|(text, schema)| {
            let (version, schema) = (version(*schema), *schema);
            (name(text), versioned(Liveness { version, schema, ..Liveness::default() }).into())
        });
        Snapshot { members: members.collect(), alive: alive.collect(), ..Snapshot::default() }
    }

    fn refusal(need: i32, snapshot: &Snapshot) -> Option<String> {
        let of = (need > 1).then(|| "Pool.hold_down".to_owned());
        let need = SchemaNeed { revision: Revision::new(need), of };
        check(&need, snapshot, &name("lb-1")).err().map(|error| error.to_string())
    }

    #[test]
    fn a_field_waits_for_every_balancer() {
        let members = [("lb-1", 2), ("lb-2", 2), ("lb-3", 1)];
        let mixed = snapshot(&members, &members);
        assert_eq!(refusal(1, &mixed), None, "what all understand is shared");
        assert_eq!(
            refusal(2, &mixed).unwrap(),
            "Pool.hold_down needs schema revision 2 at every balancer of the fleet, and older ones are in it: \
             lb-3 (version 0.1.0, schema revision 1)"
        );
        let upgraded = snapshot(&members, &[("lb-1", 2), ("lb-2", 2), ("lb-3", 2)]);
        assert_eq!(refusal(2, &upgraded), None, "what runs now counts, not its last start");
        let downgraded = snapshot(&[("lb-1", 2), ("lb-2", 2)], &[("lb-1", 2), ("lb-2", 1)]);
        assert!(refusal(2, &downgraded).unwrap().contains("lb-2 (version 0.1.0"));
    }

    #[test]
    fn a_balancer_that_is_not_alive_may_come_back() {
        let dead = snapshot(&[("lb-1", 2), ("lb-2", 1)], &[("lb-1", 2)]);
        let sentence = refusal(2, &dead).unwrap();
        assert!(sentence.ends_with("lb-2 (version 0.1.0, schema revision 1, not alive)"));
        assert_eq!(refusal(2, &snapshot(&[("lb-1", 2), ("lb-2", 2)], &[])), None);
        // What is alive and no member, as one that leaves, gets nothing.
        assert_eq!(refusal(2, &snapshot(&[("lb-1", 2)], &[("lb-1", 2), ("lb-9", 1)])), None);
        // Its own entry is of its last start.
        assert_eq!(refusal(2, &snapshot(&[("lb-1", 1)], &[])), None);
    }

    #[test]
    fn of_many_older_balancers_the_first_are_named() {
        let members: Vec<_> = (2..=6).map(|number| format!("lb-{number}")).collect();
        let members: Vec<_> = members.iter().map(|text| (text.as_str(), 1)).collect();
        let sentence = refusal(3, &snapshot(&members, &members)).unwrap();
        assert!(sentence.contains("lb-2 (") && sentence.contains("lb-4 ("), "{sentence}");
        assert!(!sentence.contains("lb-5") && sentence.ends_with(", and 2 more"), "{sentence}");
    }

    #[test]
    fn a_balancer_that_does_not_say_what_it_understands_has_the_first_revision() {
        let value = br#"{"format":1,"address":"192.0.2.1:7","region":null,"incarnation":4}"#;
        let member = Document::<FleetMember>::read(b"members/lb-2", value).unwrap();
        let members = [(name("lb-2"), Versioned { document: member, mod_revision: 1 })];
        let snapshot = Snapshot { members: members.into(), ..Snapshot::default() };
        assert_eq!(refusal(1, &snapshot), None);
        let sentence = refusal(2, &snapshot).unwrap();
        let expected = "lb-2 (unknown version, schema revision 1, not alive)";
        assert!(sentence.ends_with(expected), "{sentence}");
    }
}
