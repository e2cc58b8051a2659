use lb_common::abi::verdict::Verdict;
use lb_daemon::stats::sentence;
use spillway_proto::v1;

use super::{Cell, Column, Row, Sheet, Tone};
use crate::verbs::top::rates::Now;

/// Dropped packets by reason, those that there were.
pub(super) fn sheet(now: &Now) -> Sheet {
    let columns = vec![
        Column::text("REASON", 20),
        Column::number("DROPS/S"),
        Column::number("DROPS"),
        Column::text("MEANING", 0),
    ];
    let rows = dropped(now).filter(|verdict| verdict.packets > 0).map(|verdict| {
        let rate = now.verdicts.get(&verdict.verdict).copied();
        let known = Verdict::ALL.iter().find(|known| known.name() == verdict.verdict);
        let total = verdict.packets;
        let cells = vec![
            Cell::text(&verdict.verdict),
            Cell::rate(rate),
            Cell { text: total.to_string(), number: Some(total as f64) },
            Cell::text(known.map(|known| sentence(known.meaning())).unwrap_or_default()),
        ];
        let growing = rate.is_some_and(|rate| rate > 0.0);
        Row { cells, tone: if growing { Tone::Bad } else { Tone::Plain } }
    });
    Sheet { columns, rows: rows.collect(), named_by: Some(0), empty: "nothing was dropped" }
}

fn dropped(now: &Now) -> impl Iterator<Item = &v1::VerdictStats> {
    now.reading.stats.verdicts.iter().filter(|verdict| verdict.action == "drop")
}

/// Drops a second, by reason.
pub(in super::super) fn rates(now: &Now) -> impl Iterator<Item = f64> {
    dropped(now).filter_map(|verdict| now.verdicts.get(&verdict.verdict).copied())
}
