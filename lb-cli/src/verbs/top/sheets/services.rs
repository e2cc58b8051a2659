use super::{Cell, Column, Row, Sheet, Tone};
use crate::verbs::top::rates::Now;

/// Each service with its rates and how many backends can have new connections.
pub(super) fn sheet(now: &Now) -> Sheet {
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
    let rows = now.reading.stats.services.iter().map(|service| {
        let speed = now.services.get(&(service.endpoint.clone(), service.protocol.clone()));
        let mut known = now.reading.status.services.iter();
        let known = known.find(|s| s.name == service.service);
        let up =
            known.map_or_else(|| "-".into(), |s| format!("{} of {}", s.backends_up, s.backends));
        let tone = match known {
            Some(service) if service.backends_up == 0 => Tone::Bad,
            Some(service) if service.backends_up < service.backends => Tone::Doubtful,
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
        Row { cells, tone }
    });
    Sheet { columns, rows: rows.collect(), named_by: None, empty: "there is no service yet" }
}
