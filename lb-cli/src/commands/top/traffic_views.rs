//! The views of traffic: regions, services, backends and drops.

use std::collections::HashMap;

use lb_common::abi::verdict::Verdict;
use lb_inspect::stats::sentence;
use ratatui::layout::Constraint;
use spillway_proto::v1::{self, BackendState};

use super::{
    sample::Snapshot,
    views::{Cell, Column, Tone, View, ViewRow},
};
use crate::commands::{
    backend_status::{explain_state, state_word},
    regions::BarParts,
};

/// The columns of the regions view except for the bar.
const REGION_COLUMNS: [Column; 5] = [
    Column::text("POOL", 16),
    Column::text("REGION", 12),
    Column::number("OFFERED/S"),
    Column::number("LIMIT/S"),
    Column::number("USED"),
];

/// Demand and limit of each region, as bars with one scale per pool.
pub(super) fn regions_view(snapshot: &Snapshot, width: u16) -> View {
    let regions = &snapshot.reading.regions.regions;
    let mut view = View {
        columns: [REGION_COLUMNS.as_slice(), &[Column::text("DEMAND AGAINST LIMIT", 0)]].concat(),
        rows: regions
            .iter()
            .map(|region| region_row(region, region_rates(snapshot, region)))
            .collect(),
        name_column: None,
        empty: "no pool has backends yet",
    };
    let fixed: u16 = view
        .widths()
        .iter()
        .map(|width| match width {
            Constraint::Length(length) => length + 2,
            _ => 0,
        })
        .sum();
    let room = usize::from(width.saturating_sub(fixed)).saturating_sub(2);
    let mut longest: HashMap<&str, f64> = HashMap::new();
    for region in regions {
        let longest = longest.entry(&region.pool).or_default();
        *longest = longest.max(bar_parts(snapshot, region).extent());
    }
    for (region, row) in regions.iter().zip(&mut view.rows) {
        let whole = longest.get(&*region.pool).copied().unwrap_or_default();
        row.cells.push(Cell::text(bar_parts(snapshot, region).bar(whole, room)));
    }
    view
}

fn region_rates<'n>(
    snapshot: &'n Snapshot,
    region: &v1::GroupStatus,
) -> Option<&'n v1::GroupRates> {
    snapshot.regions.get(&(region.pool.clone(), region.region.clone()))
}

fn bar_parts(snapshot: &Snapshot, region: &v1::GroupStatus) -> BarParts {
    let rates = region_rates(snapshot, region).copied().unwrap_or_default();
    BarParts {
        admitted: rates.admitted,
        over_capacity: rates.over_capacity,
        overflow_out: rates.overflow_out,
        refused: rates.refused,
        limit: region.limit_per_second.unwrap_or(0.0),
    }
}

fn region_row(region: &v1::GroupStatus, rates: Option<&v1::GroupRates>) -> ViewRow {
    let limit = region.limit_per_second;
    let used = limit.filter(|limit| *limit > 0.0).zip(rates).map(|(l, r)| r.admitted / l);
    let tone = match rates {
        Some(rates) if rates.refused > 0.0 || rates.over_capacity > 0.0 => Tone::Bad,
        Some(rates) if rates.overflow_out > 0.0 => Tone::Warning,
        _ => Tone::Plain,
    };
    let cells = vec![
        Cell::text(&region.pool),
        Cell::text(&region.region),
        Cell::rate(rates.map(|rates| rates.offered)),
        Cell::rate(limit),
        Cell::percent(used),
    ];
    ViewRow { cells, tone }
}

/// Each service with its rates and the number of its backends that are up.
pub(super) fn services_view(snapshot: &Snapshot) -> View {
    let columns = vec![
        Column::text("SERVICE", 16),
        Column::text("ENDPOINT", 22),
        Column::text("", 3),
        Column::number("CONN/S"),
        Column::number("PKT/S"),
        Column::number("BIT/S"),
        Column::text("UP", 9),
        Column::text("POOL", 0),
    ];
    let rows = snapshot.reading.stats.services.iter().map(|service| {
        let speed = snapshot.services.get(&(service.endpoint.clone(), service.protocol.clone()));
        let mut known = snapshot.reading.status.services.iter();
        let known = known.find(|s| s.name == service.service);
        let up =
            known.map_or_else(|| "-".into(), |s| format!("{} of {}", s.backends_up, s.backends));
        let tone = match known {
            Some(service) if service.backends_up == 0 => Tone::Bad,
            Some(service) if service.backends_up < service.backends => Tone::Warning,
            _ => Tone::Plain,
        };
        let cells = vec![
            Cell::text(&service.service),
            Cell::text(&service.endpoint),
            Cell::text(&service.protocol),
            Cell::rate(speed.map(|speed| speed.connections)),
            Cell::rate(speed.map(|speed| speed.packets)),
            Cell::rate(speed.map(|speed| speed.bytes * 8.0)),
            Cell::text(up),
            Cell::text(&service.pool),
        ];
        ViewRow { cells, tone }
    });
    View { columns, rows: rows.collect(), name_column: None, empty: "no services yet" }
}

