//! A balancer's exposition.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::SystemTime,
};

use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};

use super::{
    FleetFacts, Live, build,
    catalogue::*,
    credentials,
    live::seconds,
    sheet::{Sheet, Value},
    verdicts,
};
use lb_base::loops::LoopCounters;
use lb_control::{
    command::{BackendStatus, Regions, Status},
    loops::AllLoopCounters,
};
use lb_inspect::stats::Stats;
use lb_maps::Component;
use lb_model::{MemberState, NamedValue as _, overrides::Kind as OverrideKind};
use lb_secure::refusals::{ApiLimit, ApiListener};
use lb_store::HistoryEntry;

/// All that is known of a balancer at one moment.
#[derive(Clone, Debug)]
pub struct Facts {
    /// What the packet path counted.
    pub stats: Stats,
    /// How everything is.
    pub status: Status,
    /// Demand against capacity.
    pub regions: Regions,
    /// The last generations, by number.
    pub generations: Vec<HistoryEntry>,
    /// `None`: it is no member of a fleet.
    pub fleet: Option<FleetFacts>,
    /// What the daemon counted.
    pub live: Live,
    /// The digest of its packet program; `None`: this build has none.
    pub packet_program: Option<u64>,
    /// When it was read.
    pub at: SystemTime,
}

/// Facts as a collector has them.
#[derive(Debug)]
pub(super) struct Balancer(pub(super) Arc<Facts>);

impl Collector for Balancer {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (mut sheet, facts) = (Sheet::new(encoder), &*self.0);
        let component = Component::Balancer.to_string();
        verdicts(&mut sheet, &component, &facts.stats.verdicts)?;
        services(&mut sheet, facts)?;
        backends(&mut sheet, facts)?;
        super::groups::groups(&mut sheet, facts)?;
        super::fleet::fleet(&mut sheet, facts.fleet.as_ref())?;
        pools(&mut sheet, facts)?;
        remembered(&mut sheet, facts)?;
        generation(&mut sheet, &facts.status, &facts.live)?;
        let modes = facts.status.interfaces.iter();
        let attached =
            modes.map(|it| ([component.as_str(), it.name.as_str()], it.mode.is_some().into()));
        sheet.family(&INTERFACE_ATTACHED, attached)?;
        super::interfaces::interfaces(&mut sheet, &facts.stats.interfaces)?;
        daemon(&mut sheet, &facts.live)?;
        let region = facts.status.region.as_ref().map(ToString::to_string).unwrap_or_default();
        let started = facts.at - facts.status.uptime;
        build(&mut sheet, Component::Balancer, &region, started, facts.packet_program)
    }
}

fn services(sheet: &mut Sheet<'_>, facts: &Facts) -> fmt::Result {
    let services = || facts.stats.services.iter();
    let info = services().map(|s| {
        let labels = [&s.service, &s.endpoint, &s.protocol, &s.pool];
        (labels.map(String::as_str), Value::Info)
    });
    sheet.family(&SERVICE, info)?;
    let of = |value: fn(&lb_inspect::stats::Traffic) -> u64| {
        services().map(move |s| ([s.service.as_str()], value(&s.traffic).into()))
    };
    sheet.family(&SERVICE_PACKETS, of(|t| t.packets))?;
    sheet.family(&SERVICE_BYTES, of(|t| t.bytes))?;
    sheet.family(&SERVICE_CONNECTIONS, of(|t| t.connections))?;
    let known = || facts.status.services.iter();
    sheet.family(&SERVICE_BACKENDS, known().map(|s| ([s.name.as_str()], s.backends.into())))?;
    let up = known().map(|s| ([s.name.as_str()], s.backends_up.into()));
    sheet.family(&SERVICE_BACKENDS_UP, up)
}

