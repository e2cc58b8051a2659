//! `spillway drops`: a line for each packet that is dropped, so many a second.

use std::ops::ControlFlow;

use super::{
    asked::{self, Extent, Filter},
    heard::hear,
    lines::Drop,
};
use crate::{
    arguments::Options,
    daemon::converse,
    failure::Failure,
    output::{count, print_line},
};

/// Options of `drops`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    filter: Filter,
    /// Lines after which it ends
    #[arg(long, short, value_name = "LINES", default_value_t = 1000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Time after which it ends, at most 1h
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = asked::duration)]
    duration: prost_types::Duration,
    /// Most packets a second, after a burst of ten; others are counted and left out
    #[arg(long, value_name = "PACKETS", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: u32,
}

/// Prints packets that are dropped until it ends, the user stops it, or nobody reads any more.
///
/// # Errors
/// The daemon does not answer or refuses.
pub(crate) fn run(options: Options, arguments: Arguments) -> Result<(), Failure> {
    let Arguments { filter, count: most, duration, rate } = arguments;
    let request = filter.request(true, &Extent { count: most, duration, rate: Some(rate) });
    let end = converse(hear(&options, "drops", request, |packets| {
        for packet in packets {
            if print_line(&Drop::new(packet), options.output)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }))?;
    eprintln!("{}; {}", count(end.written, "packet"), end.words());
    Ok(())
}
