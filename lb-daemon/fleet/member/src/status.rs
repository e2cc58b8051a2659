//! The fleet as one of its balancers sees it.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use lb_fleet::{
    documents::{FleetMember, Liveness},
    reader::{Connection, Understood},
    space::EtcdSpace,
};
use lb_model::Name;
use lb_sharing::{GroupKey, Parts, ReportedCapacity};

use super::{
    Member,
    membership::has_been_forgotten,
    sharing::{self, PeerStatus},
    table_comparison::{self, TableComparison},
    versions, wall_clock,
};

/// What [`Member::status`] answers.
#[derive(Clone, Debug, Default)]
pub struct FleetStatus {
    /// What is wrong with etcd, and since when.
    pub etcd_problem: Option<(String, Option<SystemTime>)>,
    /// Of etcd's database; `None`: it was not asked yet.
    pub space: Option<EtcdSpace>,
    /// Why etcd is not followed.
    pub conflict: Option<String>,
    /// Of etcd, when it was last read.
    pub revision: i64,
    /// That this balancer has in force.
    pub revision_in_force: i64,
    /// Of etcd, when it was last read.
    pub generation: u64,
    /// The latest schema revision of configurations that all members understand; `None`: unknown.
    pub schema: Option<u32>,
    pub members: BTreeMap<Name, MemberStatus>,
    pub groups: BTreeMap<(Name, Name), GroupShares>,
    pub epoch: u64,
    /// Portions do not move until all members have said what they own.
    pub epoch_open: bool,
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
    /// Why it is not; empty: it is, or nothing is known.
    pub not_ready: String,
    /// Of all its tables; empty: unknown.
    pub digest: String,
    /// Whose tables its own are compared with; `None`: they cannot be compared.
    pub compared_with: Option<Name>,
    /// Whether they are equal; `None`: they cannot be compared.
    pub tables_agree: Option<bool>,
    /// Pools whose tables differ from that one's, as far as [`Member::name_differing_pools`] found out.
    pub differing_pools: Vec<Name>,
    /// Of its program: now, or at its last start. Empty: unknown.
    pub version: String,
    /// The latest schema revision of configurations that its program understands; `None`: unknown.
    pub schema: Option<u32>,
    pub conditions: Vec<String>,
    /// Since its last message to this balancer.
    pub heard_ago: Option<Duration>,
    /// Why messages to it or from it are not taken.
    pub peer_problem: Option<String>,
}

/// How the capacity of a group is shared.
#[derive(Clone, Debug, Default)]
pub struct GroupShares {
    pub capacity: Option<ReportedCapacity>,
    /// The portion of each balancer, and the connections a second that it is offered.
    pub shares: BTreeMap<Name, (Parts, f64)>,
    /// What this balancer gave to others that they are not known to have.
    pub in_flight: Parts,
}

impl GroupShares {
    /// New connections a second of the whole fleet; `None`: no limit, or not known.
    pub fn capacity_per_second(&self) -> Option<f64> {
        self.capacity.and_then(|capacity| match capacity {
            ReportedCapacity::Unlimited => None,
            ReportedCapacity::Closed => Some(0.0),
            ReportedCapacity::PerSecond(rate) => Some(rate),
        })
    }
}

/// What is known of a member: from etcd, and of this balancer itself what it has in force.
struct KnownMember {
    member: FleetMember,
    is_alive: bool,
    /// Of this balancer itself also while it is not alive.
    liveness: Option<Liveness>,
    understood: Understood,
}

impl Member {
    /// The fleet as this balancer sees it.
    pub fn status(&self) -> FleetStatus {
        let view = self.view();
        let in_force = self.in_force();
        let mut status = FleetStatus {
            space: self.space(),
            conflict: in_force.conflict,
            revision_in_force: in_force.revision,
            ..FleetStatus::default()
        };
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
            shares.in_flight = share.on_its_way;
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
        status.epoch_open = open.clone().next().is_some();
        status.being_forgotten = open.flat_map(|epoch| epoch.forgotten.iter().cloned()).collect();
        let mut understood = snapshot.understood();
        // What etcd has of this balancer may be of its last start.
        understood.insert(self.name().clone(), self.understood());
        status.schema = understood.values().map(|it| it.schema).min();
        let comparisons = table_comparison::compare(&snapshot, self.name());
        for (name, understood) in understood {
            let Some(member) = snapshot.members.get(&name) else { continue };
            let (peer, compared) = (sharing.peers.get(&name), comparisons.get(&name));
            let mut known = snapshot.alive.get(&name).map(|it| it.document.body.clone());
            if name == *self.name() {
                // Etcd has it a moment later, or not at all.
                let (in_force, own) = (self.in_force(), known.get_or_insert_default());
                (own.revision, own.generation) = (in_force.revision, in_force.generation);
            }
            let is_alive = snapshot.alive.contains_key(&name);
            let member = member.document.body.clone();
            let known = KnownMember { member, is_alive, liveness: known, understood };
            let shown = self.member_status(&name, known, compared, peer);
            status.members.insert(name, shown);
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
        let Understood { schema, version, .. } = self.understood();
        let known = Liveness {
            version: version.clone(),
            schema,
            revision: in_force.revision,
            generation: in_force.generation,
            ..Liveness::default()
        };
        let (address, region) = (settings.address, settings.region.clone());
        let (is_ready, not_ready) = self.readiness();
        let member = FleetMember {
            address,
            region,
            incarnation: 0,
            epoch: 0,
            version: version.clone(),
            schema,
        };
        MemberStatus {
            member,
            is_alive: false,
            liveness: Some(known),
            is_ready,
            not_ready,
            digest: String::new(),
            compared_with: None,
            tables_agree: None,
            differing_pools: Vec::new(),
            version,
            schema: Some(schema),
            conditions: Vec::new(),
            heard_ago: None,
            peer_problem: None,
        }
    }

    /// Whether this balancer is ready, and why not.
    fn readiness(&self) -> (bool, String) {
        let cause = self.not_ready();
        (cause.is_none(), cause.unwrap_or_default())
    }

    /// What this program understands.
    fn understood(&self) -> Understood {
        let (schema, version) = (versions::own_schema(), sharing::PROGRAM_VERSION.into());
        Understood { schema, version, is_alive: true }
    }

    fn member_status(
        &self,
        name: &Name,
        KnownMember { member, is_alive, liveness, understood }: KnownMember,
        compared: Option<&TableComparison>,
        peer: Option<&PeerStatus>,
    ) -> MemberStatus {
        // What etcd has of this balancer itself may be old.
        let (is_ready, not_ready) = match *name == self.settings().name {
            true => self.readiness(),
            false => liveness
                .as_ref()
                .map_or((false, String::new()), |it| (it.ready, it.not_ready.clone())),
        };
        let conditions = liveness.iter().flat_map(|it| it.conditions.iter().cloned()).collect();
        MemberStatus {
            member,
            is_ready,
            not_ready,
            digest: liveness.as_ref().map(|it| it.digest.clone()).unwrap_or_default(),
            is_alive,
            liveness,
            compared_with: compared.map(|it| it.with.clone()),
            tables_agree: compared.map(|it| it.agree),
            differing_pools: Vec::new(),
            version: understood.version,
            schema: Some(understood.schema),
            conditions,
            heard_ago: peer.and_then(|peer| peer.last_heard).map(|at| at.elapsed()),
            peer_problem: peer.and_then(|peer| peer.errors.sentence()),
        }
    }
}