fn backends(sheet: &mut Sheet<'_>, facts: &Facts) -> fmt::Result {
    let of = |value: fn(&lb_inspect::stats::Traffic) -> u64| {
        let backends = facts.stats.backends.iter();
        backends.map(move |b| ([b.backend.as_str()], value(&b.traffic).into()))
    };
    sheet.family(&BACKEND_PACKETS, of(|t| t.packets))?;
    sheet.family(&BACKEND_BYTES, of(|t| t.bytes))?;
    sheet.family(&BACKEND_CONNECTIONS, of(|t| t.connections))?;
    let known = || facts.status.backends();
    let hops: BTreeMap<_, _> = known().map(|b| (b.address, b.next_hop.is_ok())).collect();
    let hops: Vec<_> = hops.into_iter().map(|(at, has)| (at.to_string(), has)).collect();
    let resolved = hops.iter().map(|(at, has)| ([at.as_str()], (*has).into()));
    sheet.family(&BACKEND_NEXT_HOP_RESOLVED, resolved)?;
    let mtus: BTreeMap<_, _> =
        known().filter_map(|b| Some((b.address.to_string(), u64::from(b.mtu?)))).collect();
    sheet.family(&BACKEND_MTU, mtus.iter().map(|(at, mtu)| ([at.as_str()], (*mtu).into())))?;
    let addresses: Vec<_> = known().map(|b| b.address.to_string()).collect();
    let each = || {
        known()
            .zip(&addresses)
            .map(|(b, address)| (b, [b.pool.as_str(), address.as_str(), b.region.as_str()]))
    };
    let is_up = |(b, labels): (&BackendStatus, _)| (labels, (b.state == MemberState::Up).into());
    sheet.family(&BACKEND_UP, each().map(is_up))?;
    // Only the state that holds: a sample for each of seven states would be most of a large exposition.
    let states = each()
        .map(|(b, [pool, backend, region])| ([pool, backend, region, b.state.name()], true.into()));
    sheet.family(&BACKEND_STATE, states)?;
    sheet.family(&BACKEND_SHARE, each().map(|(b, labels)| (labels, b.share.into())))?;
    let utilised =
        each().filter_map(|(b, labels)| Some((labels, b.agent_report.utilisation?.share().into())));
    sheet.family(&BACKEND_UTILISATION, utilised)
}

fn pools(sheet: &mut Sheet<'_>, facts: &Facts) -> fmt::Result {
    if let Some(balancers) = facts.regions.balancers {
        sheet.one(&BALANCERS, u64::from(balancers.get()).into())?;
    }
    let services = facts.stats.services.iter().map(|service| service.pool.as_str());
    let groups = facts.stats.groups.iter().map(|group| group.pool.as_str());
    let pools: BTreeSet<&str> = services.chain(groups).collect();
    let open: BTreeSet<&str> =
        facts.stats.remembered.pools_with_displaced.iter().map(String::as_str).collect();
    let settling: BTreeSet<&str> = facts.status.settling.iter().map(|s| s.pool.as_str()).collect();
    sheet.family(&POOL_HAS_DISPLACED, pools.iter().map(|p| ([*p], open.contains(p).into())))?;
    let mut held: BTreeMap<&str, u64> = pools.iter().map(|pool| (*pool, 0)).collect();
    for backend in facts.status.backends().filter(|b| b.state == MemberState::HeldDown) {
        *held.entry(backend.pool.as_str()).or_default() += 1;
    }
    sheet.family(&POOL_HELD_DOWN, held.into_iter().map(|(pool, held)| ([pool], held.into())))?;
    sheet.family(&POOL_SETTLING, pools.iter().map(|p| ([*p], settling.contains(p).into())))
}

fn remembered(sheet: &mut Sheet<'_>, facts: &Facts) -> fmt::Result {
    let known = &facts.stats.remembered;
    sheet.family(&FLOWS_HELD, known.flows.iter().map(|it| ([&*it.state], it.held.into())))?;
    sheet.one(&FLOW_ROOM, known.room.into())?;
    sheet.family(&EVENTS, known.events.iter().map(|e| ([&*e.event], e.count.into())))
}

