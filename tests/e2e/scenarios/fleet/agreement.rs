//! What all balancers have in common once the faults are over.

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::FleetFixture;
use lb_tests::{
    process::{PATIENCE, until},
    traffic::LongConnections,
};
use spillway_proto::v1::{BackendState, BackendStatus};

use super::calls::{WHOLE, own_portion, wait_for_whole};
use super::members::{problems, status};

/// The longest that anything may take after many faults at once.
pub(super) const LONG_PATIENCE: std::time::Duration = PATIENCE.saturating_mul(3);

/// Waits until all are members and ready, with the same in force, and own one whole of the capacity. Answers the
/// generation.
pub(super) fn wait_for_agreement(
    fleet: &mut FleetFixture,
    connections: &LongConnections,
) -> Result<u64> {
    fleet.etcd.as_mut().context("no etcd")?.start_all()?;
    fleet.balancers.iter_mut().try_for_each(|it| it.wait_until_it_answers())?;
    for balancer in 0..fleet.balancers.len() {
        until("it is a member", LONG_PATIENCE, || {
            connections.ensure_open()?;
            if status(fleet, balancer)?.member {
                return Ok(Some(()));
            }
            // Refused as long as the others take it for alive, or while a join from before is under way.
            fleet.balancers[balancer].try_cli(&["fleet", "join", "--yes"], None).map(|_| None)
        })
        .with_context(|| fleet.name(balancer).to_owned())?;
    }
    let generation = until("all agree", LONG_PATIENCE, || {
        connections.ensure_open()?;
        agreed(fleet)
    })?;
    wait_until_up(fleet)?;
    let everyone: Vec<_> = (0..fleet.balancers.len()).collect();
    for at in 0..fleet.balancers.len() {
        wait_for_whole(fleet, at, &everyone)?;
    }
    let exports = everyone.iter().map(|it| fleet.spillway(*it, &["export"]));
    let exports = exports.collect::<Result<Vec<_>>>()?;
    ensure!(exports.windows(2).all(|pair| pair[0] == pair[1]), "{exports:#?}");
    let overrides = fleet.balancers.iter().map(|balancer| {
        let mut overrides = balancer.overrides()?.overrides;
        // That each of them knows by itself.
        overrides.iter_mut().for_each(|it| it.absent_since = None);
        Ok(overrides)
    });
    let overrides = overrides.collect::<Result<Vec<_>>>()?;
    ensure!(overrides.windows(2).all(|pair| pair[0] == pair[1]), "{overrides:#?}");
    // What each says that it owns. They are asked one after the other, so none may move meanwhile.
    let mut before = Vec::new();
    until("what balancers own is one whole", LONG_PATIENCE, || {
        let now = everyone.iter().map(|it| own_portion(fleet, *it)).collect::<Result<Vec<_>>>()?;
        let sum: f64 = now.iter().sum();
        let is_still = now == before;
        ensure!(!is_still || sum <= WHOLE, "{sum} of the capacity is owned: {now:?}");
        before = now;
        Ok((is_still && sum > 2.0 - WHOLE).then_some(()))
    })?;
    Ok(generation)
}

/// The generation that all have in force, if there is nothing that any of them complains of.
fn agreed(fleet: &FleetFixture) -> Result<Option<u64>> {
    let mut seen = Vec::new();
    for at in 0..fleet.balancers.len() {
        let status = status(fleet, at)?;
        let (generation, revision) = (status.generation, status.revision);
        let are_in_force = status.members.iter().all(|it| {
            (it.generation, it.revision) == (generation, revision) && it.ready && it.alive
        });
        let is_complete = status.members.len() == fleet.balancers.len();
        if !is_complete || !are_in_force || !problems(fleet, at)?.is_empty() {
            return Ok(None);
        }
        seen.extend(status.members.into_iter().map(|it| (generation, revision, it.tables)));
    }
    let is_one = seen.windows(2).all(|pair| pair[0] == pair[1]);
    let first = seen.first().filter(|(_, _, tables)| is_one && !tables.is_empty());
    Ok(first.map(|(generation, ..)| *generation).filter(|generation| *generation > 0))
}

/// Waits until all backends that are configured have passed their checks at each balancer.
pub(super) fn wait_until_up(fleet: &mut FleetFixture) -> Result<()> {
    for balancer in &fleet.balancers {
        until("backends are up", LONG_PATIENCE, || {
            let backends = balancer.status()?.backends;
            let is_up = |it: &BackendStatus| {
                // Drained by an override, and up otherwise.
                matches!(it.state(), BackendState::Up | BackendState::Draining)
                    && it.next_hop_resolved
            };
            Ok((!backends.is_empty() && backends.iter().all(is_up)).then_some(()))
        })
        .with_context(|| balancer.cli(&["status"]).unwrap_or_else(|error| format!("{error:#}")))?;
    }
    Ok(())
}
