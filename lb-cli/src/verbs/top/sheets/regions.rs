use std::collections::HashMap;

use spillway_proto::v1;

use super::{Cell, Column, Row, Sheet, Tone};
use crate::verbs::{regions::Parts, top::rates::Now};

/// Columns but for the bar.
const FIXED: [Column; 5] = [
    Column::text("POOL", 16),
    Column::text("REGION", 12),
    Column::number("OFFERED/S"),
    Column::number("LIMIT/S"),
    Column::number("USED"),
];

/// Demand against what each region can take, as bars of one scale a pool.
pub(super) fn sheet(now: &Now, width: u16) -> Sheet {
    let regions = &now.reading.regions.regions;
    let mut sheet = Sheet {
        columns: [FIXED.as_slice(), &[Column::text("DEMAND AGAINST LIMIT", 0)]].concat(),
        rows: regions.iter().map(|region| row(region, rates(now, region))).collect(),
        named_by: None,
        empty: "no pool has backends yet",
    };
    let fixed: u16 = sheet
        .widths()
        .iter()
        .map(|width| match width {
            ratatui::layout::Constraint::Length(length) => length + 2,
            _ => 0,
        })
        .sum();
    let room = usize::from(width.saturating_sub(fixed)).saturating_sub(2);
    let mut longest: HashMap<&str, f64> = HashMap::new();
    for region in regions {
        let longest = longest.entry(&region.pool).or_default();
        *longest = longest.max(parts(now, region).long());
    }
    for (region, row) in regions.iter().zip(&mut sheet.rows) {
        let whole = longest.get(&*region.pool).copied().unwrap_or_default();
        row.cells.push(Cell::text(parts(now, region).bar(whole, room)));
    }
    sheet
}

fn rates<'n>(now: &'n Now, region: &v1::RegionStatus) -> Option<&'n v1::RegionRates> {
    now.regions.get(&(region.pool.clone(), region.region.clone()))
}

fn parts(now: &Now, region: &v1::RegionStatus) -> Parts {
    let rates = rates(now, region).copied().unwrap_or_default();
    Parts {
        admitted: rates.admitted,
        overrun: rates.overrun,
        spilled_out: rates.spilled_out,
        refused: rates.refused,
        limit: region.limit_per_second.unwrap_or(0.0),
    }
}

fn row(region: &v1::RegionStatus, rates: Option<&v1::RegionRates>) -> Row {
    let limit = region.limit_per_second;
    let used = limit.filter(|limit| *limit > 0.0).zip(rates).map(|(l, r)| r.admitted / l);
    let tone = match rates {
        Some(rates) if rates.refused > 0.0 || rates.overrun > 0.0 => Tone::Bad,
        Some(rates) if rates.spilled_out > 0.0 => Tone::Doubtful,
        _ => Tone::Plain,
    };
    let cells = vec![
        Cell::text(&region.pool),
        Cell::text(&region.region),
        Cell::rate(rates.map(|rates| rates.offered)),
        Cell::rate(limit),
        Cell::percent(used),
    ];
    Row { cells, tone }
}
