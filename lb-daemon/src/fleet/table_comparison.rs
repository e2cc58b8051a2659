//! Which balancers have other tables than those that they should equal.
//!
//! Regions differ in the order in which they ask regions, so tables are compared within a region, and at one revision.

use std::collections::BTreeMap;

use lb_fleet::{documents::Liveness, reader::Snapshot};
use lb_model::Name;

/// What became of comparing a balancer's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableComparison {
    /// May be itself.
    pub(super) with: Name,
    /// Pools whose tables differ.
    pub(super) differing: Vec<Name>,
}

/// Compares the live members' tables: in the region of `own` with its tables, in another one with those that most of the
/// balancers there have. What is not in the answer cannot be compared.
pub(super) fn compare(snapshot: &Snapshot, own: &Name) -> BTreeMap<Name, TableComparison> {
    let mut regions: BTreeMap<Option<&Name>, BTreeMap<&Name, &Liveness>> = BTreeMap::new();
    for (name, member) in &snapshot.members {
        let alive = snapshot.alive.get(name).map(|alive| &alive.document.body);
        if let Some(alive) = alive.filter(|alive| !alive.tables.is_empty()) {
            let region = member.document.body.region.as_ref();
            regions.entry(region).or_default().insert(name, alive);
        }
    }
    let mut comparisons = BTreeMap::new();
    for balancers in regions.values() {
        let Some((with, reference)) = reference(balancers, own) else { continue };
        let comparable = balancers.iter().filter(|(_, it)| it.revision == reference.revision);
        comparisons.extend(comparable.map(|(name, it)| {
            let differing = differing(reference, it);
            ((*name).clone(), TableComparison { with: with.clone(), differing })
        }));
    }
    comparisons
}

/// The balancer that the others of its region are compared with.
fn reference<'a>(
    balancers: &BTreeMap<&'a Name, &'a Liveness>,
    own: &Name,
) -> Option<(&'a Name, &'a Liveness)> {
    if let Some((name, it)) = balancers.get_key_value(own) {
        return Some((name, it));
    }
    // Those that lag are no example.
    let revision = balancers.values().map(|it| it.revision).max()?;
    let latest: Vec<_> = balancers.iter().filter(|(_, it)| it.revision == revision).collect();
    let alike =
        |it: &Liveness| latest.iter().filter(|(_, other)| other.tables == it.tables).count();
    // Of several, the first by name.
    let (name, it) = latest.iter().rev().max_by_key(|(_, it)| alike(it))?;
    Some((name, it))
}

fn differing(one: &Liveness, other: &Liveness) -> Vec<Name> {
    let pools = one.tables.keys().chain(other.tables.keys());
    let differ = |pool: &&Name| one.tables.get(*pool) != other.tables.get(*pool);
    let mut pools: Vec<Name> = pools.filter(differ).cloned().collect();
    pools.sort();
    pools.dedup();
    pools
}

#[cfg(test)]
mod tests {
    use lb_fleet::{documents::FleetMember, reader::Versioned};

    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    /// Balancers with their region, revision and digests of pools `a` and `b`.
    fn snapshot(balancers: &[(&str, &str, i64, [&str; 2])]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (text, region, revision, digests) in balancers {
            let member = FleetMember {
                address: "192.0.2.1:7946".parse().unwrap(),
                region: Some(name(region)),
                incarnation: 1,
                epoch: 0,
                version: String::new(),
                schema: 1,
            };
            let tables = ["a", "b"].into_iter().zip(digests).filter(|(_, it)| !it.is_empty());
            let tables = tables.map(|(pool, digest)| (name(pool), (*digest).to_owned())).collect();
            let alive = Liveness { revision: *revision, tables, ..Liveness::default() };
            let (member, alive) = (member.into(), alive.into());
            let member = Versioned { document: member, mod_revision: 1 };
            snapshot.members.insert(name(text), member);
            snapshot
                .alive
                .insert(name(text), Versioned { document: alive, mod_revision: 1 }.into());
        }
        snapshot
    }

    /// `lb-2 with lb-1: a b`
    fn lines(snapshot: &Snapshot, own: &str) -> Vec<String> {
        let compared = compare(snapshot, &name(own)).into_iter();
        let line = |(name, it): (Name, TableComparison)| {
            let pools: Vec<_> = it.differing.iter().map(Name::as_str).collect();
            format!("{name} with {}: {}", it.with, pools.join(" ")).trim_end().to_owned()
        };
        compared.map(line).collect()
    }

    #[test]
    fn regions_are_compared_apart() {
        let fleet = snapshot(&[
            ("lb-1", "eu", 7, ["1", "2"]),
            ("lb-2", "eu", 7, ["1", "3"]),
            ("lb-3", "us", 7, ["4", "5"]),
            ("lb-4", "us", 7, ["6", "7"]),
            ("lb-5", "us", 7, ["6", "7"]),
        ]);
        assert_eq!(
            lines(&fleet, "lb-1"),
            [
                "lb-1 with lb-1:",
                "lb-2 with lb-1: b",
                "lb-3 with lb-4: a b",
                "lb-4 with lb-4:",
                "lb-5 with lb-4:"
            ]
        );
        assert_eq!(
            lines(&fleet, "lb-3")[3],
            "lb-4 with lb-3: a b",
            "in its own region it is the measure"
        );
    }

    #[test]
    fn only_equal_revisions_are_compared() {
        let fleet = snapshot(&[
            ("lb-1", "eu", 7, ["1", ""]),
            ("lb-2", "eu", 6, ["2", ""]),
            ("lb-3", "us", 6, ["3", ""]),
            ("lb-4", "us", 7, ["4", "5"]),
            ("lb-5", "us", 7, ["", ""]),
        ]);
        assert_eq!(lines(&fleet, "lb-1"), ["lb-1 with lb-1:", "lb-4 with lb-4:"]);
        // A pool that one of them does not have.
        let fleet = snapshot(&[("lb-1", "eu", 7, ["1", ""]), ("lb-2", "eu", 7, ["1", "2"])]);
        assert_eq!(lines(&fleet, "lb-1")[1], "lb-2 with lb-1: b");
    }

    #[test]
    fn only_members_that_are_alive_are_compared() {
        let mut fleet = snapshot(&[("lb-1", "eu", 7, ["1", ""]), ("lb-2", "eu", 7, ["2", ""])]);
        fleet.alive.remove(&name("lb-1"));
        assert_eq!(lines(&fleet, "lb-1"), ["lb-2 with lb-2:"]);
        fleet.members.remove(&name("lb-2"));
        assert_eq!(lines(&fleet, "lb-1"), Vec::<String>::new());
    }
}
