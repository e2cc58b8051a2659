//! The answer as a table, with a bar for each region.

use lb_model::capacity::Rates;

use super::sample::{Capacity, PoolRows, RegionRow, RegionsReport};
use crate::output::{Grid, Report, count, fields};

impl Report for RegionsReport {
    fn table(&self) -> String {
        let counted = match self.interval_seconds {
            Some(seconds) => format!("new connections a second, over {seconds:.1} s"),
            None => "new connections in total, since each region was created".into(),
        };
        let regions = || self.pools.iter().flat_map(|pool| &pool.regions);
        let in_fleet = regions().any(|it| it.own_portion(self.balancers).is_some());
        let capacity = match (&self.daemon, self.balancers) {
            (Some(why), _) => format!("configured capacity unknown: {why}"),
            (None, Some(_)) if in_fleet => "of each, the portion that this balancer owns".into(),
            (None, None) => "unknown: the stored configuration cannot be used".into(),
            (None, Some(0 | 1)) => "this balancer's alone".into(),
            (None, Some(balancers)) => format!("shared by {balancers} balancers"),
        };
        let mut head = vec![("counted", counted), ("capacity", capacity), ("bars", LEGEND.into())];
        if regions().any(|it| it.utilisation.is_some_and(|used| used > ROUNDED)) {
            head.push(("used", USED.into()));
        }
        let mut text = fields(&head);
        if self.pools.is_empty() {
            text += "\nno pool has backends yet\n";
        }
        for pool in &self.pools {
            text += "\n";
            text += &pool.table(self.interval_seconds.is_some(), self.balancers);
        }
        text
    }
}

impl PoolRows {
    fn table(&self, rates: bool, balancers: Option<u32>) -> String {
        let mut numbers = Grid::new([
            "REGION", "LIMIT", "OFFERED", "ADMITTED", "IN", "OUT", "REFUSED", "OVERCAP", "USED",
        ])
        .right(1..9);
        for region in &self.regions {
            numbers.row(region.numbers(rates));
        }
        let mut bars = Grid::bare();
        let whole = longest_bar(&self.regions, rates);
        for region in &self.regions {
            bars.row([
                region.region.clone(),
                region_bar(region, rates, whole),
                region.describe(balancers),
            ]);
        }
        format!("pool {}\n{}{}", self.pool, numbers.lines(), bars.lines())
    }
}

impl RegionRow {
    fn numbers(&self, rates: bool) -> [String; 9] {
        let shown = self.shown(rates);
        let number = |of: fn(Rates) -> f64| match shown.map(of) {
            None => "-".into(),
            Some(value) if rates => format_rate(value),
            Some(value) => format!("{value}"),
        };
        [
            self.region.clone(),
            format_limit(self.limit_per_second),
            number(|shown| shown.offered),
            number(|shown| shown.admitted),
            number(|shown| shown.overflow_in),
            number(|shown| shown.overflow_out),
            number(|shown| shown.refused),
            number(|shown| shown.over_capacity),
            self.utilisation.map_or_else(|| "-".into(), |used| format!("{:.0}%", used * 100.0)),
        ]
    }

    /// Its capacity, the portion of it if balancers do not have equal ones, and the missing backends.
    fn describe(&self, balancers: Option<u32>) -> String {
        let mut words: Vec<_> = self.capacity.iter().map(Capacity::describe).collect();
        let portion = self.own_portion(balancers);
        words.extend(portion.map(|portion| format!("portion {:.1}%", portion * 100.0)));
        match self.missing_backends {
            Some(0) => {}
            Some(missing) => words.push(count(u64::from(missing), "backend") + " missing"),
            None if self.per_second.is_some() => words.push("missing backends unknown".into()),
            None => {}
        }
        words.join("; ")
    }
}

