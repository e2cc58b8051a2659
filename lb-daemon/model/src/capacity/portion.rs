//! How much of each capacity this balancer may admit: by the configuration the same of all, in a fleet what it owns.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc};

use crate::Name;

/// The names of a group's pool and region.
pub type GroupName = (Name, Name);

/// A fraction of a capacity, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Portion(f64);

// Never NaN.
impl Eq for Portion {}

impl Portion {
    /// Nothing is admitted, unless the capacity is unlimited.
    pub const NONE: Self = Self(0.0);
    /// All of the capacity.
    pub const WHOLE: Self = Self(1.0);

    /// `None`: it is out of range or no number.
    pub fn new(fraction: f64) -> Option<Self> {
        (0.0..=1.0).contains(&fraction).then_some(Self(fraction))
    }

    /// One of so many equal ones.
    pub fn equal(count: NonZeroU32) -> Self {
        Self(1.0 / f64::from(count.get()))
    }

    /// 0 to 1.
    pub fn fraction(self) -> f64 {
        self.0
    }

    /// The lower of two.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        if other < self { other } else { self }
    }
}

/// This balancer's portions in a fleet. A group that is not named has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetPortions(BTreeMap<Name, BTreeMap<Name, Portion>>);

impl FleetPortions {
    pub fn get(&self, pool: &Name, region: &Name) -> Portion {
        let portion = self.0.get(pool).and_then(|regions| regions.get(region));
        portion.copied().unwrap_or(Portion::NONE)
    }

    /// Each group that is named, with its portion.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Name, Portion)> {
        let regions = |(pool, regions)| std::iter::repeat(pool).zip(regions);
        self.0.iter().flat_map(regions).map(|(pool, (region, portion))| (pool, region, *portion))
    }

    /// The groups that have less in `next`, and those that have more.
    fn changes_to(&self, next: &Self) -> GroupChanges {
        let mut changes = GroupChanges::default();
        for (pool, region, before) in self.iter() {
            changes.add((pool, region), before, next.get(pool, region));
        }
        for (pool, region, after) in next.iter() {
            if self.0.get(pool).is_none_or(|regions| !regions.contains_key(region)) {
                changes.add((pool, region), Portion::NONE, after);
            }
        }
        changes
    }
}

/// By the names of pool and region. Of a group that comes twice, the last one counts.
impl FromIterator<(GroupName, Portion)> for FleetPortions {
    fn from_iter<I: IntoIterator<Item = (GroupName, Portion)>>(portions: I) -> Self {
        let mut pools: BTreeMap<Name, BTreeMap<Name, Portion>> = BTreeMap::new();
        for ((pool, region), portion) in portions {
            pools.entry(pool).or_default().insert(region, portion);
        }
        Self(pools)
    }
}

/// This balancer's portions of all capacities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Portions {
    /// One of as many equal ones as the configuration says that there are balancers.
    #[default]
    ByConfiguration,
    /// What it owns as a member of a fleet.
    Fleet(Arc<FleetPortions>),
}

impl Portions {
    /// Of a group; `balancers` is what the configuration says.
    pub fn of(&self, pool: &Name, region: &Name, balancers: NonZeroU32) -> Portion {
        self.of_fleet(pool, region).unwrap_or_else(|| Portion::equal(balancers))
    }

    /// Of a group in a fleet. `None`: the configuration decides.
    pub fn of_fleet(&self, pool: &Name, region: &Name) -> Option<Portion> {
        match self {
            Self::ByConfiguration => None,
            Self::Fleet(portions) => Some(portions.get(pool, region)),
        }
    }

    /// Which groups have another portion in `next`.
    pub fn changes_to(&self, next: &Self) -> PortionChanges {
        match (self, next) {
            (Self::ByConfiguration, Self::ByConfiguration) => {
                PortionChanges::Groups(GroupChanges::default())
            }
            (Self::Fleet(before), Self::Fleet(after)) if Arc::ptr_eq(before, after) => {
                PortionChanges::Groups(GroupChanges::default())
            }
            (Self::Fleet(before), Self::Fleet(after)) => {
                PortionChanges::Groups(before.changes_to(after))
            }
            (Self::ByConfiguration, Self::Fleet(_)) | (Self::Fleet(_), Self::ByConfiguration) => {
                PortionChanges::All
            }
        }
    }
}

/// The groups whose portion changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortionChanges {
    /// Perhaps all of them: a balancer joins a fleet, or leaves it.
    All,
    Groups(GroupChanges),
}

/// Groups whose portion changes, by how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupChanges {
    pub lower: Vec<GroupName>,
    pub higher: Vec<GroupName>,
}

impl GroupChanges {
    fn add(&mut self, (pool, region): (&Name, &Name), before: Portion, after: Portion) {
        let groups = match () {
            () if after < before => &mut self.lower,
            () if after > before => &mut self.higher,
            () => return,
        };
        groups.push((pool.clone(), region.clone()));
    }
}