fn generation(sheet: &mut Sheet<'_>, status: &Status, live: &Live) -> fmt::Result {
    sheet.one(&GENERATION, status.generation.into())?;
    let applied = status.applied_at.map(|at| ([], seconds(at).into()));
    sheet.family(&APPLIED_AT, applied)?;
    let kinds = OverrideKind::ALL.iter().map(|kind| {
        let of_kind = status.overrides.overrides.iter().filter(|(key, _)| key.kind == *kind);
        ([kind.name()], of_kind.count().into())
    });
    sheet.family(&OVERRIDES, kinds)?;
    sheet.one(&OVERRIDES_LOCAL, status.overrides.overrides.local().count().into())?;
    sheet.one(&OVERRIDES_UNSTORED, status.overrides.is_unstored.into())?;
    sheet.one(&BEHIND, status.behind.is_some().into())?;
    sheet.one(&CONDITIONS, status.conditions.len().into())?;
    sheet.one(&WAITING_SETTINGS, status.waiting_settings.len().into())?;
    sheet.kept(&PUBLISHED_AT, &live.publish.last_at)?;
    // A number that doubles hold exactly; as a label each change would make a series.
    sheet.one(&CHECKSUM, (status.checksum >> 16).into())
}

fn daemon(sheet: &mut Sheet<'_>, live: &Live) -> fmt::Result {
    sheet.kept(&PUBLISH, &live.publish.durations)?;
    sheet.kept(&PUBLISH_FAILURES, &live.publish.failures)?;
    sheet.durations(&HEALTH_DELAY, [([], &live.health.publish_delays)])?;
    sheet.kept(&HEALTH_PUBLISHED_AT, &live.health.last_at)?;
    sheet.durations(&STORE_WRITE, [([], &live.store.durations)])?;
    sheet.kept(&STORE_WRITE_FAILURES, &live.store.failures)?;
    sheet.one(&STORE_WRITE_AGE, live.store.under_way().as_secs_f64().into())?;
    loops(sheet, &live.loops)?;
    sheet.kept(&HOLD_DOWNS, &live.health.hold_downs)?;
    let results = [
        ("passed", &live.checks.passed),
        ("failed", &live.checks.failed),
        ("not_made", &live.checks.not_made),
    ];
    sheet.family(&PROBES, results.map(|(result, count)| ([result], count.get().into())))?;
    let failing: Vec<_> =
        live.checks.failing().into_iter().map(|(p, a, c)| (p, a.to_string(), c)).collect();
    let failing = failing.iter().map(|(p, a, c)| ([p.as_str(), a, c.as_str()], true.into()));
    sheet.family(&CHECK_FAILING, failing)?;
    sheet.kept(&PROBE_LATENESS, &live.checks.lateness)?;
    let each = ApiListener::ALL
        .into_iter()
        .flat_map(|listener| ApiLimit::ALL.map(|limit| (listener, limit)));
    let refused = each.map(|(listener, limit)| {
        ([listener.name(), limit.name()], live.api_refused.get(listener, limit).into())
    });
    sheet.family(&API_REFUSED, refused)?;
    credentials(sheet, live.certificates.now(), live.http_refused.get())?;
    sheet.kept(&LOG_DROPPED, &live.log_dropped)
}

fn loops(sheet: &mut Sheet<'_>, loops: &AllLoopCounters) -> fmt::Result {
    let each = |value: fn(&LoopCounters) -> Value| {
        loops.named().map(|(name, counters)| ([name], value(counters)))
    };
    sheet.family(&LOOP_QUEUE, each(|it| it.queue().length().into()))?;
    let waiting = loops.named().map(|(name, counters)| ([name], counters.queue().waiting()));
    sheet.durations(&LOOP_WAITING, waiting)?;
    let service = loops.named().map(|(name, counters)| ([name], counters.service()));
    sheet.durations(&LOOP_SERVICE, service)?;
    sheet.family(&LOOP_TURN_AGE, each(|it| it.since_last_turn().as_secs_f64().into()))
}
