//! The fleet as tables, and sentences about what differs.

use std::{collections::BTreeSet, time::Duration};

use super::{
    generations::listed,
    problems::{ProblemReason, etcd_line},
    status::{Balancer, FleetReport, Share, SharedGroup},
};
use crate::output::{Grid, Report, age, fields};

/// Balancers that have columns of their own in a table of 80 columns.
const MOST_COLUMNS: usize = 4;

/// What is said of a fleet without certificates.
const INSECURE: &str =
    "no certificates: whoever reaches etcd or the balancers can change what the fleet has";

/// Balancers of an older version that a line names.
const MOST_OLDER: usize = 3;

impl Report for FleetReport {
    fn table(&self) -> String {
        self.render(false)
    }

    fn wide(&self) -> String {
        self.render(true)
    }
}

impl FleetReport {
    fn render(&self, is_wide: bool) -> String {
        if !self.member {
            let (what, hint) = self.outside();
            return format!("{what}: {hint}\n");
        }
        let grids = [self.balancer_grid(is_wide), self.group_grid(is_wide)];
        let mut text = self.head();
        for grid in grids.into_iter().flatten() {
            text += "\n";
            text += &if is_wide { grid.wide() } else { grid }.lines();
        }
        let differences: String = self.differences().map(|text| format!("{text}\n")).collect();
        if !differences.is_empty() {
            text += "\n";
            text += &differences;
        }
        text
    }

    /// A line about the fleet, then one for each thing that is wrong with all of it.
    fn head(&self) -> String {
        let fleet = self.fleet.as_deref().unwrap_or_default();
        let balancer = self.balancer.as_deref().unwrap_or_default();
        let generation = match self.generation {
            Some(generation) => format!("generation {generation}"),
            None => "no generation yet".into(),
        };
        let revision = self.revision.unwrap_or_default();
        let mut more = Vec::new();
        if self.insecure {
            more.push(("insecure", INSECURE.into()));
        }
        if let Some(problem) = &self.etcd_problem {
            more.push(("etcd", etcd_line(problem, self.etcd_problem_since.as_deref(), "")));
        }
        if let Some(conflict) = &self.conflict {
            more.push(("conflict", format!("{conflict}; `spillway fleet restore` decides")));
        }
        if !self.held_back_by.is_empty() {
            more.push(("held back", self.held_back()));
        }
        if !self.being_forgotten.is_empty() {
            let names = self.being_forgotten.join(", ");
            more.push(("forgotten", format!("{names}: portions go to the others now")));
        }
        format!("fleet {fleet}, as {balancer} sees it: {generation}, revision {revision}\n")
            + &fields(&more)
    }

    /// What the fleet cannot use yet, and because of which balancers.
    fn held_back(&self) -> String {
        let is_older = |it: &&Balancer| self.held_back_by.contains(&it.name);
        let understood = self.balancers.iter().filter_map(|it| it.schema_revision);
        let latest = understood.max().unwrap_or_default();
        let older = self.balancers.iter().filter(is_older).map(|it| {
            let revision = it.schema_revision.unwrap_or_default();
            let version = it.version.as_deref().unwrap_or("unknown");
            format!("{} (version {version}, schema revision {revision})", it.name)
        });
        let older: Vec<_> = older.collect();
        let named = listed(&older, MOST_OLDER, ", ");
        format!("fields of schema revision {latest} wait until these are upgraded: {named}")
    }

    /// What the head and the tables do not say in words.
    fn differences(&self) -> impl Iterator<Item = &str> {
        let in_tables = [
            ProblemReason::Etcd,
            ProblemReason::Conflict,
            ProblemReason::Condition,
            ProblemReason::Peer,
        ];
        let problems = self.problems.iter();
        problems.filter(move |it| !in_tables.contains(&it.reason)).map(|it| it.text.as_str())
    }

    /// `None`: there are no balancers.
    fn balancer_grid(&self, is_wide: bool) -> Option<Grid> {
        if self.balancers.is_empty() {
            return None;
        }
        let has_problems = self.balancers.iter().any(|it| !it.problems().is_empty());
        let columns: Vec<_> = BALANCER_COLUMNS
            .iter()
            .filter(|column| match column.shown {
                Shown::Always => true,
                Shown::Wide => is_wide,
                Shown::IfAny => is_wide || has_problems,
            })
            .collect();
        let numbers = columns.iter().enumerate().filter(|(_, column)| column.is_number);
        let mut grid = Grid::new(columns.iter().map(|column| column.heading))
            .right(numbers.map(|(index, _)| index));
        for balancer in &self.balancers {
            let is_here = self.balancer.as_deref() == Some(&*balancer.name);
            grid.row(columns.iter().map(|column| (column.cell)(balancer, is_here)));
        }
        Some(grid)
    }

