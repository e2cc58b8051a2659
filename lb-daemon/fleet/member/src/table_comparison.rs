//! Which balancers have other tables than those that they should equal.
//!
//! Regions differ in the order in which they ask regions, so tables are compared within a region, and at one revision. All
//! balancers show one digest over all of their tables. Which pools differ, those two are asked.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use lb_fleet::{documents::Liveness, reader::Snapshot};
use lb_model::Name;
use xxhash_rust::xxh64::Xxh64;

use super::{FleetStatus, Member, sharing::TableDigests};

/// What became of comparing a balancer's tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TableComparison {
    /// May be itself.
    pub(super) with: Name,
    /// Whether they are equal.
    pub(super) agree: bool,
}

/// One digest over those of all pools; empty: there are no pools.
pub(super) fn digest(tables: &TableDigests) -> String {
    if tables.is_empty() {
        return String::new();
    }
    let mut hash = Xxh64::new(0);
    for (pool, digest) in tables {
        hash.update(pool.as_str().as_bytes());
        // No name has this byte.
        hash.update(&[0]);
        hash.update(&digest.to_be_bytes());
    }
    format!("{:016x}", hash.digest())
}

impl Member {
    /// Asks the balancers whose tables differ, and those that they are compared with, in which pools.
    pub async fn name_differing_pools(&self, status: &mut FleetStatus) {
        let differ = status.members.iter().filter(|(_, it)| it.tables_agree == Some(false));
        let pairs = differ.filter_map(|(name, it)| Some([name, it.compared_with.as_ref()?]));
        let asked: BTreeSet<Name> = pairs.flatten().cloned().collect();
        let answers =
            asked.iter().map(async |name| Some((name, self.digest_tables_of(name).await.ok()?)));
        let answers: BTreeMap<_, _> = join_all(answers).await.into_iter().flatten().collect();
        // What was compared is what the digests in etcd are of.
        let compared = |name: &Name| {
            let tables = answers.get(name)?;
            (digest(tables) == status.members.get(name)?.digest).then_some(tables)
        };
        let pools = status.members.iter().filter_map(|(name, it)| {
            let with = it.compared_with.as_ref().filter(|_| it.tables_agree == Some(false))?;
            Some((name.clone(), differing(compared(with)?, compared(name)?)))
        });
        let pools: BTreeMap<_, _> = pools.collect();
        for (name, member) in &mut status.members {
            member.differing_pools = pools.get(name).cloned().unwrap_or_default();
        }
    }
}

