//! How long a failed check takes to reach the packet path: alone, and beside all that a large configuration costs.
//!
//! Backends of one small pool fail and recover all the time. A delay is from the moment at which a backend's server has
//! written its failing answer to the first look at the maps in which the member takes no new connections. So it has
//! everything in it that the daemon does: reading the answer, judging it, and writing the maps.
//!
//! A backend waits for the daemon before it fails again. While the daemon is slow there are fewer failures, and plain
//! quantiles look better than what a failure at any moment would meet. The row "at any moment" adds those that were
//! omitted, as HdrHistogram does.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_maps::PinnedMaps;
use spillway_proto::v1::Configuration;

use lb_tests::process::until;
use lb_tests::sandbox::Sandbox;

use super::Plan;
use super::backends::{Switchable, prefer_this_thread};
use super::configuration::{self, Edit, Fleet, add_pool};
use super::daemon::{Daemon, PATIENCE, Room};
use super::figures::{Row, Times};
use super::flap::{Flap, Turn};
use super::load::Load;
use super::words::Members;

const PORT: u16 = 8_080;
/// Backends that fail and recover, out of the way of those of the fleet.
const BACKENDS: u32 = 8;
const FIRST_BACKEND: u32 = 100_000;
/// From one check of a backend to the next: of two of them one fails.
const INTERVAL: Duration = Duration::from_millis(100);
/// From one look at the maps to the next.
const LOOK: Duration = Duration::from_micros(200);

/// What was seen.
pub(super) struct Seen {
    delays: Times,
    /// Members that went down without a failing answer.
    unasked: u64,
    /// Failures that the maps did not show at the end. Their delays are the least they can be.
    unfinished: u64,
    /// Longest time between two looks: a delay may be too long by that.
    gap: Duration,
}

impl Seen {
    /// Failures that were seen.
    pub(super) fn samples(&self) -> u64 {
        self.delays.len() as u64
    }

    pub(super) fn rows(&self, case: &str) -> [Row; 2] {
        let quantiles = |row: Row, times: &Times| {
            row.ms("p50", times.quantile(500))
                .ms("p99", times.quantile(990))
                .ms("p99.9", times.quantile(999))
                .ms("worst", times.quantile(1000))
                .count("samples", times.len() as u64)
        };
        [
            quantiles(Row::new(case), &self.delays)
                .count("unfinished", self.unfinished)
                .count("failed without an answer", self.unasked)
                .ms("longest gap between looks", self.gap),
            quantiles(
                Row::new(format!("{case}, at any moment")),
                &self.delays.with_omitted(2 * INTERVAL),
            ),
        ]
    }
}

/// Measures both, the quiet one first.
///
/// # Errors
/// A part that does not start or that the daemon refuses, or too few failures.
pub(crate) fn measure(sandbox: &Sandbox, plan: &Plan) -> Result<Vec<Row>> {
    let fleet = Fleet { pools: plan.pools, backends: plan.backends };
    let daemon = Daemon::started(sandbox, "failover", Room::for_fleet(fleet))?;
    let origin = Instant::now();
    let (servers, addresses) = start_servers(&daemon, origin)?;
    let client = daemon.client()?;

    eprintln!("control: failover quiet");
    client.apply(
        &with_flapping(Fleet { pools: 0, backends: 0 }, Edit::Nothing, &addresses)?,
        false,
    )?;
    let maps = PinnedMaps::open(&daemon.bpffs)?;
    let quiet = sample(&maps, 1, &servers, origin, plan.failover_time(false), plan.realtime)?;
    let mut rows = Vec::from(quiet.rows("failover quiet"));

    eprintln!("control: failover beside load");
    let edits = [Edit::OneMore, Edit::OneWeight];
    let [more, weight] = edits.map(|edit| with_flapping(fleet, edit, &addresses));
    client.apply(&with_flapping(fleet, Edit::Nothing, &addresses)?, false)?;
    let load = Load::start(&daemon, [more?, weight?], plan.watchers)?;
    let port = u16::try_from(plan.pools + 1).context("a port for each pool")?;
    let seen = sample(&maps, port, &servers, origin, plan.failover_time(true), plan.realtime)?;
    let (load, refusal) = load.finish();
    rows.extend(seen.rows("failover beside load"));
    rows.push(load.count("pools", plan.pools.into()).count("backends each", plan.backends.into()));
    if let Some(refusal) = refusal {
        eprintln!("control: the daemon's last refusal under load: {refusal}");
    }
    Ok(rows)
}

