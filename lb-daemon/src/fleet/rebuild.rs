//! What home meant before the last change, at a balancer whose maps do not know it.
//!
//! A balancer that joins, or lost its maps, gets flows that other balancers placed before the last change. It first puts in
//! force what the fleet had then, and the present on top of it, so that its packet path keeps the previous home as that of
//! the others does. The time for which it is kept begins anew, so it is kept no shorter than theirs.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use lb_control::state::MarkedOutByPool;
use lb_fleet::{
    documents::{Homes, WallTime},
    reader::{Snapshot, Versioned},
};
use lb_model::{Configuration, Name};

/// What was in force before changes whose flows may still be open.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Previous {
    /// `None`: no other generation than the present one.
    pub(super) generation: Option<u64>,
    /// What was marked out, by pool; `None`: the same as now.
    pub(super) homes: Option<MarkedOutByPool>,
}

/// What to put in force before the present. `configuration` is the present one; its settle times say how long flows keep
/// their previous home.
pub(super) fn previous(
    snapshot: &Snapshot,
    configuration: &Configuration,
    region: Option<&Name>,
    now: WallTime,
) -> Previous {
    let settle = configuration.pools.values().map(|pool| pool.settle_time).max();
    let settle = settle.unwrap_or(Duration::ZERO);
    let is_recent = |time: WallTime| time.age(now) < settle;
    // Of several changes within the settle time the oldest previous home is kept, as the packet path does.
    let applied = |number: &u64| snapshot.history.get(number).map(|it| it.document.body.applied_at);
    let numbers: Vec<u64> = snapshot.history.keys().copied().collect();
    let replaced = numbers.windows(2).find(|pair| applied(&pair[1]).is_some_and(is_recent));
    let of_region = |((of, pool), it): (&(Name, Name), &Versioned<Homes>)| {
        let homes = &it.document.body;
        let shown = if is_recent(homes.since) { &homes.before } else { &homes.now };
        (Some(of) == region).then(|| (pool.clone(), shown.clone()))
    };
    let has_recent = snapshot
        .homes
        .iter()
        .any(|((of, _), it)| Some(of) == region && is_recent(it.document.body.since));
    let homes: MarkedOutByPool = snapshot.homes.iter().filter_map(of_region).collect();
    Previous { generation: replaced.map(|pair| pair[0]), homes: has_recent.then_some(homes) }
}

/// What is marked out for a region now.
pub(super) fn present(snapshot: &Snapshot, region: Option<&Name>) -> Arc<MarkedOutByPool> {
    let of_region = snapshot.homes.iter().filter(|((of, _), _)| Some(of) == region);
    let now = of_region.map(|((_, pool), it)| (pool.clone(), it.document.body.now.clone()));
    Arc::new(now.collect::<BTreeMap<_, _>>())
}
