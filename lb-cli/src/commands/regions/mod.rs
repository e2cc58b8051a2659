//! `spillway regions`: demand and capacity of each region. Counters and limits come from the pinned maps,
//! the capacities behind the limits from the daemon if it runs. A daemon that the command line names
//! answers all of it.

mod render;
mod sample;
#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use spillway_proto::v1;

use self::sample::{DaemonAnswer, RegionsReport, Sample};
pub(in crate::commands) use self::{
    render::{BarParts, LEGEND, USED, format_rate},
    sample::Capacity,
};
use crate::{
    arguments::{Options, parse_interval},
    client::{DaemonClient, block_on},
    failure::Failure,
    origin,
    output::{print, print_line},
    pinned,
};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Pool name [default: all pools]
    pool: Option<String>,
    /// Print totals once, then rates until stopped
    #[arg(long)]
    watch: bool,
    /// Print totals instead of rates
    #[arg(long, conflicts_with = "watch")]
    totals: bool,
    /// Time between two readings of the counters
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_interval())]
    interval: Duration,
}

/// # Errors
/// The named daemon does not answer, the maps cannot be read, or there is no such pool.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    let (mut before, answer) = take_sample(options, arguments)?;
    if arguments.totals {
        return print(&RegionsReport::new(&before, None, &answer), options.output);
    }
    if arguments.watch {
        let first = RegionsReport::new(&before, None, &answer);
        if print_line(&first, options.output)?.is_break() {
            return Ok(());
        }
    }
    loop {
        let next = before.at + arguments.interval;
        let rest = next.saturating_duration_since(Instant::now());
        block_on(async {
            tokio::time::sleep(rest).await;
            Ok(())
        })?;
        let (now, answer) = take_sample(options, arguments)?;
        let report = RegionsReport::new(&now, Some(&before), &answer);
        if !arguments.watch {
            return print(&report, options.output);
        }
        if print_line(&report, options.output)?.is_break() {
            return Ok(());
        }
        before = now;
    }
}

fn take_sample(
    options: &Options,
    arguments: &Arguments,
) -> Result<(Sample, DaemonAnswer), Failure> {
    let pool = arguments.pool.as_deref();
    let request = || v1::RegionsRequest { pool: pool.unwrap_or_default().to_owned() };
    let ask = async |daemon: &mut DaemonClient| {
        let answer = daemon.regions(request()).await?;
        Ok((Sample::from_response(Instant::now(), &answer), Ok(answer)))
    };
    let read = || {
        // Opened anew each time: a new generation may have other names.
        let (maps, names) = pinned::open(options)?;
        let sample = Sample::read(&maps, &names, pool)?;
        let answer =
            block_on(async { DaemonClient::connect(options).await?.regions(request()).await });
        Ok((sample, answer.map_err(|failure| failure.message)))
    };
    origin::ask_or_read(options, ask, read)
}
