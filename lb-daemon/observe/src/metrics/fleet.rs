//! The fleet in a balancer's exposition.

use std::fmt;

use lb_model::Name;

use super::{
    catalogue::*,
    sheet::{Sheet, Value},
};
use lb_member::{FleetStatus, MemberStatus};

/// The fleet that a balancer is a member of, as it sees it.
#[derive(Clone, Debug)]
pub struct FleetFacts {
    pub fleet: Name,
    /// This balancer's name in it.
    pub balancer: Name,
    pub status: FleetStatus,
}

impl FleetFacts {
    fn is_ready(&self) -> bool {
        self.status.members.get(&self.balancer).is_some_and(|it| it.is_ready)
    }

    /// How many members there are of a kind; `None`: etcd was not read since the start.
    fn count(&self, is_kind: impl Fn(&MemberStatus) -> bool) -> Option<Value> {
        self.status.schema?;
        Some(self.status.members.values().filter(|it| is_kind(it)).count().into())
    }

    /// What etcd had when it was last read; `None`: it was not read since the start.
    fn of_etcd(&self, value: u64) -> Option<Value> {
        self.status.schema.map(|_| value.into())
    }
}

/// A balancer that is no member has none of the samples.
pub(super) fn fleet(sheet: &mut Sheet<'_>, known: Option<&FleetFacts>) -> fmt::Result {
    for (definition, value) in LEVELS {
        sheet.family(definition, known.and_then(value).map(|value| ([], value)))?;
    }
    let groups = known.into_iter().flat_map(|it| &it.status.groups);
    let in_flight = groups.map(|((pool, region), shares)| {
        ([pool.as_str(), region.as_str()], shares.in_flight.fraction().into())
    });
    sheet.family(&GROUP_IN_FLIGHT, in_flight)
}

type Level = (&'static super::Definition, fn(&FleetFacts) -> Option<Value>);

const LEVELS: [Level; 16] = [
    (&FLEET_READY, |it| Some(it.is_ready().into())),
    (&FLEET_BALANCERS, |it| it.count(|_| true)),
    (&FLEET_BALANCERS_ALIVE, |it| it.count(|member| member.is_alive)),
    (&FLEET_BALANCERS_READY, |it| it.count(|member| member.is_ready)),
    (&FLEET_BALANCERS_DIFFERING, |it| it.count(|member| member.tables_agree == Some(false))),
    (&FLEET_ETCD_AVAILABLE, |it| Some(it.status.etcd_problem.is_none().into())),
    (&FLEET_ETCD_DATABASE, |it| it.status.space.map(|it| it.size.into())),
    (&FLEET_ETCD_DATABASE_IN_USE, |it| it.status.space.map(|it| it.in_use.into())),
    (&FLEET_ETCD_QUOTA, |it| it.status.space.map(|it| it.quota.into())),
    (&FLEET_CONFLICT, |it| Some(it.status.conflict.is_some().into())),
    (&FLEET_GENERATION, |it| it.of_etcd(it.status.generation)),
    (&FLEET_REVISION, |it| it.of_etcd(it.status.revision.unsigned_abs())),
    (&FLEET_REVISION_IN_FORCE, |it| Some(it.status.revision_in_force.unsigned_abs().into())),
    (&FLEET_SCHEMA_REVISION, |it| it.status.schema.map(|schema| u64::from(schema).into())),
    (&FLEET_EPOCH, |it| it.of_etcd(it.status.epoch)),
    (&FLEET_EPOCH_OPEN, |it| it.of_etcd(it.status.epoch_open.into())),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lb_fleet::{documents::FleetMember, space::EtcdSpace};
    use lb_sharing::Parts;
    use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};

    use super::*;
    use lb_member::GroupShares;

    #[derive(Debug)]
    struct Exposed(Option<FleetFacts>);

    impl Collector for Exposed {
        fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
            fleet(&mut Sheet::new(encoder), self.0.as_ref())
        }
    }

    fn samples(facts: Option<FleetFacts>) -> Vec<String> {
        let text = super::super::exposition(Exposed(facts)).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn member(is_alive: bool, is_ready: bool, tables_agree: bool) -> MemberStatus {
        let member = FleetMember {
            address: "192.0.2.1:7946".parse().unwrap(),
            region: None,
            incarnation: 1,
            epoch: 0,
            version: "0.1.0".into(),
            schema: 1,
        };
        MemberStatus {
            member,
            is_alive,
            liveness: None,
            is_ready,
            not_ready: String::new(),
            digest: String::new(),
            compared_with: None,
            tables_agree: Some(tables_agree),
            differing_pools: Vec::new(),
            version: "0.1.0".into(),
            schema: Some(1),
            conditions: Vec::new(),
            heard_ago: None,
            peer_problem: None,
        }
    }

    #[test]
    fn each_level_is_that_of_the_status() {
        let members = [
            ("lb-1", member(true, true, true)),
            ("lb-2", member(true, true, false)),
            ("lb-3", member(true, false, true)),
            ("lb-4", member(false, false, true)),
        ];
        // A quarter of the whole.
        let shares = GroupShares { in_flight: Parts(1 << 30), ..GroupShares::default() };
        let status = FleetStatus {
            etcd_problem: Some(("no leader".into(), None)),
            space: Some(EtcdSpace { size: 900, in_use: 700, quota: 1_000 }),
            conflict: Some("older".into()),
            revision: 41,
            revision_in_force: 40,
            generation: 8,
            schema: Some(1),
            members: members.map(|(text, it)| (name(text), it)).into(),
            groups: BTreeMap::from([((name("web"), name("eu")), shares)]),
            epoch: 3,
            epoch_open: true,
            being_forgotten: vec![name("lb-4")],
        };
        let facts = FleetFacts { fleet: name("edge"), balancer: name("lb-1"), status };
        let expected = [
            "spillway_fleet_ready 1",
            "spillway_fleet_balancers 4",
            "spillway_fleet_balancers_alive 3",
            "spillway_fleet_balancers_ready 2",
            "spillway_fleet_balancers_differing 1",
            "spillway_fleet_etcd_available 0",
            "spillway_fleet_etcd_database_bytes 900",
            "spillway_fleet_etcd_database_in_use_bytes 700",
            "spillway_fleet_etcd_quota_bytes 1000",
            "spillway_fleet_conflict 1",
            "spillway_fleet_generation 8",
            "spillway_fleet_revision 41",
            "spillway_fleet_revision_in_force 40",
            "spillway_fleet_schema_revision 1",
            "spillway_fleet_epoch 3",
            "spillway_fleet_epoch_open 1",
            "spillway_group_in_flight_ratio{pool=\"web\",region=\"eu\"} 0.25",
        ];
        assert_eq!(samples(Some(facts)), expected);
    }

    /// A daemon that has not read etcd since it started does not say that its fleet has nobody else.
    #[test]
    fn what_is_not_known_is_absent() {
        assert_eq!(samples(None), Vec::<String>::new());
        let members = [(name("lb-1"), member(false, false, true))].into();
        let status = FleetStatus { members, revision_in_force: 40, ..FleetStatus::default() };
        let facts = FleetFacts { fleet: name("edge"), balancer: name("lb-1"), status };
        let expected = [
            "spillway_fleet_ready 0",
            "spillway_fleet_etcd_available 1",
            "spillway_fleet_conflict 0",
            "spillway_fleet_revision_in_force 40",
        ];
        assert_eq!(samples(Some(facts)), expected);
    }
}
