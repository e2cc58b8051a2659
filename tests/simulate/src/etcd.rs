//! What a fleet of a size asks of etcd: computed from real documents and the daemon's intervals, not measured. Only the
//! epoch is: what follows from the contributions of all.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use lb_fleet::{
    Document,
    documents::{FleetMember, Generation, Liveness},
};
use lb_model::Name;
use lb_pieces::Digest;
use lb_sharing::epoch::{Contribution, Epoch, compute_result};

use crate::{
    cost::timed,
    fleet::{Fleet, Size, name},
};

/// As in the daemon (`presence.rs`): each balancer renews its lease at this interval, and asks whether it holds its key.
const RENEW_EVERY: f64 = 3.0;
const CALLS_OF_A_RENEWAL: f64 = 2.0;
/// As in the daemon (`reader/mod.rs`): each balancer reads everything but the history at this interval.
const READ_AGAIN: f64 = 60.0;
/// Generations that are kept.
const HISTORY: usize = 20;
/// Pieces that pools are put into (`store/src/pieces.rs`). One more has the rest of a configuration.
const POOL_PIECES: usize = 256;

/// What etcd has and does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EtcdFigures {
    /// Bytes of one balancer's `alive/`, of `config/current`, and of all keys but the configuration's pieces.
    pub(crate) alive: usize,
    pub(crate) generation: usize,
    pub(crate) all: usize,
    /// Calls a second for leases, bytes a second for reading all again.
    pub(crate) calls: f64,
    pub(crate) read: f64,
    /// Writes of one Apply, and the bytes that watches carry for it.
    pub(crate) writes: usize,
    pub(crate) watched: f64,
}

/// # Errors
/// A document cannot be written.
pub(crate) fn figures(size: Size) -> Result<EtcdFigures> {
    let names = (0..size.balancers).map(|at| name("lb", at)).collect::<Result<BTreeSet<Name>>>()?;
    let pools = (0..size.pools).map(|at| name("pool", at)).collect::<Result<Vec<Name>>>()?;
    let regions = (0..size.regions).map(|at| name("region", at)).collect::<Result<Vec<Name>>>()?;
    let liveness = Liveness {
        version: lb_peers::PROGRAM_VERSION.into(),
        schema: 1,
        revision: 1_000_000,
        generation: 1_000,
        ready: true,
        digest: format!("{:016x}", u64::MAX),
        ..Liveness::default()
    };
    let member = FleetMember {
        address: SocketAddr::from(([10, 0, 0, 1], 7946)),
        region: regions.first().cloned(),
        incarnation: 10,
        epoch: 3,
        version: lb_peers::PROGRAM_VERSION.into(),
        schema: 1,
    };
    let births: BTreeMap<_, _> = regions.iter().map(|region| (region.clone(), 1)).collect();
    let generation = Generation {
        number: 1_000,
        parent: Some(Digest::new(b"parent")),
        attempt: "0".repeat(32),
        pieces: vec![Digest::new(b"piece"); size.pools.min(POOL_PIECES) + 1],
        size: 1,
        live: names.clone(),
        births: pools.iter().map(|pool| (pool.clone(), births.clone())).collect(),
        owners: BTreeMap::from([(1, names)]),
        restored: 0,
        settles_ms: 0,
        author: "operator".into(),
        reason: "weights".into(),
        applied_at: SystemTime::now().into(),
    };
    let alive = Document::from(liveness).write("alive")?.len();
    let member = Document::from(member).write("members")?.len();
    let generation = Document::from(generation).write("config/current")?.len();
    let count = size.balancers as f64;
    let read = size.balancers * (alive + member) + generation;
    let all = read + HISTORY * generation;
    Ok(EtcdFigures {
        alive,
        generation,
        all,
        calls: count * CALLS_OF_A_RENEWAL / RENEW_EVERY,
        read: count * read as f64 / READ_AGAIN,
        writes: 1 + size.balancers,
        // The generation comes twice: as the current one and in the history.
        watched: count * (count * alive as f64 + 2.0 * generation as f64),
    })
}

/// Bytes of the largest contribution to an epoch, and the CPU time of [`compute_result`], in which the last balancer of the
/// fleet is forgotten.
///
/// # Errors
/// A contribution cannot be written.
pub(crate) fn epoch(fleet: &Fleet) -> Result<(usize, Duration)> {
    let contribution = |ledger: &lb_sharing::Ledger| Contribution {
        owned: ledger.owned.clone(),
        pairs: ledger.pairs.clone(),
    };
    let mut contributions: BTreeMap<Name, Contribution> = fleet
        .balancers
        .iter()
        .map(|it| (it.sharing.name().clone(), contribution(it.sharing.ledger())))
        .collect();
    let (forgotten, _) = contributions.pop_last().context("a fleet has balancers")?;
    let sizes =
        contributions.values().map(|it| Ok(Document::from(it.clone()).write("shares")?.len()));
    let largest = sizes.collect::<Result<Vec<usize>>>()?.into_iter().max().unwrap_or_default();
    let epoch = Epoch {
        number: 1,
        generation: 1,
        forgotten: BTreeSet::from([forgotten]),
        contributions,
        closed: true,
    };
    let mut took = Duration::ZERO;
    let result = timed(&mut took, || compute_result(&epoch));
    anyhow::ensure!(result.len() == fleet.groups.keys.len(), "groups are missing in the epoch");
    Ok((largest, took))
}
