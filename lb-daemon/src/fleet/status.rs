//! The fleet as one of its balancers sees it.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use lb_fleet::{
    documents::{FleetMember, Liveness},
    reader::{Connection, Snapshot},
};
use lb_model::Name;
use lb_sharing::{GroupKey, Parts, ReportedCapacity};

use xxhash_rust::xxh64::Xxh64;

use super::{
    Member,
    membership::has_been_forgotten,
    sharing::{self, PeerStatus},
    wall_clock,
};

/// What [`Member::status`] answers.
#[derive(Clone, Debug, Default)]
pub struct FleetStatus {
    /// What is wrong with etcd, and since when.
    pub etcd_problem: Option<(String, Option<SystemTime>)>,
    /// Why etcd is not followed.
    pub conflict: Option<String>,
    /// Of etcd, when it was last read.
    pub revision: i64,
    pub generation: u64,
    pub members: BTreeMap<Name, MemberStatus>,
    pub groups: BTreeMap<(Name, Name), GroupShares>,
    pub epoch: u64,
    pub being_forgotten: Vec<Name>,
}

/// A balancer of the fleet.
#[derive(Clone, Debug)]
pub struct MemberStatus {
    pub member: FleetMember,
    /// Whether it renews its lease in etcd.
    pub is_alive: bool,
    /// What it says of itself; `None`: nothing is known.
    pub liveness: Option<Liveness>,
    pub is_ready: bool,
    /// Of all its tables; empty: unknown.
    pub digest: String,
    /// Pools whose tables differ from those of this balancer, at the same revision.
    pub differing_pools: Vec<Name>,
    pub conditions: Vec<String>,
    /// Since its last message to this balancer.
    pub heard_ago: Option<Duration>,
    /// Why messages do not get there.
    pub peer_problem: Option<String>,
}

/// How the capacity of a group is shared.
#[derive(Clone, Debug, Default)]
pub struct GroupShares {
    pub capacity: Option<ReportedCapacity>,
    /// The portion of each balancer, and the connections a second that it is offered.
    pub shares: BTreeMap<Name, (Parts, f64)>,
}

impl Member {
    /// The fleet as this balancer sees it.
    pub fn status(&self) -> FleetStatus {
        let view = self.view();
        let in_force = self.in_force();
        let mut status = FleetStatus { conflict: in_force.conflict, ..FleetStatus::default() };
        status.etcd_problem = view.connection.sentence().map(|sentence| {
            let since = match &view.connection {
                Connection::Lost { since, .. } => wall_clock::ago(since.elapsed()),
                _ => None,
            };
            (sentence, since)
        });
        let sharing = {
            let status = self.sharing().status();
            let status = status.borrow();
            status.clone()
        };
        // Known without etcd too.
        for (group, share) in &sharing.groups {
            let shares = self.entry(&mut status.groups, group);
            shares.capacity = share.capacity;
            let own = (share.enforced, share.demand.unwrap_or_default());
            shares.shares.insert(self.settings().name.clone(), own);
        }
        // The last that was heard of a balancer is what the others have by now if they have forgotten it.
        let is_forgotten = |name: &Name| {
            let snapshot = view.snapshot.as_ref();
            snapshot.is_some_and(|snapshot| has_been_forgotten(snapshot, name))
        };
        for (name, peer) in sharing.peers.iter().filter(|(name, _)| !is_forgotten(name)) {
            for (group, report) in &*peer.groups {
                let shares = self.entry(&mut status.groups, group);
                shares.shares.insert(name.clone(), (report.owned, report.demand));
            }
        }
        let Some(snapshot) = view.snapshot else {
            // Since the daemon started, etcd was not read: this balancer knows itself.
            status.members.insert(self.settings().name.clone(), self.own_status());
            return status;
        };
        status.revision = snapshot.revision;
        let current = snapshot.configuration.as_ref();
        status.generation = current.map_or(0, |it| it.committed.document.body.number);
        status.epoch = snapshot.epoch.as_ref().map_or(0, |epoch| epoch.number);
        let open = snapshot.epoch.iter().filter(|epoch| !epoch.closed);
        status.being_forgotten = open.flat_map(|epoch| epoch.forgotten.iter().cloned()).collect();
        for name in snapshot.members.keys() {
            if let Some(member) = self.member_status(&snapshot, name, sharing.peers.get(name)) {
                status.members.insert(name.clone(), member);
            }
        }
        status
    }

    fn entry<'s>(
        &self,
        groups: &'s mut BTreeMap<(Name, Name), GroupShares>,
        group: &GroupKey,
    ) -> &'s mut GroupShares {
        groups.entry((group.pool.clone(), group.region.clone())).or_default()
    }

    /// This balancer as far as it knows itself. Whether its lease is renewed only etcd knows.
    fn own_status(&self) -> MemberStatus {
        let (settings, in_force) = (self.settings(), self.in_force());
        let known = Liveness {
            version: sharing::PROGRAM_VERSION.into(),
            revision: in_force.revision,
            generation: in_force.generation,
            ..Liveness::default()
        };
        MemberStatus {
            member: FleetMember {
                address: settings.address,
                region: settings.region.clone(),
                incarnation: 0,
                epoch: 0,
            },
            is_alive: false,
            liveness: Some(known),
            is_ready: self.is_ready(),
            digest: String::new(),
            differing_pools: Vec::new(),
            conditions: Vec::new(),
            heard_ago: None,
            peer_problem: None,
        }
    }

    fn member_status(
        &self,
        snapshot: &Snapshot,
        name: &Name,
        peer: Option<&PeerStatus>,
    ) -> Option<MemberStatus> {
        let liveness = |name: &Name| snapshot.alive.get(name).map(|it| it.document.body.clone());
        let (own, theirs) = (liveness(&self.settings().name), liveness(name));
        let differing_pools = match (&own, &theirs) {
            (Some(own), Some(theirs)) if own.revision == theirs.revision => differing(own, theirs),
            _ => Vec::new(),
        };
        // What etcd has of this balancer itself may be old.
        let is_ready = match *name == self.settings().name {
            true => self.is_ready(),
            false => theirs.as_ref().is_some_and(|it| it.ready),
        };
        let conditions = theirs.iter().flat_map(|it| it.conditions.iter().cloned()).collect();
        Some(MemberStatus {
            member: snapshot.members.get(name)?.document.body.clone(),
            is_ready,
            digest: theirs.as_ref().map(digest).unwrap_or_default(),
            is_alive: theirs.is_some(),
            liveness: theirs,
            differing_pools,
            conditions,
            heard_ago: peer.and_then(|peer| peer.last_heard).map(|at| at.elapsed()),
            peer_problem: peer.and_then(|peer| peer.errors.sentence()),
        })
    }
}

fn differing(own: &Liveness, theirs: &Liveness) -> Vec<Name> {
    let pools = own.tables.keys().chain(theirs.tables.keys());
    let differ = |pool: &&Name| own.tables.get(*pool) != theirs.tables.get(*pool);
    let mut pools: Vec<Name> = pools.filter(differ).cloned().collect();
    pools.sort();
    pools.dedup();
    pools
}

fn digest(liveness: &Liveness) -> String {
    let mut hash = Xxh64::new(0);
    for (pool, digest) in &liveness.tables {
        hash.update(pool.as_str().as_bytes());
        hash.update(digest.as_bytes());
    }
    if liveness.tables.is_empty() { String::new() } else { format!("{:016x}", hash.digest()) }
}
