//! A process that changes maps is killed at random moments: what it leaves is whole, and the next one goes on from
//! it.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use fastrand::Rng;
use lb_common::abi::{
    limiter::NO_LIMITER,
    member::{Accepts, MemberWord},
    slot::{NO_RANK, TableRef},
};
use lb_maps::PinnedMaps;
use lb_model::{Configuration, ids::Named, maglev};
use lb_publish::publisher::PacketPath as _;
use lb_tests::{sample::Sample, sandbox::Sandbox};

use crate::reconcile::{
    capacity,
    fake_daemon::{FakeDaemon, interfaces},
    limits, model, random,
};

/// Says to this program that it is the one to be killed, and which maps to change.
const MAPS: &str = "SPILLWAY_TEST_CRASH";
/// Says to it that only health is to change, and the interface that members are behind.
const INTERFACE: &str = "SPILLWAY_TEST_CRASH_INTERFACE";
/// Where everything is run; a sample has a quarter of them, at moments of its own.
const KILLS: u64 = 40;
/// What the process prints when the first change is behind it.
const READY: &str = "ready";

/// The process to be killed, if this is it.
pub(crate) fn victim() -> Option<ExitCode> {
    let bpffs = PathBuf::from(env::var_os(MAPS)?);
    let interface = env::var(INTERFACE).ok().and_then(|index| index.parse().ok());
    let ended = match interface {
        None => change_for_ever(&bpffs),
        Some(interface) => capacity::come_and_go(&bpffs, interface, ready),
    };
    #[expect(clippy::print_stderr, reason = "the test shows it")]
    {
        eprintln!("{ended:?}");
    }
    Some(ExitCode::FAILURE)
}

