//! Chunks of slot tables: how packets find a slot in them, and what becomes of those that a killed daemon had begun to
//! add or to remove.

use std::{collections::BTreeSet, fs, process::Command};

use anyhow::{Context as _, Result, ensure};
use aya::maps::{Array, MapData};
use lb_e2e::harness::note;
use lb_maps::{Component, Dataplane, MappingMut, Options, Pins, SizeSettings, XdpMode};
use lb_tests::sandbox::Sandbox;
use serde_json::Value;

use crate::reconcile::{
    bulk::{many, waits},
    fake_daemon::FakeDaemon,
    model,
};

/// Words of a chunk, and `BPF_F_MMAPABLE`.
const WORDS: u32 = 1 << 19;
const MMAPABLE: u32 = 1 << 10;

/// Slots of the largest table, which has a chunk of its own.
const LARGEST: u32 = 419_423;

fn bpftool(arguments: &[&str]) -> Result<String> {
    let output = Command::new("bpftool").args(arguments).output().context("bpftool")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "bpftool {arguments:?}: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The program as the kernel runs it calls no function for a look-up in an array: the kernel put all of them inline, those
/// in chunks among them.
pub(crate) fn inlined(sandbox: &Sandbox) -> Result<()> {
    let daemon = FakeDaemon::new(sandbox, "inlined")?;
    let program = Pins::new(daemon.bpffs(), Component::Balancer).program();
    let program = program.to_str().context("a path in UTF-8")?;
    let code = bpftool(&["prog", "dump", "xlated", "pinned", program])?;
    let calls = |name: &str| code.matches(&format!("call {name}#")).count();
    // Growing a frame is a call, so calls have names here.
    ensure!(calls("bpf_xdp_adjust_head") > 0, "no call has a name: {code}");
    ensure!(calls("array_map_lookup_elem") == 0, "{} calls", calls("array_map_lookup_elem"));
    Ok(())
}

/// The pins of chunks, by index.
fn pinned(daemon: &FakeDaemon) -> Result<BTreeSet<u32>> {
    let mut indices = BTreeSet::new();
    for entry in fs::read_dir(directory(daemon))? {
        indices.insert(entry?.file_name().to_str().context("a number")?.parse()?);
    }
    Ok(indices)
}

fn directory(daemon: &FakeDaemon) -> std::path::PathBuf {
    Pins::new(daemon.bpffs(), Component::Balancer).root().join("inner/TABLES")
}

/// The chunk at an index of the array, by the kernel's id.
fn id_at(daemon: &FakeDaemon, index: u32) -> Result<Value> {
    let path = Pins::new(daemon.bpffs(), Component::Balancer).map("TABLES");
    let path = path.to_str().context("a path in UTF-8")?;
    let key = index.to_le_bytes().map(|byte| byte.to_string());
    let lookup = ["-j", "map", "lookup", "pinned", path, "key"].into_iter();
    let arguments: Vec<&str> = lookup.chain(key.iter().map(String::as_str)).collect();
    let answer: Value = serde_json::from_str(&bpftool(&arguments)?)?;
    ensure!(answer["value"].is_array(), "{answer}");
    Ok(answer["value"].clone())
}

pub(crate) fn left_half_way(sandbox: &Sandbox) -> Result<()> {
    let mut daemon = FakeDaemon::new(sandbox, "half-way")?;
    daemon.configuration = many(3, 4, LARGEST, 0);
    daemon.apply()?;
    let three = BTreeSet::from([0, 1, 2]);
    ensure!(*daemon.reconciler().maps().chunks() == three && pinned(&daemon)? == three);

    // One was pinned, and not yet in the array. Another one was, and did not say so yet, or no longer.
    let unused = Array::<MapData, u64>::create(WORDS, MMAPABLE)?;
    unused.pin(directory(&daemon).join("7"))?;
    let begun = Array::<MapData, u64>::create(WORDS, MMAPABLE)?;
    begun.pin(directory(&daemon).join("5"))?;
    let path = Pins::new(daemon.bpffs(), Component::Balancer).map("TABLES");
    let (path, at) = (path.to_str().context("a path")?, directory(&daemon).join("5"));
    let at = at.to_str().context("a path")?;
    let update =
        ["map", "update", "pinned", path, "key", "5", "0", "0", "0", "value", "pinned", at];
    bpftool(&update)?;
    let first = id_at(&daemon, 0)?;
    ensure!(id_at(&daemon, 5)? != first);
    daemon.restart()?;
    ensure!(*daemon.reconciler().maps().chunks() == three && pinned(&daemon)? == three);
    ensure!(id_at(&daemon, 5)? == first, "the chunk is still there");
    model::check(&daemon)?;

    // Two of three tables go, and so does one of the chunks: the first one stays empty.
    let last = daemon.configuration.pools.keys().next_back().unwrap().clone();
    daemon.configuration.pools.retain(|name, _| *name == last);
    daemon.configuration.services.retain(|_, service| service.pool == last);
    daemon.apply()?;
    let left = daemon.reconciler().maps().chunks().clone();
    ensure!(left.contains(&0) && left.len() == 2 && pinned(&daemon)? == left, "{left:?}");

    // A chunk without tables does not say any more that it is in use.
    daemon.configuration = many(0, 0, 7, 0);
    daemon.apply()?;
    ensure!(pinned(&daemon)? == BTreeSet::from([0]));
    let chunk = MapData::from_pin(directory(&daemon).join("0"))?;
    MappingMut::new(chunk.fd(), WORDS as usize)?.store(0, 0);
    daemon.restart()?;
    ensure!(id_at(&daemon, 0)? != first, "the first chunk was not made again");
    daemon.configuration = many(2, 4, LARGEST, 0);
    daemon.apply()?;
    model::check(&daemon)
}

/// Each deletion from an array of maps would wait for a grace period.
pub(crate) fn few_grace_periods(sandbox: &Sandbox) -> Result<()> {
    const MANY: u32 = 64;
    let options = Options {
        objects: lb_programs::OBJECTS,
        bpffs: sandbox.bpffs("chunks")?,
        interfaces: vec![],
        hook: XdpMode::Auto.into(),
        sizes: SizeSettings::default(),
    };
    let mut maps = Dataplane::open(&options)?.maps;
    let ((), grace) = waits(|| Ok(maps.wait_for_readers()?))?;
    let chunks: Vec<u32> = (1..=MANY).collect();
    maps.add_chunks(&chunks)?;
    ensure!(maps.chunks().len() as u32 == MANY + 1);
    let (_, waits) = waits(|| Ok(maps.remove_chunks(&chunks)?))?;
    ensure!(*maps.chunks() == BTreeSet::from([0]));
    note(format!("waits for {MANY} chunks: {waits}; for a grace period: {grace}"));
    ensure!(grace > 0, "a grace period is not waited for");
    ensure!(waits < u64::from(MANY / 2), "{waits} waits for {MANY} chunks");
    Ok(())
}
