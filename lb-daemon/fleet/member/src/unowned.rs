//! Whether all of each capacity has an owner. What nobody owns nobody admits, and a balancer cannot tell that from its own
//! portions.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use lb_base::conditions::{ConditionReason, Subject};
use lb_model::Name;
use lb_sharing::{GroupKey, GroupReport};
use tokio::time::Instant;

use super::{
    Member,
    liveness::shows,
    membership::has_been_forgotten,
    sharing::{GroupShare, LEDGER, SharingStatus},
};

/// Subject of the condition that a part of a capacity has no owner.
pub(super) const FLEET_PORTIONS: Subject =
    Subject::new(ConditionReason::FleetShares, "fleet portions");

/// What others gave to each other is not seen, but it arrives within a second or two.
const LASTS: Duration = Duration::from_secs(30);

/// A smaller part does no harm that could be noticed.
const LEAST: f64 = 0.05;

/// Since when a part of a capacity has had no owner.
#[derive(Debug, Default)]
pub(super) struct Unowned {
    since: Option<Instant>,
}

impl Unowned {
    /// Looks at what all balancers say that they own.
    pub(super) fn look(&mut self, member: &Member) {
        match self.note(member.find_unowned(), Instant::now()) {
            Some((group, part)) => {
                let problem = sentence(&group, part, &member.find_unstored());
                member.conditions().begin(&FLEET_PORTIONS, &problem);
            }
            None => member.conditions().end(&FLEET_PORTIONS),
        }
    }

    /// Takes note of what has no owner now. Returns it once it has lasted.
    fn note(&mut self, found: Option<(GroupKey, f64)>, now: Instant) -> Option<(GroupKey, f64)> {
        let since = found.as_ref().map(|_| self.since.unwrap_or(now));
        self.since = since;
        let has_lasted = since.is_some_and(|since| now.duration_since(since) >= LASTS);
        found.filter(|_| has_lasted)
    }
}

/// What is wrong, and what mends it. What others give to a balancer whose disk fails is on its way until the disk is mended;
/// no reason to create it again.
fn sentence(GroupKey { pool, region, .. }: &GroupKey, part: f64, unstored: &[String]) -> String {
    let remedy = match unstored.join(", ").as_str() {
        "" => "if balancers reach each other, `spillway fleet leave --abandon` at one of them, and `join` there, make the \
               others create it again"
            .to_owned(),
        names => format!("it waits for the disk of {names} (condition `{}` there)", LEDGER.text()),
    };
    format!(
        "no balancer owns {:.0} % of the capacity of pool {pool} in region {region}: {remedy}",
        part * 100.0
    )
}

impl Member {
    /// Balancers that show that they cannot store their portions, this one too.
    fn find_unstored(&self) -> Vec<String> {
        let Some(snapshot) = self.view().snapshot else { return Vec::new() };
        let unstored = snapshot.alive.iter().filter(|(_, it)| shows(&it.document.body, &LEDGER));
        unstored.map(|(name, _)| name.to_string()).collect()
    }

    /// The group of which most has no owner. `None`: there is none, or not all balancers are heard.
    fn find_unowned(&self) -> Option<(GroupKey, f64)> {
        let snapshot = self.view().snapshot?;
        if snapshot.epoch.as_ref().is_some_and(|epoch| !epoch.closed) {
            return None;
        }
        let status = self.sharing().status();
        let status = status.borrow();
        let others = snapshot.members.keys().filter(|name| *name != self.name());
        let others: Option<Vec<_>> = others
            .filter(|name| !has_been_forgotten(&snapshot, name))
            .map(|name| reports(&status, name))
            .collect();
        largest(&status.groups, &others?)
    }
}

fn reports<'s>(
    status: &'s SharingStatus,
    name: &Name,
) -> Option<&'s Arc<BTreeMap<GroupKey, GroupReport>>> {
    let peer = status.peers.get(name)?;
    // One that is silent may own something else by now.
    peer.is_heard().then_some(&peer.groups)
}

