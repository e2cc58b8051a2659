//! `cargo xtask bench control`: the daemon's control plane, with the release daemon, its real maps, and real checks of
//! real servers in namespaces.
//!
//! | subject | what it measures |
//! |---|---|
//! | `failover` | the time from a failing answer to the changed member word, alone and beside load |
//! | `frozen` | the same while the disk of the store is frozen and the journal does not read, beside a quiet run |
//! | `calls` | what calls of the API take with a large configuration, its memory, and a start with it |
//! | `clients` | lists and statuses by pages with clients' default limits, and many watchers of a large change |
//! | `overrides` | the time from a call that sets an override to the changed member word, also with a full or frozen disk |
//! | `growth` | how the time to change one object grows with the configuration |
//! | `storm` | the time and CPU time until the failure of all backends is in the maps: of real checks, and known at once |
//! | `probes` | the CPU time of many checks a second, and how late they begin |
//!
//! Clients, servers and the daemon share the machine's CPUs, so times of calls include what the bench does for them:
//! encoding, and decoding of answers. Where the daemon's CPU time says more, it is there too. What is not measured: packets
//! at the same time (the other benches measure them alone), the API over TLS, and checks through tunnels.

mod backends;
mod calls;
mod clients;
mod configuration;
mod daemon;
mod failover;
mod figures;
mod flap;
mod frozen;
mod growth;
mod injected;
mod load;
mod overrides;
mod probes;
mod storm;
mod words;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use lb_tests::sandbox::Sandbox;

use figures::Row;

/// What one subject measures.
type Measure = fn(&Sandbox, &Plan) -> Result<Vec<Row>>;

/// The subjects, in the order in which they are measured.
const SUBJECTS: [(&str, Measure); 8] = [
    ("failover", failover::measure),
    ("frozen", frozen::measure),
    ("calls", calls::measure),
    ("clients", clients::measure),
    ("overrides", overrides::measure),
    ("growth", growth::measure),
    ("storm", storm::measure),
    ("probes", probes::measure),
];

/// Sizes; unset: those of the full run, or small ones with --quick.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Options {
    /// Pools of the large configuration [default: 1000, quick: 50].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=9_000))]
    pools: Option<u32>,
    /// Backends of each of these pools [default: 100, quick: 20].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=10_000))]
    backends: Option<u32>,
    /// Watchers beside the failover; the daemon has a limit of its own [default: 100, quick: 10].
    #[arg(long, value_name = "N")]
    watchers: Option<usize>,
    /// Backends of the storm; a tenth and three tenths of them are measured before [default: 10000, quick: 1000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(10..=16_000))]
    storm: Option<u32>,
    /// Checks a second of the probes [default: 10000, quick: 1000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16_000))]
    probes: Option<u32>,
    /// Measure the growth up to 10000 pools too.
    #[arg(long)]
    long: bool,
}

/// How much is measured.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    quick: bool,
    /// Fail where threads that look at the maps cannot have priority.
    realtime: bool,
    pools: u32,
    backends: u32,
    watchers: usize,
    storm: u32,
    probes: u32,
    long: bool,
}

impl Plan {
    fn new(options: &Options, quick: bool, realtime: bool) -> Self {
        let size =
            |given: Option<u32>, full, small| given.unwrap_or(if quick { small } else { full });
        Self {
            quick,
            realtime,
            pools: size(options.pools, 1_000, 50),
            backends: size(options.backends, 100, 20),
            watchers: options.watchers.unwrap_or(if quick { 10 } else { 100 }),
            storm: size(options.storm, 10_000, 1_000),
            probes: size(options.probes, 10_000, 1_000),
            long: options.long,
        }
    }

    /// How long backends fail and recover.
    const fn failover_time(&self, loaded: bool) -> Duration {
        Duration::from_secs(match (self.quick, loaded) {
            (true, _) => 5,
            (false, false) => 30,
            (false, true) => 60,
        })
    }

    /// How long one thing is repeated at most.
    const fn repeat_time(&self) -> Duration {
        Duration::from_secs(if self.quick { 2 } else { 20 })
    }
}

/// Measures subjects with one of these words in their names, all without a word, and writes their figures into a folder.
///
/// # Errors
/// A word that no subject has, or a subject that fails; figures of those before are written.
pub(crate) fn run(
    sandbox: &Sandbox,
    options: &Options,
    (quick, realtime): (bool, bool),
    only: &[String],
    out: &Path,
) -> Result<()> {
    let plan = Plan::new(options, quick, realtime);
    let wanted: Vec<_> = SUBJECTS.iter().filter(|(name, _)| is_wanted(name, only)).collect();
    ensure!(!wanted.is_empty(), "no subject has {only:?} in its name");
    // Each connection of a check is a descriptor of ours too.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most).context("raise the limit of descriptors")?;
    let mut rows = Vec::new();
    for (name, measure) in wanted {
        let begin = Instant::now();
        let more = measure(sandbox, &plan).with_context(|| format!("control: {name}"))?;
        println!("{}", figures::table(&more));
        eprintln!("control: {name} took {:.0?}", begin.elapsed());
        rows.extend(more);
        figures::write(&rows, out)?;
    }
    Ok(())
}

fn is_wanted(name: &str, only: &[String]) -> bool {
    only.is_empty() || only.iter().any(|word| name.contains(word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_that_were_given() {
        let options = Options { pools: Some(7), ..Options::default() };
        let (full, quick) = (Plan::new(&options, false, false), Plan::new(&options, true, false));
        assert_eq!((full.pools, full.backends, full.watchers), (7, 100, 100));
        assert_eq!((quick.pools, quick.backends, quick.watchers), (7, 20, 10));
    }

    #[test]
    fn subjects_are_found_by_a_part_of_their_names() {
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert!(is_wanted("failover", &[]) && is_wanted("failover", &words(&["x", "over"])));
        assert!(!is_wanted("failover", &words(&["storm"])));
    }
}