/// Each backend of each pool with its state and its share of the pool's packets.
pub(super) fn backends_view(snapshot: &Snapshot) -> View {
    let columns = vec![
        Column::text("POOL", 12),
        Column::text("BACKEND", 20),
        Column::text("REGION", 8),
        Column::text("STATE", 8),
        Column::number("SHARE"),
        Column::number("CONN/S"),
        Column::number("PKT/S"),
        Column::text("WHY", 0),
    ];
    let backends = &snapshot.reading.status.backends;
    let totals = pool_rates(snapshot);
    let total = |backend: &v1::BackendStatus| totals.get(backend.pool.as_str()).copied();
    let rows = backends
        .iter()
        .map(|backend| backend_row(snapshot, backend, total(backend).unwrap_or(0.0)));
    View { columns, rows: rows.collect(), name_column: Some(1), empty: "no backends yet" }
}

/// Packets a second to all backends of each pool. A backend in several pools counts in each.
fn pool_rates(snapshot: &Snapshot) -> HashMap<&str, f64> {
    let mut totals = HashMap::new();
    for backend in &snapshot.reading.status.backends {
        let speed = snapshot.backends.get(&backend.address).map_or(0.0, |speed| speed.packets);
        *totals.entry(backend.pool.as_str()).or_insert(0.0) += speed;
    }
    totals
}

fn backend_row(snapshot: &Snapshot, backend: &v1::BackendStatus, total: f64) -> ViewRow {
    let speed = snapshot.backends.get(&backend.address);
    let tone = match backend.state() {
        BackendState::Up if backend.next_hop_resolved => Tone::Good,
        BackendState::Up | BackendState::Pending | BackendState::Unreachable => Tone::Bad,
        _ => Tone::Warning,
    };
    let cells = vec![
        Cell::text(&backend.pool),
        Cell::text(&backend.address),
        Cell::text(&backend.region),
        Cell::text(state_word(backend.state())),
        Cell::percent(speed.filter(|_| total > 0.0).map(|speed| speed.packets / total)),
        Cell::rate(speed.map(|speed| speed.connections)),
        Cell::rate(speed.map(|speed| speed.packets)),
        Cell::text(explain_state(backend)),
    ];
    ViewRow { cells, tone }
}

/// Dropped packets by reason, without reasons that never occurred.
pub(super) fn drops_view(snapshot: &Snapshot) -> View {
    let columns = vec![
        Column::text("REASON", 20),
        Column::number("DROPS/S"),
        Column::number("DROPS"),
        Column::text("MEANING", 0),
    ];
    let rows = drop_verdicts(snapshot).filter(|verdict| verdict.packets > 0).map(|verdict| {
        let rate = snapshot.verdicts.get(&verdict.verdict).copied();
        let known = Verdict::ALL.iter().find(|known| known.name() == verdict.verdict);
        let total = verdict.packets;
        let cells = vec![
            Cell::text(&verdict.verdict),
            Cell::rate(rate),
            Cell::number(Some(total)),
            Cell::text(known.map(|known| sentence(known.meaning())).unwrap_or_default()),
        ];
        let is_growing = rate.is_some_and(|rate| rate > 0.0);
        ViewRow { cells, tone: if is_growing { Tone::Bad } else { Tone::Plain } }
    });
    View { columns, rows: rows.collect(), name_column: Some(0), empty: "no packets dropped" }
}

fn drop_verdicts(snapshot: &Snapshot) -> impl Iterator<Item = &v1::VerdictStats> {
    snapshot.reading.stats.verdicts.iter().filter(|verdict| verdict.action == "drop")
}

/// Drops a second, by reason.
pub(super) fn drop_rates(snapshot: &Snapshot) -> impl Iterator<Item = f64> {
    drop_verdicts(snapshot).filter_map(|verdict| snapshot.verdicts.get(&verdict.verdict).copied())
}