/// Compares the live members' tables: in the region of `own` with its tables, in another one with those that most of the
/// balancers there have. What is not in the answer cannot be compared.
pub(super) fn compare(snapshot: &Snapshot, own: &Name) -> BTreeMap<Name, TableComparison> {
    let mut regions: BTreeMap<Option<&Name>, BTreeMap<&Name, &Liveness>> = BTreeMap::new();
    for (name, member) in &snapshot.members {
        let alive = snapshot.alive.get(name).map(|alive| &alive.document.body);
        if let Some(alive) = alive.filter(|alive| !alive.digest.is_empty()) {
            let region = member.document.body.region.as_ref();
            regions.entry(region).or_default().insert(name, alive);
        }
    }
    let mut comparisons = BTreeMap::new();
    for balancers in regions.values() {
        let Some((with, reference)) = reference(balancers, own) else { continue };
        let comparable = balancers.iter().filter(|(_, it)| it.revision == reference.revision);
        comparisons.extend(comparable.map(|(name, it)| {
            let agree = it.digest == reference.digest;
            ((*name).clone(), TableComparison { with: with.clone(), agree })
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
        |it: &Liveness| latest.iter().filter(|(_, other)| other.digest == it.digest).count();
    // Of several, the first by name.
    let (name, it) = latest.iter().rev().max_by_key(|(_, it)| alike(it))?;
    Some((name, it))
}

/// Pools that are different, or that only one of them has.
fn differing(one: &TableDigests, other: &TableDigests) -> Vec<Name> {
    let pools: BTreeSet<&Name> = one.keys().chain(other.keys()).collect();
    pools.into_iter().filter(|pool| one.get(*pool) != other.get(*pool)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use lb_fleet::{documents::FleetMember, reader::Versioned};

    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    /// Balancers with their region, revision and digest.
    fn snapshot(balancers: &[(&str, &str, i64, &str)]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (text, region, revision, digest) in balancers {
            let member = FleetMember {
                address: "192.0.2.1:7946".parse().unwrap(),
                region: Some(name(region)),
                incarnation: 1,
                epoch: 0,
                version: String::new(),
                schema: 1,
            };
            let digest = (*digest).to_owned();
            let alive = Liveness { revision: *revision, digest, ..Liveness::default() };
            let (member, alive) = (member.into(), alive.into());
            let member = Versioned { document: member, mod_revision: 1 };
            snapshot.members.insert(name(text), member);
            snapshot
                .alive
                .insert(name(text), Versioned { document: alive, mod_revision: 1 }.into());
        }
        snapshot
    }

    /// `lb-2 with lb-1: differ`
    fn lines(snapshot: &Snapshot, own: &str) -> Vec<String> {
        let compared = compare(snapshot, &name(own)).into_iter();
        let line = |(name, it): (Name, TableComparison)| {
            format!("{name} with {}{}", it.with, if it.agree { "" } else { ": differ" })
        };
        compared.map(line).collect()
    }

    #[test]
    fn regions_are_compared_apart() {
        let fleet = snapshot(&[
            ("lb-1", "eu", 7, "1"),
            ("lb-2", "eu", 7, "2"),
            ("lb-3", "us", 7, "3"),
            ("lb-4", "us", 7, "4"),
            ("lb-5", "us", 7, "4"),
        ]);
        assert_eq!(
            lines(&fleet, "lb-1"),
            [
                "lb-1 with lb-1",
                "lb-2 with lb-1: differ",
                "lb-3 with lb-4: differ",
                "lb-4 with lb-4",
                "lb-5 with lb-4"
            ]
        );
        assert_eq!(
            lines(&fleet, "lb-3")[3],
            "lb-4 with lb-3: differ",
            "in its own region it is the measure"
        );
    }

    #[test]
    fn only_equal_revisions_are_compared() {
        let fleet = snapshot(&[
            ("lb-1", "eu", 7, "1"),
            ("lb-2", "eu", 6, "2"),
            ("lb-3", "us", 6, "3"),
            ("lb-4", "us", 7, "4"),
            ("lb-5", "us", 7, ""),
        ]);
        assert_eq!(lines(&fleet, "lb-1"), ["lb-1 with lb-1", "lb-4 with lb-4"]);
    }

    #[test]
    fn only_members_that_are_alive_are_compared() {
        let mut fleet = snapshot(&[("lb-1", "eu", 7, "1"), ("lb-2", "eu", 7, "2")]);
        fleet.alive.remove(&name("lb-1"));
        assert_eq!(lines(&fleet, "lb-1"), ["lb-2 with lb-2"]);
        fleet.members.remove(&name("lb-2"));
        assert_eq!(lines(&fleet, "lb-1"), Vec::<String>::new());
    }

    fn tables(pools: &[(&str, u64)]) -> TableDigests {
        pools.iter().map(|(pool, digest)| (name(pool), *digest)).collect()
    }

    #[test]
    fn pools_that_differ_or_are_missing_are_named() {
        let one = tables(&[("a", 1), ("b", 2), ("c", 3)]);
        let other = tables(&[("b", 2), ("c", 4), ("d", 3)]);
        assert_eq!(differing(&one, &other), ["a", "c", "d"].map(name));
        assert_eq!(differing(&one, &one), []);
    }

    #[test]
    fn the_digest_is_of_names_and_tables() {
        assert_eq!(digest(&tables(&[])), "");
        let pools: [&[(&str, u64)]; 4] =
            [&[("a", 1)], &[("a", 2)], &[("b", 1)], &[("a", 1), ("b", 1)]];
        let digests: BTreeSet<String> = pools.iter().map(|it| digest(&tables(it))).collect();
        assert_eq!(digests.len(), pools.len());
    }
}
