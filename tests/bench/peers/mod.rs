//! Spillway beside nftables, haproxy and nginx: the same clients, veths and backends, by turns in one run.

mod balancers;
mod network;

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use lb_tests::{
    daemon::Binaries,
    process::Busy,
    sandbox::Sandbox,
    statistics::median,
    traffic::{Wrk, WrkReport, upload},
    turns::by_turns,
};

use network::Network;

/// Connections that wrk has at the same time.
const CONNECTIONS: u32 = 64;
/// Connections that upload at the same time.
const UPLOADS: usize = 8;

/// What spreads the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The router spreads connections itself.
    Ecmp,
    /// The same to Spillway's backends, whose receivers pass what is in no tunnel.
    EcmpToReceivers,
    /// The same, once it is back from a router in the balancer's place.
    RouterMore,
    /// Spillway, IP in IP.
    Spillway,
    /// nftables: destination NAT by a hash, and masquerading.
    Nftables,
    /// haproxy in TCP mode.
    Haproxy,
    /// nginx's stream module.
    NginxStream,
}

impl Peer {
    /// What a user would have instead of Spillway, in the order of the document's table.
    pub(crate) const ALTERNATIVES: [Self; 5] =
        [Self::Ecmp, Self::Spillway, Self::Nftables, Self::Haproxy, Self::NginxStream];
    /// All, in the order of the table: also what tells the laboratory's part in a figure from the balancer's.
    pub(crate) const ALL: [Self; 7] = [
        Self::Ecmp,
        Self::EcmpToReceivers,
        Self::RouterMore,
        Self::Spillway,
        Self::Nftables,
        Self::Haproxy,
        Self::NginxStream,
    ];

    /// As tables call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ecmp => "no balancer (ECMP of the router)",
            Self::EcmpToReceivers => "ECMP, to hosts with a receiver",
            Self::RouterMore => "ECMP, through one router more",
            Self::Spillway => "Spillway, IP in IP",
            Self::Nftables => "nftables, DNAT by jhash",
            Self::Haproxy => "haproxy, TCP mode",
            Self::NginxStream => "nginx, stream",
        }
    }

    /// Its VIP.
    const fn vip(self) -> Ipv4Addr {
        let host = match self {
            Self::Spillway => 1,
            Self::Ecmp => 10,
            Self::Nftables => 11,
            Self::Haproxy => 12,
            Self::NginxStream => 13,
            Self::EcmpToReceivers => 14,
            Self::RouterMore => 15,
        };
        Ipv4Addr::new(203, 0, 113, host)
    }
}

/// Medians of one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerFigures {
    /// Which one.
    pub(crate) peer: Peer,
    /// Connections a second, each with one short request.
    pub(crate) connections: f64,
    /// Of all rounds together: connections without an answer.
    pub(crate) failed: u64,
    /// CPU time of the whole machine a connection, microseconds.
    pub(crate) connection_cpu_us: f64,
    /// Upload, gigabits a second.
    pub(crate) gigabits: f64,
    /// CPU time of the whole machine for a gigabyte, milliseconds.
    pub(crate) gigabyte_cpu_ms: f64,
    /// Spillway's connections a second ÷ this peer's, the median of the rounds: what the machine does meanwhile is in both.
    pub(crate) connections_ratio: f64,
    /// Spillway's upload ÷ this peer's, likewise.
    pub(crate) upload_ratio: f64,
}

impl PeerFigures {
    /// As they stand in the report.
    pub(crate) fn to_json(self) -> Value {
        json!({
            "case": self.peer.name(), "connections_s": self.connections, "failed": self.failed,
            "connection_cpu_us": self.connection_cpu_us, "upload_gbit_s": self.gigabits,
            "gigabyte_cpu_ms": self.gigabyte_cpu_ms,
            "connections_ratio": self.connections_ratio,
            "upload_ratio": self.upload_ratio,
        })
    }
}

