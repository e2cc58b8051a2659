//! What was counted, as messages.

use spillway_proto::v1;

use crate::stats::{
    BackendStats, Budget, EventStats, GroupStats, ServiceStats, Stats, Table, Traffic, VerdictStats,
};

impl From<Stats> for v1::StatsResponse {
    fn from(Stats { verdicts, services, backends, groups, remembered }: Stats) -> Self {
        Self {
            verdicts: verdicts.into_iter().map(Into::into).collect(),
            services: services.into_iter().map(Into::into).collect(),
            backends: backends.into_iter().map(Into::into).collect(),
            groups: groups.into_iter().map(Into::into).collect(),
            tables: remembered.tables.into_iter().map(Into::into).collect(),
            budgets: remembered.budgets.into_iter().map(Into::into).collect(),
            events: remembered.events.into_iter().map(Into::into).collect(),
            open_gates: remembered.open_gates,
        }
    }
}

impl From<VerdictStats> for v1::VerdictStats {
    fn from(VerdictStats { verdict, action, packets, bytes }: VerdictStats) -> Self {
        Self { verdict: verdict.into(), action: action.into(), packets, bytes }
    }
}

impl From<Traffic> for v1::Traffic {
    fn from(Traffic { packets, bytes, connections }: Traffic) -> Self {
        Self { packets, bytes, connections }
    }
}

impl From<ServiceStats> for v1::ServiceStats {
    fn from(ServiceStats { service, endpoint, protocol, pool, traffic }: ServiceStats) -> Self {
        Self { service, endpoint, protocol, pool, traffic: Some(traffic.into()) }
    }
}

impl From<BackendStats> for v1::BackendStats {
    fn from(BackendStats { backend, pools, traffic }: BackendStats) -> Self {
        Self { backend, pools: pools.into_iter().collect(), traffic: Some(traffic.into()) }
    }
}

impl From<GroupStats> for v1::GroupStats {
    fn from(GroupStats { pool, region, connections }: GroupStats) -> Self {
        Self { pool, region, counters: Some(connections.into()) }
    }
}

impl From<Table> for v1::TableStats {
    fn from(Table { table, ip, held, room }: Table) -> Self {
        Self { table: table.into(), ip: ip.into(), held, room }
    }
}

impl From<Budget> for v1::BudgetStats {
    fn from(Budget { budget, ip, per_second }: Budget) -> Self {
        Self { budget: budget.into(), ip: ip.into(), per_second }
    }
}

impl From<EventStats> for v1::EventStats {
    fn from(EventStats { event, count, .. }: EventStats) -> Self {
        Self { event: event.into(), count }
    }
}
