//! `spillway regions`: demand against capacity, region by region. Counters and limits come from the pinned
//! maps, and the capacities behind the limits from the daemon, if it lives. A daemon that the command line
//! names tells all of it.

mod bar;
mod look;
mod render;
mod row;

use std::time::{Duration, Instant};

use serde::Serialize;
use spillway_proto::v1;

pub(in crate::verbs) use self::bar::{LEGEND, Parts};
pub(super) use self::row::Capacity;
use self::{look::Look, row::Region};
use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    failure::Failure,
    origin,
    output::{print, print_line},
    pinned,
};

/// Options of `regions`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Name of a pool; all pools where none is given
    pool: Option<String>,
    /// Print what was counted in all at once, then rates again and again
    #[arg(long)]
    watch: bool,
    /// Print what was counted in all instead of rates
    #[arg(long, conflicts_with = "watch")]
    totals: bool,
    /// Seconds between two looks at the counters
    #[arg(long, value_name = "SECONDS", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
}

/// What the daemon says, or why it does not.
type Told = Result<v1::RegionsResponse, String>;

/// The answer.
#[derive(Serialize)]
struct Regions {
    /// Time that rates are of; `null`: they are not known, totals are.
    interval_seconds: Option<f64>,
    /// Why the daemon does not answer; `null`: it does.
    daemon: Option<String>,
    /// Balancers that share the capacities; `null`: the daemon does not answer.
    balancers: Option<u32>,
    pools: Vec<Pool>,
}

#[derive(Serialize)]
struct Pool {
    pool: String,
    /// In the order in which they are asked.
    regions: Vec<Region>,
}

/// Looks, at the maps or by the daemon, and prints; with `--watch` until it is stopped.
///
/// # Errors
/// The daemon that is named does not answer, the maps cannot be read, or there is no such pool.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    let interval = Duration::from_secs(arguments.interval);
    let (mut before, told) = look(options, arguments)?;
    if arguments.totals {
        return print(&Regions::new(&before, None, &told), options.output);
    }
    if arguments.watch {
        let first = Regions::new(&before, None, &told);
        if print_line(&first, options.output)?.is_break() {
            return Ok(());
        }
    }
    loop {
        let next = before.at + interval;
        let rest = next.saturating_duration_since(Instant::now());
        converse(async {
            tokio::time::sleep(rest).await;
            Ok(())
        })?;
        let (now, told) = look(options, arguments)?;
        let answer = Regions::new(&now, Some(&before), &told);
        if !arguments.watch {
            return print(&answer, options.output);
        }
        if print_line(&answer, options.output)?.is_break() {
            return Ok(());
        }
        before = now;
    }
}

/// Takes a look, with what the daemon says of the regions.
fn look(options: &Options, arguments: &Arguments) -> Result<(Look, Told), Failure> {
    let pool = arguments.pool.as_deref();
    let request = || v1::RegionsRequest { pool: pool.unwrap_or_default().to_owned() };
    let ask = async |daemon: &mut Daemon| {
        let answer = daemon.regions(request()).await?;
        Ok((Look::told(Instant::now(), &answer), Ok(answer)))
    };
    let read = || {
        // Opened anew each time: a generation may have come with other names.
        let (maps, names) = pinned::open(options)?;
        let look = Look::take(&maps, &names, pool)?;
        let told = converse(async { Daemon::open(options).await?.regions(request()).await });
        Ok((look, told.map_err(|failure| failure.message)))
    };
    origin::answer(options, ask, read)
}

impl Regions {
    /// The answer of two looks, or of the first.
    fn new(now: &Look, before: Option<&Look>, told: &Told) -> Self {
        let elapsed = before.map(|before| now.at.duration_since(before.at));
        let mut pools: Vec<Pool> = Vec::new();
        for group in &now.groups {
            let (name, region) = (&group.pool, &group.region);
            let mut earlier = before.iter().flat_map(|before| &before.groups);
            let earlier = earlier.find(|g| g.pool == *name && g.region == *region).zip(elapsed);
            let told = told.as_ref().ok().and_then(|told| {
                let mut regions = told.regions.iter();
                let it = regions.find(|r| r.pool == *name && r.region == *region)?;
                Some((it, told.balancers))
            });
            let region = Region::new(group, earlier, told);
            match pools.last_mut().filter(|pool| pool.pool == *name) {
                Some(pool) => pool.regions.push(region),
                None => pools.push(Pool { pool: name.clone(), regions: vec![region] }),
            }
        }
        Self {
            interval_seconds: elapsed.map(|elapsed| elapsed.as_secs_f64()),
            daemon: told.as_ref().err().cloned(),
            balancers: told.as_ref().ok().map(|told| told.balancers).filter(|number| *number != 0),
            pools,
        }
    }
}

#[cfg(test)]
mod tests;
