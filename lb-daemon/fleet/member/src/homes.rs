//! What is marked out is agreed: in a fleet no balancer decides alone what is home of no connection.
//!
//! Each balancer says in `alive/<name>` what it would mark out by its own checks. What more than half of the live balancers
//! of its region say is written to `homes/<region>/<pool>`, which all of them follow. A majority elsewhere does not count:
//! it may be cut off from backends that this region reaches. Without etcd nothing is marked out anew.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use lb_control::state::{MarkOutDecisions, MarkedOutByPool};
use lb_fleet::{
    Document, Fleet,
    documents::{Homes, Liveness},
    homes::HomesChange,
    reader::Snapshot,
};
use lb_model::{Name, plan::MarkedOut};
use tokio::{sync::watch, time::sleep};

use super::{Member, wall_clock};

/// Most pools that one transaction changes.
const MAX_CHANGES: usize = 100;

/// Every balancer of a region writes what was agreed; with this delay at random, one of them usually does it alone.
/// Views that change at the same time come together meanwhile.
const SPREAD: Duration = Duration::from_secs(2);

/// Shows what this balancer would mark out, and writes what its region agreed on.
pub(super) async fn agree(
    member: Arc<Member>,
    decisions: MarkOutDecisions,
    liveness: watch::Sender<Arc<Document<Liveness>>>,
) {
    let (mut own, mut view) = (decisions.own_view(), member.etcd().view.clone());
    loop {
        let out = own.borrow_and_update().clone();
        if let Some(out) = out {
            show(&liveness, &out);
        }
        let snapshot = view.borrow_and_update().snapshot.clone();
        if let Some(snapshot) = snapshot
            && let Some(region) = &member.settings().region
            && !changes(&snapshot, region).is_empty()
        {
            sleep(SPREAD.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
            write(&member, region).await;
        }
        tokio::select! {
            changed = own.changed() => if changed.is_err() { return },
            changed = view.changed() => if changed.is_err() { return },
        }
    }
}

fn show(liveness: &watch::Sender<Arc<Document<Liveness>>>, out: &MarkedOutByPool) {
    let out = out.iter().filter(|(_, out)| !out.is_empty());
    let out: MarkedOutByPool = out.map(|(pool, out)| (pool.clone(), out.clone())).collect();
    liveness.send_if_modified(|liveness| {
        let is_new = liveness.body.out != out;
        if is_new {
            let body = Liveness { out: out.clone(), ..liveness.body.clone() };
            *liveness = Arc::new(liveness.replaced_by(body));
        }
        is_new
    });
}

async fn write(member: &Member, region: &Name) {
    let Ok((fleet, snapshot)) = member.base().await else { return };
    write_changes(&fleet, &snapshot, region).await;
}

/// Writes what each region agrees on, also while no balancer follows etcd: after a restore of etcd, so that what it had long
/// ago is not followed for a moment.
pub(super) async fn write_agreed(fleet: &Fleet, snapshot: &Snapshot) {
    let members = snapshot.members.values();
    let regions: BTreeSet<&Name> =
        members.filter_map(|it| it.document.body.region.as_ref()).collect();
    for region in regions {
        write_changes(fleet, snapshot, region).await;
    }
}

async fn write_changes(fleet: &Fleet, snapshot: &Snapshot, region: &Name) {
    let changes = changes(snapshot, region);
    for batch in changes.chunks(MAX_CHANGES) {
        match fleet.write_homes(region, batch).await {
            Ok(_) => {
                let pools: Vec<_> = batch.iter().map(|change| change.pool.to_string()).collect();
                let pools = pools.join(", ");
                tracing::info!("region {region} agreed on what is marked out of pools {pools}");
            }
            // Another balancer was first, or etcd is away: the view says what is left to do.
            Err(error) => tracing::debug!("homes of region {region}: {error}"),
        }
    }
}

/// What has to be written so that etcd has what most balancers of a region say.
fn changes(snapshot: &Snapshot, region: &Name) -> Vec<HomesChange> {
    let is_of_region = |name: &Name| {
        snapshot
            .members
            .get(name)
            .is_some_and(|it| it.document.body.region.as_ref() == Some(region))
    };
    let voters = snapshot.alive.iter().filter(|(name, _)| is_of_region(name));
    // One that has just started has not seen anything yet: that is no vote for taking all back.
    let voters = voters.filter(|(_, it)| it.document.body.revision > 0);
    let votes: Vec<_> = voters.map(|(_, it)| &it.document.body.out).collect();
    let agreed = majority(&votes);
    let there = snapshot.homes.iter().filter(|((of, _), _)| of == region);
    let there: BTreeMap<_, _> = there.map(|((_, pool), it)| (pool, it)).collect();
    let pools: BTreeSet<&Name> = agreed.keys().chain(there.keys().copied()).collect();
    let generation = snapshot.configuration.as_ref();
    let generation = generation.map_or(0, |it| it.committed.document.body.number);
    let change = |pool: &Name| {
        let next = agreed.get(pool).cloned().unwrap_or_default();
        let before = there.get(pool).map(|it| it.document.body.now.clone()).unwrap_or_default();
        if next == before || votes.is_empty() {
            return None;
        }
        let since = wall_clock::now();
        let body = Homes { now: next, before, since, generation };
        let document = match there.get(pool) {
            Some(there) => there.document.replaced_by(body),
            None => body.into(),
        };
        let expected = there.get(pool).map_or(0, |there| there.mod_revision);
        Some(HomesChange { pool: pool.clone(), expected, value: Some(document) })
    };
    pools.into_iter().filter_map(change).collect()
}

/// What more than half of the balancers say, by pool.
fn majority(votes: &[&BTreeMap<Name, MarkedOut>]) -> BTreeMap<Name, MarkedOut> {
    let mut members: BTreeMap<(&Name, IpAddr), usize> = BTreeMap::new();
    let mut regions: BTreeMap<(&Name, &Name), usize> = BTreeMap::new();
    for (pool, out) in votes.iter().flat_map(|vote| vote.iter()) {
        for address in &out.members {
            *members.entry((pool, *address)).or_default() += 1;
        }
        for region in &out.regions {
            *regions.entry((pool, region)).or_default() += 1;
        }
    }
    let mut agreed: BTreeMap<Name, MarkedOut> = BTreeMap::new();
    let is_majority = |count: usize| count * 2 > votes.len();
    for ((pool, address), _) in members.into_iter().filter(|(_, count)| is_majority(*count)) {
        agreed.entry(pool.clone()).or_default().members.insert(address);
    }
    for ((pool, region), _) in regions.into_iter().filter(|(_, count)| is_majority(*count)) {
        agreed.entry(pool.clone()).or_default().regions.insert(region.clone());
    }
    agreed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn vote(members: &[&str], regions: &[&str]) -> BTreeMap<Name, MarkedOut> {
        let members = members.iter().map(|it| it.parse().unwrap()).collect();
        let regions = regions.iter().map(|it| name(it)).collect();
        [(name("web"), MarkedOut { members, regions })].into()
    }

    #[test]
    fn more_than_half_of_the_votes_decide() {
        let (a, b) = (vote(&["10.0.0.1", "10.0.0.2"], &["eu"]), vote(&["10.0.0.1"], &[]));
        let (none, eu) = (BTreeMap::new(), vote(&[], &["eu"]));
        assert_eq!(majority(&[&a]), a, "a balancer that is alone in its region decides");
        assert_eq!(majority(&[&a, &b]), b, "one of two is no majority");
        assert_eq!(majority(&[&a, &b, &none, &none]), none);
        assert_eq!(majority(&[&a, &b, &eu]), vote(&["10.0.0.1"], &["eu"]));
        assert_eq!(majority(&[]), none);
    }
}