/// What limits are written by. While portions change it is the lower one of each group, until all limits that get lower
/// are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortionsInForce {
    portions: Portions,
    next: Option<Portions>,
}

impl PortionsInForce {
    /// While `from` are being replaced by `to`.
    pub fn changing(from: Portions, to: Portions) -> Self {
        Self { portions: from, next: Some(to) }
    }

    /// Of a group; `balancers` is what the configuration says.
    pub fn of(&self, pool: &Name, region: &Name, balancers: NonZeroU32) -> Portion {
        let portion = self.portions.of(pool, region, balancers);
        match &self.next {
            Some(next) => portion.min(next.of(pool, region, balancers)),
            None => portion,
        }
    }
}

impl From<Portions> for PortionsInForce {
    fn from(portions: Portions) -> Self {
        Self { portions, next: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn group((pool, region): (&str, &str)) -> GroupName {
        (name(pool), name(region))
    }

    fn fleet(portions: &[((&str, &str), f64)]) -> FleetPortions {
        let portion = |(of, fraction): &_| (group(*of), Portion::new(*fraction).unwrap());
        portions.iter().map(portion).collect()
    }

    const WEB: (&str, &str) = ("web", "eu");
    const FAR: (&str, &str) = ("web", "us");
    const DNS: (&str, &str) = ("dns", "eu");
    const FOUR: NonZeroU32 = NonZeroU32::new(4).unwrap();

    #[test]
    fn a_portion_is_within_nothing_and_the_whole() {
        for fraction in [0.0, f64::MIN_POSITIVE, 0.5, 1.0] {
            assert_eq!(Portion::new(fraction).map(Portion::fraction), Some(fraction));
        }
        for fraction in [-0.1, 1.0 + f64::EPSILON, f64::NAN, f64::INFINITY] {
            assert_eq!(Portion::new(fraction), None, "{fraction}");
        }
        assert_eq!(Portion::equal(FOUR), Portion(0.25));
        assert_eq!(Portion::NONE.min(Portion::WHOLE), Portion::NONE);
        assert_eq!(Portion::WHOLE.min(Portion::NONE), Portion::NONE);
    }

    #[test]
    fn a_group_that_a_fleet_does_not_name_has_nothing() {
        let portions = Portions::Fleet(Arc::new(fleet(&[(WEB, 0.6)])));
        let of = |portions: &Portions, (pool, region): (&str, &str)| {
            portions.of(&name(pool), &name(region), FOUR).fraction()
        };
        assert_eq!((of(&portions, WEB), of(&portions, FAR), of(&portions, DNS)), (0.6, 0.0, 0.0));
        assert_eq!(of(&Portions::ByConfiguration, FAR), 0.25);
    }

    #[test]
    fn only_groups_with_another_portion_change() {
        let before = fleet(&[(WEB, 0.5), (FAR, 0.2), (DNS, 0.1)]);
        let after = fleet(&[(WEB, 0.25), (FAR, 0.2), (("new", "eu"), 0.3), (("none", "eu"), 0.0)]);
        let changes = before.changes_to(&after);
        assert_eq!(changes.lower, [group(DNS), group(WEB)]);
        assert_eq!(changes.higher, [group(("new", "eu"))]);
        let back = after.changes_to(&before);
        assert_eq!((back.lower, back.higher), (changes.higher, vec![group(WEB), group(DNS)]));

        let [before, after] = [before, after].map(|it| Portions::Fleet(Arc::new(it)));
        let nothing = PortionChanges::Groups(GroupChanges::default());
        assert_eq!(before.changes_to(&before.clone()), nothing);
        assert_eq!(Portions::ByConfiguration.changes_to(&Portions::ByConfiguration), nothing);
        assert_eq!(Portions::ByConfiguration.changes_to(&after), PortionChanges::All);
        assert_eq!(after.changes_to(&Portions::ByConfiguration), PortionChanges::All);
    }

    #[test]
    fn while_portions_change_each_group_has_the_lower_one() {
        let [from, to] = [fleet(&[(WEB, 0.6), (FAR, 0.1)]), fleet(&[(WEB, 0.2), (FAR, 0.3)])];
        let [from, to] = [from, to].map(|it| Portions::Fleet(Arc::new(it)));
        let of = |portions: &PortionsInForce, (pool, region): (&str, &str)| {
            portions.of(&name(pool), &name(region), FOUR).fraction()
        };
        let changing = PortionsInForce::changing(from, to.clone());
        assert_eq!((of(&changing, WEB), of(&changing, FAR)), (0.2, 0.1));
        let leaving = PortionsInForce::changing(to.clone(), Portions::ByConfiguration);
        assert_eq!((of(&leaving, WEB), of(&leaving, FAR)), (0.2, 0.25));
        let after = PortionsInForce::from(to);
        assert_eq!((of(&after, WEB), of(&after, FAR)), (0.2, 0.3));
    }
}