    /// `None`: there are no groups.
    fn group_grid(&self, is_wide: bool) -> Option<Grid> {
        if self.groups.is_empty() {
            return None;
        }
        let names = self.balancers.iter().map(|it| it.name.as_str());
        let of_shares = self.groups.iter().flat_map(|it| &it.shares).map(|it| it.balancer.as_str());
        let names: BTreeSet<_> = names.chain(of_shares).collect();
        let own = is_wide || names.len() <= MOST_COLUMNS;
        let mut headings = vec!["POOL", "REGION", "CAPACITY"];
        match own {
            true => headings.extend(&names),
            false => headings.extend(["SUM", "LEAST", "LARGEST"]),
        }
        let mut grid = Grid::new(headings.iter().copied()).right(2..headings.len());
        for group in &self.groups {
            let mut cells = vec![group.pool.clone(), group.region.clone(), group.capacity()];
            match own {
                true => cells.extend(names.iter().map(|name| group.share_of(name))),
                false => cells.extend(group.summary()),
            }
            grid.row(cells);
        }
        Some(grid)
    }
}

/// When a column is shown.
enum Shown {
    Always,
    Wide,
    /// Also in the narrow table, if a balancer has something there.
    IfAny,
}

struct BalancerColumn {
    heading: &'static str,
    is_number: bool,
    shown: Shown,
    /// Also gets whether it is the balancer that answers.
    cell: fn(&Balancer, bool) -> String,
}

const fn column(
    heading: &'static str,
    shown: Shown,
    cell: fn(&Balancer, bool) -> String,
) -> BalancerColumn {
    BalancerColumn { heading, is_number: false, shown, cell }
}

const fn number(
    heading: &'static str,
    shown: Shown,
    cell: fn(&Balancer, bool) -> String,
) -> BalancerColumn {
    BalancerColumn { heading, is_number: true, shown, cell }
}

const BALANCER_COLUMNS: [BalancerColumn; 13] = [
    column("BALANCER", Shown::Always, |it, _| it.name.clone()),
    column("ADDRESS", Shown::Wide, |it, _| known(Some(&it.address).filter(|it| !it.is_empty()))),
    column("REGION", Shown::Always, |it, _| known(it.region.as_ref())),
    column("ALIVE", Shown::Always, |it, _| yes_or_no(it.alive)),
    column("READY", Shown::Always, |it, _| yes_or_no(it.ready)),
    column("VERSION", Shown::Always, |it, _| known(it.version.as_ref())),
    number("SCHEMA", Shown::Wide, |it, _| known(it.schema_revision)),
    number("GENERATION", Shown::Always, |it, _| known(it.generation)),
    number("REVISION", Shown::Wide, |it, _| known(it.revision)),
    column("TABLES", Shown::Always, |it, _| match it.tables_agree {
        Some(true) => "same".into(),
        Some(false) => "differ".into(),
        None => "-".into(),
    }),
    column("DIGEST", Shown::Wide, |it, _| known(it.tables.as_ref())),
    number("HEARD", Shown::Always, |it, is_here| match it.heard_ms_ago {
        _ if is_here => "here".into(),
        Some(milliseconds) => describe_silence(milliseconds),
        None => "never".into(),
    }),
    column("PROBLEMS", Shown::IfAny, |it, _| {
        known(Some(it.problems()).filter(|it| !it.is_empty()))
    }),
];

impl Balancer {
    /// What is wrong with it, apart from what other columns show.
    fn problems(&self) -> String {
        let all = self.conditions.iter().chain(&self.peer_problem);
        all.map(String::as_str).collect::<Vec<_>>().join("; ")
    }
}

impl SharedGroup {
    fn capacity(&self) -> String {
        match self.capacity_per_second {
            Some(rate) => format_rate(rate),
            None if self.capacity_unknown => "-".into(),
            None => "no limit".into(),
        }
    }

    fn share_of(&self, balancer: &str) -> String {
        let share = self.shares.iter().find(|share| share.balancer == balancer);
        known(share.map(|it| format_share(it.portion, it.demand_per_second)))
    }

    /// All of it, the least and the largest portion.
    fn summary(&self) -> [String; 3] {
        let sum = |of: fn(&Share) -> f64| self.shares.iter().map(of).sum();
        let by_portion = |one: &&Share, other: &&Share| one.portion.total_cmp(&other.portion);
        let named = |it: &Share| format!("{} {}", format_portion(it.portion), it.balancer);
        [
            format_share(sum(|it| it.portion), sum(|it| it.demand_per_second)),
            known(self.shares.iter().min_by(by_portion).map(named)),
            // Of several, the first by name.
            known(self.shares.iter().rev().max_by(by_portion).map(named)),
        ]
    }
}

fn known(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}

fn yes_or_no(value: bool) -> String {
    if value { "yes" } else { "no" }.into()
}

/// `120ms`, `1.5s`, `3m 20s`
fn describe_silence(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds}ms"),
        1_000..10_000 => format!("{}.{}s", milliseconds / 1_000, milliseconds % 1_000 / 100),
        _ => age(Duration::from_millis(milliseconds)),
    }
}

/// `25.0% 120/s`
fn format_share(portion: f64, demand_per_second: f64) -> String {
    format!("{} {}", format_portion(portion), format_rate(demand_per_second))
}

fn format_portion(portion: f64) -> String {
    match portion * 100.0 {
        percent if percent > 0.0 && percent < 0.1 => "< 0.1%".into(),
        percent => format!("{percent:.1}%"),
    }
}

/// A rate, with one decimal place while it is small.
fn format_rate(per_second: f64) -> String {
    let tenths = (per_second * 10.0).round() / 10.0;
    if tenths < 100.0 { format!("{tenths}/s") } else { format!("{per_second:.0}/s") }
}
