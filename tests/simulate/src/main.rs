//! `cargo xtask simulate fleet`: how the cost of sharing capacities grows with a fleet.
//!
//! | to understand | begin at |
//! |---|---|
//! | what is simulated and what is real | [`fleet`], [`balancer`] |
//! | what is measured | [`scenario`] |
//! | how the sizes that are too large are computed | [`fit`] |
//! | what etcd is asked | [`etcd`] |

mod balancer;
mod cost;
mod document;
mod etcd;
mod fit;
mod fleet;
mod scenario;
mod sizes;
mod table;

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::Parser;

use document::Facts;
use fleet::Size;
use scenario::{Figures, Times};
use sizes::Sizes;

#[derive(Parser)]
#[command(name = "simulate")]
struct Arguments {
    /// Fewer and smaller fleets, for a shorter time
    #[arg(long)]
    quick: bool,
    /// One size only: balancers, regions and pools, as in 100x1x10
    #[arg(long, value_parser = sizes::parse, conflicts_with = "document")]
    only: Option<Size>,
    /// Write the page to this file instead of printing it
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
    /// The command that the page names
    #[arg(long, default_value = "simulate")]
    command: String,
    /// The date that the page names
    #[arg(long, default_value = "an unknown date")]
    date: String,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("simulate: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    let (sizes, times) = match arguments.quick {
        true => (Sizes::QUICK, Times::QUICK),
        false => (Sizes::FULL, Times::FULL),
    };
    if let Some(size) = arguments.only {
        println!("{:#?}\n{:#?}", scenario::measure(size, times)?, etcd::figures(size)?);
        return Ok(());
    }
    let page =
        simulate(sizes, times, &Facts { command: &arguments.command, date: &arguments.date })?;
    match &arguments.document {
        Some(file) => fs::write(file, page).with_context(|| file.display().to_string()),
        None => {
            print!("{page}");
            Ok(())
        }
    }
}

fn simulate(sizes: Sizes, times: Times, facts: &Facts<'_>) -> Result<String> {
    let measure = |size: Size| -> Result<Figures> {
        let figures = scenario::measure(size, times)
            .with_context(|| format!("{} balancers, {} groups", size.balancers, size.groups()))?;
        eprintln!(
            "{} balancers, {} regions, {} pools: {:.1} s of CPU time",
            size.balancers,
            size.regions,
            size.pools,
            figures.took.as_secs_f64()
        );
        Ok(figures)
    };
    document::page(&document::measure_all(sizes, measure)?, facts)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The least that is of any use, so that the simulation runs with each change of what it simulates.
    #[test]
    fn a_small_fleet_converges_and_the_page_says_so() {
        let sizes =
            Sizes { balancers: &[2, 6], groups: &[1, 8], regions: &[1, 3], both: &[(6, 8)] };
        let times = Times {
            converge: (Duration::from_secs(2), Duration::from_secs(20)),
            steady: Duration::from_secs(2),
        };
        let facts = Facts { command: "the test", date: "2026-11-27" };
        let page = simulate(sizes, times, &facts).unwrap();
        assert!(page.contains("Measured on 2026-11-27 with `the test`."), "{page}");
        assert!(!page.contains("never") && !page.contains("NaN"), "{page}");
    }

    /// By FLEET's rules: four rounds a second at least, a message to each peer in each; with 0.8 of the capacity hardly any
    /// connection is refused, and portions move within a few seconds.
    #[test]
    fn figures_are_those_of_the_rules() {
        let size = Size { balancers: 5, regions: 1, pools: 2 };
        let it = scenario::measure(size, Times::QUICK).unwrap();
        assert!((4.0..=20.0).contains(&it.rates.rounds), "{it:?}");
        let peers = it.rates.messages / it.rates.rounds;
        assert!((3.0..=8.0).contains(&peers), "{it:?}");
        assert!(it.refused <= 0.005, "{it:?}");
        let limit = Some(Duration::from_secs(5));
        assert!(it.begun.is_some() && it.begun <= limit && it.moved.is_some(), "{it:?}");
        assert!(it.born <= Duration::from_millis(300), "{it:?}");
        // A message has its header and two groups of some sixty bytes.
        let bytes = it.rates.bytes / it.rates.messages;
        assert!((100.0..=300.0).contains(&bytes), "{it:?}");
    }
}