fn change_for_ever(bpffs: &Path) -> Result<()> {
    let mut rng = Rng::new();
    let mut daemon = FakeDaemon::without_store(bpffs)?;
    daemon.configuration = random::start(&mut rng);
    for changes in 0_u64.. {
        for _ in 0..rng.u8(1..6) {
            random::mutate(&mut rng, &mut daemon.configuration);
        }
        if rng.bool() {
            daemon.forget()?;
        }
        daemon.change()?;
        for (pool, address) in daemon.states.keys().cloned().collect::<Vec<_>>() {
            daemon.set_state(&pool, address, *rng.choice(&random::STATES).unwrap());
        }
        if changes == 0 {
            ready();
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the test waits for it")]
fn ready() {
    println!("{READY}");
}

pub(crate) fn no_limit_too_high(sandbox: &Sandbox) -> Result<()> {
    let [interface, _] = interfaces("k")?;
    let bpffs = sandbox.bpffs("health-crash")?;
    let sample = Sample::from_environment();
    let mut rng = Rng::with_seed(12 ^ sample.seed());
    for round in 0..sample.rounds(KILLS, 4) {
        let after = Duration::from_micros(rng.u64(..5_000));
        kill_one(&bpffs, after, &[(INTERFACE, interface.to_string())])?;
        let maps = PinnedMaps::open(&bpffs)?;
        whole(&maps).with_context(|| format!("after kill {round}"))?;
        capacity::capacity_is_there(&maps).with_context(|| format!("after kill {round}"))?;
    }
    Ok(())
}

pub(crate) fn a_killed_process_leaves_whole_maps(sandbox: &Sandbox) -> Result<()> {
    let bpffs = sandbox.bpffs("crash")?;
    let sample = Sample::from_environment();
    let mut rng = Rng::with_seed(11 ^ sample.seed());
    for round in 0..sample.rounds(KILLS, 4) {
        kill_one(&bpffs, Duration::from_micros(rng.u64(..120_000)), &[])?;
        whole(&PinnedMaps::open(&bpffs)?).with_context(|| format!("after kill {round}"))?;
        // One that knows nothing but the maps goes on, to something else altogether.
        let mut daemon = FakeDaemon::without_store(&bpffs)?;
        daemon.configuration = random::start(&mut rng);
        for _ in 0..10 {
            random::mutate(&mut rng, &mut daemon.configuration);
        }
        daemon.apply().with_context(|| format!("after kill {round}"))?;
        model::check(&daemon).with_context(|| format!("after kill {round}"))?;
    }
    let mut daemon = FakeDaemon::without_store(&bpffs)?;
    daemon.configuration = Configuration::default();
    daemon.apply()?;
    ensure!(daemon.reconciler().named() == Named::default());
    let chunks = daemon.reconciler().maps().chunks();
    ensure!(*chunks == BTreeSet::from([0]), "chunks are left over: {chunks:?}");
    Ok(())
}

/// Starts the process, and kills it some time after its first change.
fn kill_one(bpffs: &Path, after: Duration, variables: &[(&str, String)]) -> Result<()> {
    let mut victim = Victim(
        Command::new(env::current_exe()?)
            .env(MAPS, bpffs)
            .envs(variables.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?,
    );
    let mut line = String::new();
    BufReader::new(victim.0.stdout.take().context("no output")?).read_line(&mut line)?;
    ensure!(line.trim() == READY, "the process ended by itself");
    #[expect(clippy::disallowed_methods, reason = "a random moment is what is wanted")]
    thread::sleep(after);
    if let Some(status) = victim.0.try_wait()? {
        bail!("the process ended by itself: {status}");
    }
    victim.0.kill()?;
    victim.0.wait()?;
    Ok(())
}

/// Killed when the test gives up, too.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// What no packet may ever meet otherwise, whatever was under way: services lead to pools, pools to
/// groups with a table of ranks that exist, ranks to members whose backend is the one that is meant.
fn whole(maps: &PinnedMaps) -> Result<()> {
    let (mut served, mut tables) = (BTreeSet::new(), BTreeMap::new());
    for service in maps.services()? {
        served.insert(service.pool);
        let pool = maps.pool_view(service.pool)?;
        ensure!(pool.is_some(), "{} leads to pool {}", service.key.ip(), service.pool);
    }
    limits::limiters(maps)?;
    for index in 0..maps.pool_count() {
        let Some(pool) = maps.pool_view(index)? else { continue };
        ensure!(pool.groups.len() == pool.descriptor.group_count as usize);
        let home = pool.groups.first().map_or(NO_LIMITER, |(_, home)| home.limiter);
        ensure!(pool.descriptor.home_limiter == home, "pool {index}: not the limiter of its home");
        let formers = pool.previous.iter().flat_map(|previous| {
            previous.groups.iter().take(previous.group_count as usize).copied()
        });
        let formers = formers.map(|at| Some((at, maps.group(at)?)));
        let formers: Vec<_> = formers.collect::<Option<_>>().context("no previous group")?;
        let heads = pool.groups.iter().chain(&formers).map(|(_, group)| group.head);
        let words = heads.flat_map(|head| (head.members..).take(head.member_count as usize));
        let words: Vec<_> = words.filter_map(|at| maps.member(at)).collect();
        let is_offering =
            |word: &MemberWord| word.accepts() as u8 + u8::from(word.is_last_resort());
        let most = words.iter().map(is_offering).max().unwrap_or(0).min(2);
        let least = words.iter().map(|word| word.pool_accepts() as u8).min().unwrap_or(2);
        ensure!(least >= most, "pool {index}: said to accept {least}, a member accepts {most}");
        for (at, group) in pool.groups.iter().chain(&formers) {
            let head = &group.head;
            for rank in 0..head.member_count {
                let member = maps.member(head.members + rank).context("no word")?;
                let backend = pool.backends.get(&member.backend()).context("no backend")?;
                ensure!(
                    member.backend() != 0 && backend.incarnation == member.incarnation(),
                    "pool {index}, group {at}, rank {rank}: {member:?} is not {backend:?}"
                );
                let host = maps.backend_state(member.backend());
                let state = maps.state_in(index, member.backend())?;
                ensure!(
                    member.accepts() == Accepts::Nothing
                        || !served.contains(&index)
                        || (host.incarnation() == member.incarnation()
                            && state as u8 >= member.accepts() as u8),
                    "pool {index}, group {at}, rank {rank}: {host:?}, {state:?} there, is the host of {member:?}"
                );
            }
            let table = pool.tables.get(&TableRef(head.table)).context("no table")?;
            let name = table.name().with_context(|| format!("pool {index}: half a table"))?;
            let checksum = maglev::checksum(&table.slots().map(|list| list.0).collect::<Vec<_>>());
            let other = tables.insert(name, checksum).filter(|other| *other != checksum);
            ensure!(other.is_none(), "pool {index}: two tables are named {name:?}");
            for (slot, list) in (0..).zip(table.slots()) {
                for entry in 0..4 {
                    let rank = list.rank(entry);
                    let exists = u32::from(rank) < head.member_count;
                    ensure!(exists || (entry > 0 && rank == NO_RANK), "pool {index}: rank {rank}");
                }
                ensure!(table.owner(slot) == Some(list.rank(0)), "pool {index}: slot {slot}");
            }
        }
    }
    Ok(())
}
