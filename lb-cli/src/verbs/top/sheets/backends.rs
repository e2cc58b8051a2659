use std::collections::HashMap;

use spillway_proto::v1;

use super::{Cell, Column, Row, Sheet, Tone};
use crate::verbs::{
    backend::{shown, why},
    top::rates::Now,
};

/// Each backend of each pool: its state, and its share of the pool's packets.
pub(super) fn sheet(now: &Now) -> Sheet {
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
    let backends = &now.reading.status.backends;
    let totals = totals(now);
    let total = |backend: &v1::BackendStatus| totals.get(backend.pool.as_str()).copied();
    let rows = backends.iter().map(|backend| row(now, backend, total(backend).unwrap_or(0.0)));
    Sheet { columns, rows: rows.collect(), named_by: Some(1), empty: "there is no backend yet" }
}

/// Packets a second to all backends of each pool. Those of a backend in several pools count in each.
fn totals(now: &Now) -> HashMap<&str, f64> {
    let mut totals = HashMap::new();
    for backend in &now.reading.status.backends {
        let speed = now.backends.get(&backend.address).map_or(0.0, |speed| speed.packets);
        *totals.entry(backend.pool.as_str()).or_insert(0.0) += speed;
    }
    totals
}

fn row(now: &Now, backend: &v1::BackendStatus, total: f64) -> Row {
    let speed = now.backends.get(&backend.address);
    let tone = match backend.state.as_str() {
        "up" if backend.next_hop_resolved => Tone::Good,
        "dead" if shown(backend) == "disabled" => Tone::Doubtful,
        "up" | "dead" => Tone::Bad,
        _ => Tone::Doubtful,
    };
    let cells = vec![
        Cell::text(&backend.pool),
        Cell::text(&backend.address),
        Cell::text(&backend.region),
        Cell::text(shown(backend)),
        Cell::percent(speed.filter(|_| total > 0.0).map(|speed| speed.packets / total)),
        Cell::rate(speed.map(|speed| speed.connections)),
        Cell::rate(speed.map(|speed| speed.packets)),
        Cell::text(why(backend)),
    ];
    Row { cells, tone }
}
