//! Which generation created a group, and who owned it then. Pure.
//!
//! A group is born in the generation that adds it to the configuration. The balancers that were alive when that generation
//! was applied own the group in equal portions. A group that was removed and added again is another one.

use std::collections::{BTreeMap, BTreeSet};

use lb_model::Name;
use lb_sharing::GroupKey;

use crate::documents::Generation;

/// What a generation says of the births of its groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Births {
    /// By pool and region, the generation in which a group was created.
    pub births: BTreeMap<Name, BTreeMap<Name, u64>>,
    /// By generation that created a group which is still there, the balancers that were alive then.
    pub owners: BTreeMap<u64, BTreeSet<Name>>,
}

/// What generation `number` has to say of the births of its `groups` (pool and region), with `live` being the balancers that
/// are alive. Groups of `previous` keep their birth.
pub fn next_births(
    previous: &BTreeMap<GroupKey, BTreeSet<Name>>,
    groups: &BTreeSet<(Name, Name)>,
    number: u64,
    live: &BTreeSet<Name>,
) -> Births {
    // A group without first owners belongs to no balancer, so it can as well be born again.
    let owned = previous.iter().filter(|(_, owners)| !owners.is_empty());
    let before: BTreeMap<_, _> = owned
        .map(|(group, owners)| ((&group.pool, &group.region), (group.birth, owners)))
        .collect();
    let mut next = Births::default();
    for (pool, region) in groups {
        let (birth, owners) = before.get(&(pool, region)).copied().unwrap_or((number, live));
        next.births.entry(pool.clone()).or_default().insert(region.clone(), birth);
        next.owners.entry(birth).or_insert_with(|| owners.clone());
    }
    next
}

impl Generation {
    /// Its groups, each with the balancers that were alive when it was created.
    pub fn groups(&self) -> BTreeMap<GroupKey, BTreeSet<Name>> {
        let groups = self.births.iter().flat_map(|(pool, regions)| {
            regions.iter().map(|(region, birth)| {
                let (pool, region, birth) = (pool.clone(), region.clone(), *birth);
                GroupKey { pool, region, birth }
            })
        });
        let owners = |group: &GroupKey| self.owners.get(&group.birth).cloned().unwrap_or_default();
        groups.map(|group| (group.clone(), owners(&group))).collect()
    }
}

/// Births with the same owners are written together: which balancers are alive rarely changes. JSON could not have the
/// numbers as keys anyway, because fields of a flattened structure are read as texts.
pub(crate) mod owners_by_birth {
    use std::collections::{BTreeMap, BTreeSet};

    use lb_model::Name;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Stored {
        births: Vec<u64>,
        names: BTreeSet<Name>,
    }

    pub(crate) fn serialize<S: Serializer>(
        owners: &BTreeMap<u64, BTreeSet<Name>>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        let mut births: BTreeMap<&BTreeSet<Name>, Vec<u64>> = BTreeMap::new();
        for (birth, names) in owners {
            births.entry(names).or_default().push(*birth);
        }
        let stored = births.into_iter();
        to.collect_seq(stored.map(|(names, births)| Stored { births, names: names.clone() }))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<u64, BTreeSet<Name>>, D::Error> {
        let stored = Vec::<Stored>::deserialize(from)?.into_iter();
        let each = |it: Stored| it.births.into_iter().map(move |birth| (birth, it.names.clone()));
        Ok(stored.flat_map(each).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::Document;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn names(texts: &[&str]) -> BTreeSet<Name> {
        texts.iter().map(|text| name(text)).collect()
    }

    fn groups(texts: &[(&str, &str)]) -> BTreeSet<(Name, Name)> {
        texts.iter().map(|(pool, region)| (name(pool), name(region))).collect()
    }

    fn generation(number: u64, births: Births) -> Generation {
        Generation {
            number,
            parent: None,
            attempt: String::new(),
            pieces: Vec::new(),
            size: 0,
            live: BTreeSet::new(),
            births: births.births,
            owners: births.owners,
            restored: 0,
            settles_ms: 0,
            author: String::new(),
            reason: String::new(),
            applied_at: UNIX_EPOCH.into(),
        }
    }

    /// Groups and live balancers of a generation.
    type Step<'s> = (&'s [(&'s str, &'s str)], &'s [&'s str]);

    /// Pool, region, birth and owners of each group after some generations.
    fn after(steps: &[Step]) -> Vec<(String, u64, BTreeSet<Name>)> {
        let mut last = BTreeMap::new();
        for ((wanted, live), number) in steps.iter().zip(1..) {
            let births = next_births(&last, &groups(wanted), number, &names(live));
            last = generation(number, births).groups();
        }
        last.into_iter()
            .map(|(it, owners)| (format!("{}/{}", it.pool, it.region), it.birth, owners))
            .collect()
    }

    #[test]
    fn a_group_keeps_its_birth_and_its_first_owners() {
        let (web, api) = (("web", "eu"), ("api", "us"));
        let found = after(&[(&[web], &["a", "b"]), (&[web, api], &["b", "c"])]);
        assert_eq!(found[0], ("api/us".into(), 2, names(&["b", "c"])));
        assert_eq!(found[1], ("web/eu".into(), 1, names(&["a", "b"])));
    }

    #[test]
    fn a_group_that_comes_again_is_born_again() {
        let web = ("web", "eu");
        let found = after(&[(&[web], &["a"]), (&[], &["a"]), (&[web], &["b"])]);
        assert_eq!(found, [("web/eu".into(), 3, names(&["b"]))]);
        let other_region = after(&[(&[web], &["a"]), (&[("web", "us")], &["b"])]);
        assert_eq!(other_region, [("web/us".into(), 2, names(&["b"]))]);
    }

    #[test]
    fn owners_are_kept_as_long_as_a_group_needs_them() {
        let all = groups(&[("web", "eu"), ("web", "us")]);
        let first = generation(1, next_births(&BTreeMap::new(), &all, 1, &names(&["a"])));
        let one = groups(&[("web", "us"), ("api", "us")]);
        let second = next_births(&first.groups(), &one, 2, &names(&["b"]));
        let owners = [(1, names(&["a"])), (2, names(&["b"]))];
        assert_eq!(second.owners, owners.into());
        let third = next_births(&generation(2, second).groups(), &groups(&[]), 3, &names(&["c"]));
        assert_eq!(third, Births::default());
    }

    #[test]
    fn equal_owners_are_written_once() {
        let owners = [(1, names(&["a", "b"])), (2, names(&["a"])), (7, names(&["a", "b"]))];
        let births = Births { owners: owners.into(), ..Births::default() };
        let written = Document::from(generation(9, births.clone())).write("x").unwrap();
        let text = String::from_utf8(written.clone()).unwrap();
        let expected =
            r#""owners":[{"births":[2],"names":["a"]},{"births":[1,7],"names":["a","b"]}]"#;
        assert!(text.contains(expected), "{text}");
        let read = Document::<Generation>::read(b"x", &written).unwrap();
        assert_eq!(read.body.owners, births.owners);
        let old = text.replace(expected, r#""later":1"#);
        let read = Document::<Generation>::read(b"x", old.as_bytes()).unwrap();
        assert!(read.body.owners.is_empty());
    }
}