/// The group of which most has no owner, and how much. A group that a balancer says nothing of may be new to it.
fn largest(
    own: &BTreeMap<GroupKey, GroupShare>,
    others: &[&Arc<BTreeMap<GroupKey, GroupReport>>],
) -> Option<(GroupKey, f64)> {
    let unowned = own.iter().filter_map(|(group, share)| {
        let theirs = others.iter().map(|reports| Some(reports.get(group)?.owned.fraction()));
        let theirs: f64 = theirs.sum::<Option<f64>>()?;
        Some((group, 1.0 - share.owned.fraction() - share.on_its_way.fraction() - theirs))
    });
    let most = unowned.max_by(|(_, one), (_, other)| one.total_cmp(other))?;
    Some(most).filter(|(_, part)| *part >= LEAST).map(|(group, part)| (group.clone(), part))
}

#[cfg(test)]
mod tests {
    use lb_sharing::{Parts, ReportedCapacity};

    use super::*;

    fn group(pool: &str) -> GroupKey {
        GroupKey { pool: Name::new(pool).unwrap(), region: Name::new("eu").unwrap(), birth: 1 }
    }

    fn share(owned: f64, on_its_way: f64) -> GroupShare {
        GroupShare {
            owned: Parts::from_fraction(owned),
            enforced: Parts::NONE,
            on_its_way: Parts::from_fraction(on_its_way),
            demand: None,
            capacity: None,
        }
    }

    fn peer(groups: &[(&str, f64)]) -> Arc<BTreeMap<GroupKey, GroupReport>> {
        let report = |owned| GroupReport {
            demand: 0.0,
            owned: Parts::from_fraction(owned),
            capacity: ReportedCapacity::Unlimited,
            may_send: true,
        };
        Arc::new(groups.iter().map(|(pool, owned)| (group(pool), report(*owned))).collect())
    }

    #[test]
    fn what_nobody_owns_is_found() {
        let own = [(group("dns"), share(0.5, 0.25)), (group("web"), share(0.25, 0.0))].into();
        let found = |peers: &[Arc<BTreeMap<GroupKey, GroupReport>>]| {
            let found = largest(&own, &peers.iter().collect::<Vec<_>>());
            found.map(|(group, part)| (group.pool.to_string(), (part * 100.0).round()))
        };
        let whole = peer(&[("dns", 0.25), ("web", 0.75)]);
        assert_eq!(found(&[whole]), None);
        assert_eq!(found(&[peer(&[("dns", 0.24), ("web", 0.72)])]), None, "it may be on its way");
        let less = peer(&[("dns", 0.15), ("web", 0.34)]);
        assert_eq!(found(&[less]), Some(("web".into(), 41.0)));
        let two = [peer(&[("dns", 0.25), ("web", 0.35)]), peer(&[("dns", 0.0), ("web", 0.0)])];
        assert_eq!(found(&two), Some(("web".into(), 40.0)));
        // One that does not know the group yet says nothing of it.
        assert_eq!(found(&[peer(&[("dns", 0.0)])]), Some(("dns".into(), 25.0)));
        assert_eq!(found(&[peer(&[])]), None);
        // A fleet of one that owns nothing.
        let nothing = [(group("web"), share(0.0, 0.0))].into();
        assert_eq!(largest(&nothing, &[]), Some((group("web"), 1.0)));
    }

    #[test]
    fn only_what_lasts_is_a_problem() {
        let (mut unowned, start) = (Unowned::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let some = || Some((group("web"), 0.2));
        assert_eq!(unowned.note(some(), start), None);
        assert_eq!(unowned.note(some(), at(29)), None);
        assert!(unowned.note(some(), at(30)).is_some());
        assert_eq!(unowned.note(None, at(31)), None);
        // From the beginning.
        assert_eq!(unowned.note(some(), at(60)), None);
        assert!(unowned.note(some(), at(90)).is_some());
    }

    #[test]
    fn the_sentence_says_how_much_and_what_to_do() {
        let text = sentence(&group("web"), 0.411, &[]);
        assert!(text.starts_with("no balancer owns 41 % of the capacity of pool web in region eu"));
        assert!(text.contains("`spillway fleet leave --abandon`"));
        let waits = sentence(&group("web"), 0.411, &["lb-2".into(), "lb-4".into()]);
        assert!(waits.ends_with(
            ": it waits for the disk of lb-2, lb-4 (condition `ledger of the fleet` there)"
        ));
    }
}
