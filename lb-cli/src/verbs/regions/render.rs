//! The waterfall for people.

use lb_daemon::capacity::Rates;

use super::{
    Pool, Regions,
    bar::{self, LEGEND, bar},
    row::{Capacity, Region},
};
use crate::output::{Grid, Report, count, fields};

impl Report for Regions {
    fn table(&self) -> String {
        let counted = match self.interval_seconds {
            Some(seconds) => format!("new connections a second, over {seconds:.1} s"),
            None => "new connections in all, since each region was made".into(),
        };
        let capacity = match (&self.daemon, self.balancers) {
            (Some(why), _) => format!("as configured not known: {why}"),
            (None, None) => "not known, as the stored configuration cannot be used".into(),
            (None, Some(0 | 1)) => "this balancer's alone".into(),
            (None, Some(balancers)) => format!("shared by {balancers} balancers"),
        };
        let mut text =
            fields(&[("counted", counted), ("capacity", capacity), ("bars", LEGEND.into())]);
        if self.pools.is_empty() {
            text += "\nno pool has backends yet\n";
        }
        for pool in &self.pools {
            text += "\n";
            text += &pool.table(self.interval_seconds.is_some());
        }
        text
    }
}

impl Pool {
    fn table(&self, rates: bool) -> String {
        let mut numbers = Grid::new([
            "REGION", "LIMIT", "OFFERED", "ADMITTED", "IN", "OUT", "REFUSED", "OVERRUN", "USED",
        ])
        .right(1..9);
        for region in &self.regions {
            numbers.row(region.numbers(rates));
        }
        let mut bars = Grid::bare();
        let whole = bar::whole(&self.regions, rates);
        for region in &self.regions {
            bars.row([region.region.clone(), bar(region, rates, whole), region.words()]);
        }
        format!("pool {}\n{}{}", self.pool, numbers.lines(), bars.lines())
    }
}

impl Region {
    fn numbers(&self, rates: bool) -> [String; 9] {
        let shown = self.shown(rates);
        let number = |of: fn(Rates) -> f64| match shown.map(of) {
            None => "-".into(),
            Some(value) if rates => rate(value),
            Some(value) => format!("{value}"),
        };
        [
            self.region.clone(),
            limit(self.limit_per_second),
            number(|shown| shown.offered),
            number(|shown| shown.admitted),
            number(|shown| shown.spilled_in),
            number(|shown| shown.spilled_out),
            number(|shown| shown.refused),
            number(|shown| shown.overrun),
            self.utilisation.map_or_else(|| "-".into(), |used| format!("{:.0}%", used * 100.0)),
        ]
    }

    /// Its capacity and what is missing.
    fn words(&self) -> String {
        let mut words: Vec<_> = self.capacity.iter().map(Capacity::words).collect();
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
    /// What it takes, who is up, and whether it is out of home.
    pub(in crate::verbs) fn words(&self) -> String {
        let mut text = match self.per_second {
            None => "no limit".to_owned(),
            now => format!("capacity {}", limit(now)),
        };
        if self.per_second != self.configured_per_second {
            text += &format!(" of {}", limit(self.configured_per_second));
        }
        if self.scaler == 0.0 {
            text += ", drained";
        } else if self.scaler < 1.0 {
            text += &format!(", scaler {}", self.scaler);
        }
        if self.backends_up < self.backends {
            text += &format!("; {} of {} up", self.backends_up, self.backends);
        }
        if self.out_of_home {
            text += "; out of home";
        }
        text
    }
}

/// A limit a second, with as many places as it needs, at most two.
fn limit(per_second: Option<f64>) -> String {
    per_second.map_or_else(|| "-".into(), |rate| format!("{}/s", (rate * 100.0).round() / 100.0))
}

/// A rate, with a place while it is small.
fn rate(per_second: f64) -> String {
    if per_second == 0.0 {
        "0".into()
    } else if per_second < 1_000.0 {
        format!("{per_second:.1}")
    } else {
        format!("{per_second:.0}")
    }
}
