//! `cargo xtask bench`: measures the packet programs, or the daemon's control plane, in a sandbox of its own.
//!
//! Every figure is taken in turn with its floor, in one run, and is a median: machines are noisy.
#![allow(clippy::print_stdout, reason = "a table is what it is for")]

mod against;
mod cases;
mod control;
mod document;
mod effort;
mod measure;
mod peer_program;
mod peers;
mod question;
mod report;
mod serve;
mod tables;

use std::env::current_exe;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Parser, Subcommand};
use lb_tests::{daemon::Binaries, sandbox};

use against::Other;
use cases::Case;
use document::{Document, Facts};
use effort::Effort;
use peer_program::PeerSource;
use report::{Report, Timing};
use serve::Server;

#[derive(Parser)]
#[command(about = "Measures the packet programs against their floor, in turn, in one run")]
struct Arguments {
    /// Where figures go as JSON.
    #[arg(long, required_unless_present = "serve")]
    out: Option<PathBuf>,
    /// Folder with balancer.o and bench.o.
    #[arg(long, env = "SPILLWAY_BPF_OBJECTS")]
    objects: PathBuf,
    /// Fewer and shorter rounds: figures for a glance, not for a document.
    #[arg(long, global = true)]
    quick: bool,
    /// Measure before all ordinary processes (SCHED_FIFO): for a machine that does other work too.
    #[arg(long, global = true)]
    realtime: bool,
    /// Measure the packet path only, and only cases with this in their names; of `control` only such subjects. May be
    /// repeated.
    #[arg(long, value_name = "WORD", global = true)]
    only: Vec<String>,
    /// Bench program of another revision, to measure both by turns.
    #[arg(long, value_name = "PROGRAM", requires_all = ["against_objects", "against_name"])]
    against: Option<PathBuf>,
    /// Its objects.
    #[arg(long, value_name = "FOLDER")]
    against_objects: Option<PathBuf>,
    /// What tables call it.
    #[arg(long, value_name = "REVISION")]
    against_name: Option<String>,
    /// Measure Spillway beside nftables, haproxy and nginx, and nothing else.
    #[arg(long, conflicts_with = "against")]
    peers: bool,
    /// Measure another balancer's packet program beside Spillway's, by turns, and nothing else: a script that loads it,
    /// fills its maps and pins it as $PINS/program.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["against", "peers", "document"])]
    peer_program: Option<PathBuf>,
    /// Where a bench that serves has it pin things, on a BPF file system.
    #[arg(long, value_name = "FOLDER", requires_all = ["peer_program", "serve"])]
    pins: Option<PathBuf>,
    /// Measure everything, and write performance.md beside the figures.
    #[arg(long, conflicts_with_all = ["against", "peers", "only"], requires_all = ["date", "commit", "command"])]
    document: bool,
    /// Day of the run, for the document.
    #[arg(long)]
    date: Option<String>,
    /// Commit of what is measured, for the document.
    #[arg(long)]
    commit: Option<String>,
    /// The command that the user gave, for the document.
    #[arg(long)]
    command: Option<String>,
    /// Measure what standard input asks for, a question a line: for a bench that compares revisions.
    #[arg(long)]
    serve: bool,
    #[command(subcommand)]
    other: Option<OtherBench>,
}

/// What is measured instead of the packet path.
#[derive(Subcommand)]
enum OtherBench {
    /// Measure the daemon: failover, frozen, calls, growth, storm, probes
    Control(control::Options),
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if arguments.serve {
        let peer = arguments.peer_program.zip(arguments.pins);
        let peer = peer.map(|(script, pins)| PeerSource { script, pins });
        return serve::serve(&arguments.objects, arguments.realtime, peer.as_ref());
    }
    let sandbox = sandbox::enter();
    let Arguments { objects, quick, realtime, only, .. } = arguments;
    let out = arguments.out.context("--out is required")?;
    if let Some(OtherBench::Control(options)) = arguments.other {
        anyhow::ensure!(
            !(arguments.peers || arguments.document || arguments.against.is_some()),
            "control: measured alone, without --peers, --document or --against"
        );
        return control::run(&sandbox, &options, (quick, realtime), &only, &out);
    }
    let effort = Effort { quick, realtime, only };
    if let (Some(program), Some(there), Some(name)) =
        (arguments.against, arguments.against_objects, arguments.against_name)
    {
        let other = Other { name, program, objects: there };
        let comparison = against::compare(&objects, &other, &effort, &out)?;
        println!("{}", comparison.table());
        return comparison.write(&out);
    }
    if let Some(script) = arguments.peer_program {
        let source = PeerSource { script, pins: sandbox.bpffs("peer")? };
        let comparison = against::beside(&objects, &source, &effort)?;
        println!("{}", comparison.table());
        return comparison.write(&out);
    }
    let own = current_exe().context("find our own program")?;
    let mut report = Report::default();
    if !arguments.peers {
        report.timings = time(&mut Server::start(&own, &objects, realtime)?, &effort)?;
        if effort.only.is_empty() {
            report.tables = tables::measure(effort.rounds(question::Unit::Nanoseconds))?;
        }
    }
    if arguments.peers || arguments.document {
        // The document compares what a user can have.
        let peers =
            if arguments.document { &peers::Peer::ALTERNATIVES[..] } else { &peers::Peer::ALL };
        report.peers = peers::measure(&sandbox, &Binaries::find()?, peers, quick)?;
    }
    println!("{}", report.table());
    report.write(&out)?;
    if let (true, Some(date), Some(commit), Some(command)) =
        (arguments.document, arguments.date, arguments.commit, arguments.command)
    {
        let facts = Facts::gather(date, commit, command)?;
        Document { quick, facts, report: &report }.write(&out)?;
    }
    Ok(())
}

/// Measures the cases one after the other.
fn time(server: &mut Server, effort: &Effort) -> Result<Vec<Timing>> {
    let mut timings = Vec::new();
    for name in cases::CASES.iter().map(Case::name).filter(|name| effort.includes(name)) {
        eprintln!("{name}");
        let packets = effort.packets(name.unit);
        let samples = lb_tests::turns::by_turns(1, effort.rounds(name.unit), |_| {
            server.round(&name, packets)
        })?;
        timings.push(Timing { name, median: question::medians(&samples[0]) });
    }
    anyhow::ensure!(!timings.is_empty(), "no case has {:?} in its name", effort.only);
    Ok(timings)
}