impl Capacity {
    /// Its capacity, its backends that are up, and whether it is marked out.
    pub(in crate::commands) fn describe(&self) -> String {
        let mut text = match self.per_second {
            None => "no limit".to_owned(),
            now => format!("capacity {}", format_limit(now)),
        };
        if self.per_second != self.configured_per_second {
            text += &format!(" of {}", format_limit(self.configured_per_second));
        }
        if self.scaler == 0.0 {
            text += ", drained";
        } else if self.scaler < 1.0 {
            text += &format!(", scaler {}", self.scaler);
        }
        if self.backends_up < self.backends {
            text += &format!("; {} of {} up", self.backends_up, self.backends);
        }
        if self.marked_out {
            text += "; marked out";
        }
        text
    }
}

/// A limit a second with at most two decimal places.
fn format_limit(per_second: Option<f64>) -> String {
    per_second.map_or_else(|| "-".into(), |rate| format!("{}/s", (rate * 100.0).round() / 100.0))
}

/// A rate, with one decimal place while it is small.
pub(in crate::commands) fn format_rate(per_second: f64) -> String {
    if per_second == 0.0 {
        "0".into()
    } else if per_second < 1_000.0 {
        format!("{per_second:.1}")
    } else {
        format!("{per_second:.0}")
    }
}

/// Characters of the longest bar.
const LENGTH: usize = 32;

/// The least of the limit that is printed as more than 100%.
const ROUNDED: f64 = 1.005;

/// Why more than the limit can be in use.
pub(in crate::commands) const USED: &str = "admitted, of LIMIT; more than 100% is a burst after a quiet time, a limit that was just lowered, or OVERCAP: \
     connections above it, admitted because all regions are full";

pub(crate) const LEGEND: &str = "# admitted  ! over the limit  > overflowed  x refused  . free";

/// The parts of a bar, all in one unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BarParts {
    /// Connections admitted.
    pub(crate) admitted: f64,
    /// Of those, connections over the limit.
    pub(crate) over_capacity: f64,
    /// Connections that another region took.
    pub(crate) overflow_out: f64,
    /// Connections dropped.
    pub(crate) refused: f64,
    /// The limit; 0: unknown, or no limit.
    pub(crate) limit: f64,
}

impl BarParts {
    /// The larger of demand and limit.
    pub(crate) fn extent(&self) -> f64 {
        self.limit.max(self.admitted + self.overflow_out + self.refused)
    }

    /// The bar with its ends; `length` characters stand for `whole`.
    pub(crate) fn bar(&self, whole: f64, length: usize) -> String {
        let within = (self.admitted - self.over_capacity).max(0.0);
        let mut bar = String::with_capacity(length);
        let mut reached = 0.0;
        for (character, amount) in [
            ('#', within),
            ('!', self.over_capacity),
            ('>', self.overflow_out),
            ('x', self.refused),
        ] {
            reached += amount.max(0.0);
            fill(&mut bar, character, amount, reached / whole, length);
        }
        let room = self.limit - reached;
        fill(&mut bar, '.', room, (reached + room) / whole, length);
        format!("|{bar:<length$}|")
    }
}

/// What a full bar stands for: the largest demand or limit of these regions.
fn longest_bar(regions: &[RegionRow], rates: bool) -> f64 {
    regions.iter().map(|region| parts(region, rates).extent()).fold(0.0, f64::max)
}

fn region_bar(region: &RegionRow, rates: bool, whole: f64) -> String {
    parts(region, rates).bar(whole, LENGTH)
}

/// The limit counts only with rates: totals cannot be compared with it.
fn parts(region: &RegionRow, rates: bool) -> BarParts {
    let limit = region.limit_per_second.filter(|_| rates).unwrap_or(0.0);
    let Some(shown) = region.shown(rates) else { return BarParts { limit, ..BarParts::default() } };
    BarParts {
        admitted: shown.admitted,
        over_capacity: shown.over_capacity,
        overflow_out: shown.overflow_out,
        refused: shown.refused,
        limit,
    }
}

/// Continues a bar to a share of the whole. A part above 0 gets at least one character if there is room.
fn fill(bar: &mut String, character: char, amount: f64, share: f64, length: usize) {
    if amount > 0.0 {
        let end = (share * length as f64).round() as usize;
        let end = end.max(bar.len() + 1).min(length);
        bar.extend(std::iter::repeat_n(character, end.saturating_sub(bar.len())));
    }
}