/// Measures some of them, Spillway among them.
///
/// # Errors
/// A part that does not start, or through which nothing gets.
pub(crate) fn measure(
    sandbox: &Sandbox,
    binaries: &Binaries,
    peers: &[Peer],
    quick: bool,
) -> Result<Vec<PeerFigures>> {
    let (rounds, time) =
        if quick { (3, Duration::from_secs(1)) } else { (7, Duration::from_secs(5)) };
    let network = Network::new(sandbox)?;
    let _balancers = balancers::start(sandbox, binaries, &network)?;
    let mut round = 0;
    let samples = by_turns(peers.len(), rounds, |side| {
        let peer = peers[side];
        round += 1;
        eprintln!("{} ({round} of {})", peer.name(), rounds * peers.len());
        sample(&network, peer, time).with_context(|| peer.name())
    })?;
    let own = peers.iter().position(|peer| *peer == Peer::Spillway);
    let own = &samples[own.context("Spillway is not among what is measured")?];
    let figures = peers.iter().zip(&samples);
    Ok(figures.map(|(peer, samples)| summarise(*peer, samples, own)).collect())
}

/// What one round found.
struct PeerSample {
    connections: f64,
    failed: u64,
    connection_cpu_us: f64,
    gigabits: f64,
    gigabyte_cpu_ms: f64,
}

fn sample(network: &Network, peer: Peer, time: Duration) -> Result<PeerSample> {
    let url = format!("http://{}/", peer.vip());
    let (busy, begin) = (Busy::read()?, Instant::now());
    let wrk = Wrk { connections: CONNECTIONS, time };
    let WrkReport { answered, failed, bad_status } = wrk.run(network.client(), &url)?;
    let (cpu, elapsed) = (busy.since()?, begin.elapsed());
    ensure!(answered > 0 && bad_status == 0, "{answered} answers, {bad_status} of them bad");
    let upload = upload(network.client(), peer.vip(), UPLOADS, time)?;
    ensure!(upload.bytes > 0, "no byte was uploaded");
    Ok(PeerSample {
        connections: answered as f64 / elapsed.as_secs_f64(),
        failed,
        connection_cpu_us: cpu.as_secs_f64() * 1e6 / answered as f64,
        gigabits: upload.bytes as f64 * 8e-9 / upload.time.as_secs_f64(),
        gigabyte_cpu_ms: upload.cpu.as_secs_f64() * 1e3 / (upload.bytes as f64 * 1e-9),
    })
}

/// `own`: Spillway's, by the same rounds.
fn summarise(peer: Peer, samples: &[PeerSample], own: &[PeerSample]) -> PeerFigures {
    let middle =
        |part: fn(&PeerSample) -> f64| median(&mut samples.iter().map(part).collect::<Vec<_>>());
    let ratio = |part: fn(&PeerSample) -> f64| {
        let rounds = own.iter().zip(samples).map(|(own, sample)| part(own) / part(sample));
        median(&mut rounds.collect::<Vec<_>>())
    };
    PeerFigures {
        peer,
        connections: middle(|sample| sample.connections),
        failed: samples.iter().map(|sample| sample.failed).sum(),
        connection_cpu_us: middle(|sample| sample.connection_cpu_us),
        gigabits: middle(|sample| sample.gigabits),
        gigabyte_cpu_ms: middle(|sample| sample.gigabyte_cpu_ms),
        connections_ratio: ratio(|sample| sample.connections),
        upload_ratio: ratio(|sample| sample.gigabits),
    }
}

/// The table, one line each.
pub(crate) fn table(figures: &[PeerFigures]) -> String {
    let mut out = format!(
        "{:<34}{:>15}{:>12}{:>8}{:>15}{:>15}{:>12}{:>15}\n",
        "",
        "connections/s",
        "Spillway/it",
        "failed",
        "CPU us each",
        "upload Gbit/s",
        "Spillway/it",
        "CPU ms a GB"
    );
    for each in figures {
        out += &format!(
            "{:<34}{:>15.0}{:>12.2}{:>8}{:>15.1}{:>15.2}{:>12.2}{:>15.0}\n",
            each.peer.name(),
            each.connections,
            each.connections_ratio,
            each.failed,
            each.connection_cpu_us,
            each.gigabits,
            each.upload_ratio,
            each.gigabyte_cpu_ms
        );
    }
    out
}
