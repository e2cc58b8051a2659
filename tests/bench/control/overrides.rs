//! How long an override takes from the call to the member word, with a large configuration: while the disk answers, while it
//! is full, and while it is frozen.
//!
//! A time is from just before the client makes its call to the first look at the maps in which the member is as asked. A
//! backend is drained and undrained by turns. Each call waits for the one before.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_maps::PinnedMaps;
use spillway_proto::v1::OverrideTarget;

use lb_tests::disk::Disk;
use lb_tests::process::until;
use lb_tests::sandbox::Sandbox;

use super::Plan;
use super::configuration::{Edit, Fleet, REGION, host, pool_name};
use super::daemon::{Client, Daemon, PATIENCE, Room, Surroundings};
use super::figures::{Row, Times};
use super::words::Members;

/// From one look at the maps to the next.
const LOOK: Duration = Duration::from_micros(50);
/// Calls while the disk answers or is full, and while it is frozen, when each call waits for it for a second.
const CALLS: usize = 400;
const FROZEN_CALLS: usize = 20;

/// Measures all of it, with one daemon.
///
/// # Errors
/// A daemon that does not start, a call that is refused, or a word that does not change.
pub(crate) fn measure(sandbox: &Sandbox, plan: &Plan) -> Result<Vec<Row>> {
    let mut disk = Disk::mount(sandbox)?;
    let surroundings =
        Surroundings { state: Some(disk.directory().join("state")), has_journal: false };
    let fleet = Fleet { pools: plan.pools, backends: plan.backends };
    let daemon = Daemon::started_in(sandbox, "overrides", Room::for_fleet(fleet), surroundings)?;
    let client = daemon.client()?;
    client.apply(&fleet.configuration(Edit::Nothing), false)?;
    let maps = PinnedMaps::open(&daemon.bpffs)?;
    let mut words = Words::find(&maps, &client)?;
    let of = |what: &str| {
        Row::new(format!("overrides, {} pools of {}: {what}", plan.pools, plan.backends))
    };
    let calls = if plan.quick { 40 } else { CALLS };

    eprintln!("control: overrides");
    let backend = OverrideTarget { backend: host(0).to_string(), ..Default::default() };
    let one = OverrideTarget { pool: pool_name(0), ..backend.clone() };
    let mut rows = vec![
        words.turns(of("a backend in its pool"), &one, calls)?,
        words.turns(of("a backend in all pools"), &backend, calls)?,
    ];
    let region = OverrideTarget { region: REGION.into(), ..Default::default() };
    rows.push(words.turns(of("a region, in the first of its pools"), &region, 10)?);

    eprintln!("control: overrides with a full disk");
    // With these the file needs more than the few blocks that are left of a full disk.
    let other = |number| OverrideTarget {
        backend: host(number).to_string(),
        pool: pool_name(0),
        ..Default::default()
    };
    client.drain((1..plan.backends).map(other).collect(), &"x".repeat(250))?;
    disk.fill()?;
    words.turns(of("fill"), &one, 2)?;
    let (status, _) = client.status()?;
    let is_full = status.conditions.iter().any(|it| it.subject == "overrides");
    ensure!(is_full, "the disk takes overrides: {:?}", status.conditions);
    rows.push(words.turns(of("a backend in its pool, disk full"), &one, calls)?);
    disk.free()?;
    until("all is stored", PATIENCE, || {
        let (status, _) = client.status()?;
        Ok(status.conditions.is_empty().then_some(()))
    })?;

    eprintln!("control: overrides with a frozen disk");
    disk.freeze()?;
    let frozen = words.turns(of("a backend in its pool, disk frozen"), &one, FROZEN_CALLS);
    disk.thaw()?;
    rows.push(frozen?);
    Ok(rows)
}

/// The words of the first pool, and who asks for changes of them.
struct Words<'a> {
    members: Members<'a>,
    first: usize,
    client: &'a Client,
}

impl<'a> Words<'a> {
    fn find(maps: &'a PinnedMaps, client: &'a Client) -> Result<Self> {
        let members = Members::find(maps, 1)?;
        let first = members.place(host(0).into()).context("no first backend")?;
        Ok(Self { members, first, client })
    }

    /// Drains and undrains so many times.
    fn turns(&mut self, row: Row, target: &OverrideTarget, calls: usize) -> Result<Row> {
        let mut times = Vec::with_capacity(calls);
        for call in 0..calls {
            times.push(self.change(target, call % 2 == 0)?);
        }
        ensure!(calls.is_multiple_of(2), "it would stay drained");
        Ok(row.times(&times.into_iter().collect::<Times>()))
    }

    fn change(&mut self, target: &OverrideTarget, drains: bool) -> Result<Duration> {
        let (client, began) = (self.client, Instant::now());
        std::thread::scope(|scope| {
            let call = scope.spawn(move || client.set_drain(target, drains));
            while self.members.is_up(self.first) != Some(!drains) {
                ensure!(began.elapsed() < PATIENCE, "the word does not change");
                std::thread::park_timeout(LOOK);
            }
            let time = began.elapsed();
            call.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(time)
        })
    }
}