/// The backends that fail, with their addresses.
///
/// # Errors
/// A port that cannot be had.
pub(super) fn start_servers(
    daemon: &Daemon,
    origin: Instant,
) -> Result<(Vec<Switchable>, Vec<Ipv4Addr>)> {
    let addresses: Vec<_> = (0..BACKENDS).map(|n| configuration::host(FIRST_BACKEND + n)).collect();
    let start =
        |address: &Ipv4Addr| Switchable::start(&daemon.network.backends, *address, PORT, origin);
    let servers = addresses.iter().map(start).collect::<Result<_>>()?;
    Ok((servers, addresses))
}

/// A fleet, and the pool whose backends fail.
pub(super) fn with_flapping(
    fleet: Fleet,
    edit: Edit,
    addresses: &[Ipv4Addr],
) -> Result<Configuration> {
    let mut all = fleet.configuration(edit);
    add_pool(&mut all, "flapping", addresses, configuration::check(true, PORT, INTERVAL)?);
    Ok(all)
}

/// Looks for so long, from a thread before all ordinary ones if that may be.
pub(super) fn sample(
    maps: &PinnedMaps,
    port: u16,
    servers: &[Switchable],
    origin: Instant,
    time: Duration,
    realtime: bool,
) -> Result<Seen> {
    let mut members = Members::find(maps, port)?;
    servers.iter().for_each(Switchable::pass);
    until("all members are up", PATIENCE, || {
        Ok((members.count_up() == servers.len()).then_some(()))
    })?;
    std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            match prefer_this_thread() {
                Err(error) if realtime => return Err(error),
                Err(error) => eprintln!("control: looks at the maps without priority: {error:#}"),
                Ok(()) => {}
            }
            let members = Members::find(maps, port)?;
            look_for(members, servers, origin, time)
        });
        looking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn look_for(
    mut members: Members<'_>,
    servers: &[Switchable],
    origin: Instant,
    time: Duration,
) -> Result<Seen> {
    let mut flaps = vec![Flap::new(); servers.len()];
    let (mut delays, mut unasked, mut gap) = (Vec::new(), 0, Duration::ZERO);
    let begin = origin.elapsed();
    let mut last = begin;
    loop {
        let round = origin.elapsed();
        gap = gap.max(round - last);
        last = round;
        if round >= begin + time {
            break;
        }
        for (server, flap) in servers.iter().zip(&mut flaps) {
            let place = members.place(server.address.into());
            // A pool that is being changed is looked at again.
            let Some(is_up) = place.and_then(|place| members.is_up(place)) else { continue };
            match flap.look(origin.elapsed(), is_up, server.failed_answer()) {
                Turn::Stay => {}
                Turn::Fail => server.fail(),
                Turn::Pass(delay) => {
                    delays.push(delay);
                    server.pass();
                }
                Turn::PassUnasked => {
                    unasked += 1;
                    server.pass();
                }
            }
        }
        std::thread::park_timeout(LOOK);
    }
    let now = origin.elapsed();
    let waits = |(flap, server): (&Flap, &Switchable)| flap.waits(now, server.failed_answer());
    // Those that just began say nothing yet.
    let unfinished: Vec<_> = flaps.iter().zip(servers).filter_map(waits).collect();
    let unfinished: Vec<_> = unfinished.into_iter().filter(|wait| *wait > INTERVAL).collect();
    let count = unfinished.len() as u64;
    delays.extend(unfinished);
    ensure!(!delays.is_empty(), "no backend failed within {time:?}");
    Ok(Seen { delays: delays.into_iter().collect(), unasked, unfinished: count, gap })
}
