//! The memory of maps is what the kernel says, and a configuration beyond its limit changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use lb_common::abi::names::FLOWS;
use lb_maps::{Component, PinnedMaps, Pins};
use lb_tests::daemon::{Balancer, Binaries};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Fabric, REGIONS};
use serde_json::Value;
use spillway_proto::v1::{Configuration, MapMemory};
use tonic::Code;

/// An entry of the map of devices: there is one for each interface, made when the daemon attaches, after
/// it has asked what its maps take.
const DEVICE: u64 = 64;
/// An entry of the map of backends that several pools have: there is one for each such pool, made when it is applied
/// (kernel/bpf/hashtab.c, `htab_map_mem_usage`).
const SHARED_BACKEND: u64 = 72;

/// What the maps are made with.
fn configuration(pools: &[(&str, u32)]) -> String {
    let mut text = String::from("[[region]]\nname = \"eu\"\n");
    for (name, slots) in pools {
        text += &format!(
            "[[pool]]\nname = \"{name}\"\nslots = {slots}\nsettle_time = \"1s\"\n\
             [[pool.backend]]\naddress = \"10.1.0.11\"\nregion = \"eu\"\n\
             [[pool.backend]]\naddress = \"10.1.0.12\"\nregion = \"eu\"\nweight = {}\n",
            slots % 7 + 1
        );
    }
    text
}

/// A balancer with one pool, and its configuration.
fn one_pool(sandbox: &Sandbox, name: &str) -> Result<(Fabric, Balancer, Configuration)> {
    let fabric = Fabric::new(sandbox, name, 2)?;
    let balancer = Balancer::started(sandbox, &Binaries::find()?, &fabric.balancer, REGIONS[0])?;
    balancer.apply(&configuration(&[("a", 65_537)]))?;
    let (_, one) = balancer.client()?.export()?;
    Ok((fabric, balancer, one))
}

/// Of each pinned map, with the maps that stand in it, what the kernel has set aside: as bpftool reads
/// it from the descriptors' own files.
fn kernel(balancer: &Balancer) -> Result<BTreeMap<String, u64>> {
    let pins = Pins::new(&balancer.bpffs, Component::Balancer);
    let maps = pins.maps();
    let entries = fs::read_dir(&maps).with_context(|| maps.display().to_string())?;
    let mut paths = entries.map(|entry| Ok((entry?.path(), None))).collect::<Result<Vec<_>>>()?;
    // It stands beside the layouts.
    paths.push((pins.map(FLOWS), Some(FLOWS)));
    let mut sizes = BTreeMap::new();
    for (path, name) in paths {
        let name =
            name.or_else(|| path.file_name()?.to_str()).context("a name in UTF-8")?.to_owned();
        let path = path.to_str().context("a path in UTF-8")?;
        let shown = bpftool(&["map", "show", "pinned", path])?;
        let mut bytes = locked(&shown)?;
        if shown["type"].as_str().is_some_and(|kind| kind.ends_with("_of_maps")) {
            let inner = bpftool(&["map", "dump", "pinned", path])?;
            let entries = inner.as_array().context("no array")?;
            // The first chunk stands wherever there is no chunk any more.
            let ids: BTreeSet<u32> = entries.iter().filter_map(|e| inner_id(&e["value"])).collect();
            for id in ids {
                bytes += locked(&bpftool(&["map", "show", "id", &id.to_string()])?)?;
            }
        }
        sizes.insert(name, bytes);
    }
    Ok(sizes)
}

/// The number of a map in a map, from its bytes in hexadecimal; `None`: there is none in this place.
fn inner_id(value: &Value) -> Option<u32> {
    let bytes = value.as_array()?.iter().map(|byte| {
        let digits = byte.as_str()?.strip_prefix("0x")?;
        u8::from_str_radix(digits, 16).ok()
    });
    let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn bpftool(arguments: &[&str]) -> Result<Value> {
    let output = Command::new("bpftool").arg("-j").args(arguments).output().context("bpftool")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text).with_context(|| format!("bpftool {arguments:?}: {text}"))
}

fn locked(map: &Value) -> Result<u64> {
    map["bytes_memlock"].as_u64().with_context(|| format!("{map}: no memlock"))
}

fn by_name(memory: &MapMemory) -> BTreeMap<String, u64> {
    memory.maps.iter().map(|map| (map.map.clone(), map.bytes)).collect()
}

/// A dry run says of each map what the kernel says when it is applied.
pub(crate) fn as_the_kernel_says(sandbox: &Sandbox) -> Result<()> {
    let (_fabric, balancer, one) = one_pool(sandbox, "memory")?;
    let client = balancer.client()?;
    balancer.apply(&configuration(&[("a", 65_537), ("b", 419_423), ("c", 31), ("d", 299_993)]))?;
    let (_, four) = client.export()?;
    balancer.apply("# nothing\n")?;
    settled(&balancer)?;
    let nothing: u64 = kernel(&balancer)?.values().sum();

    for configuration in [&one, &four, &one] {
        let dry = client.apply(configuration, true)?.memory.context("nothing changes")?;
        let real = client.apply(configuration, false)?.memory.context("nothing changed")?;
        ensure!(dry == real, "{dry:?}, then {real:?}");
        // One chunk of tables stays when there are none. Of a device's element only the kernel knows.
        ensure!(real.needed_bytes + DEVICE >= nothing && real.limit_bytes.is_none(), "{real:?}");
        settled(&balancer)?;
        // Tables that went are given back when nobody can read them any more.
        let mut there = BTreeMap::new();
        until("the kernel has what was told", PATIENCE, || {
            there = kernel(&balancer)?;
            *there.get_mut("DEVICES").context("no map of devices")? -= DEVICE;
            let shared = PinnedMaps::open(&balancer.bpffs)?.shared_backends()?.len() as u64;
            *there.get_mut("SHARED_BACKENDS").context("no such map")? -= SHARED_BACKEND * shared;
            Ok((by_name(&real) == there).then_some(()))
        })
        .with_context(|| format!("told {real:#?}, there is {there:#?}"))?;
        ensure!(real.needed_bytes == there.values().sum::<u64>(), "{real:?}");
        ensure!(real.peak_bytes >= real.needed_bytes, "{real:?}");
    }
    Ok(())
}

/// Waits until what was before has gone from the maps.
fn settled(balancer: &Balancer) -> Result<()> {
    until("no pool settles", PATIENCE, || Ok(balancer.status()?.settling.is_empty().then_some(())))
}

pub(crate) fn limited(sandbox: &Sandbox) -> Result<()> {
    let (_fabric, mut balancer, fits) = one_pool(sandbox, "limited")?;
    let client = balancer.client()?;
    let memory = client.apply(&Configuration::default(), true)?.memory.context("no memory")?;
    let most = memory.peak_bytes + DEVICE;
    drop(client);
    balancer.stop()?;

    // As much as is there, and not a byte more.
    balancer.more = vec!["--map-memory-limit".into(), most.to_string()];
    balancer.start()?;
    let client = balancer.client()?;
    let (generation, before) = client.export()?;
    ensure!(before == fits, "{before:?}");
    let there = kernel(&balancer)?;
    ensure!(there.values().sum::<u64>() == most, "{most}, {there:?}");
    let mut more = fits.clone();
    // Of the same members: only other slots make another table.
    for (name, slots) in [("b", 419_423), ("c", 419_417)] {
        let mut further = fits.pools.first().context("no pool")?.clone();
        (further.name, further.slots) = (name.into(), Some(slots));
        more.pools.push(further);
    }
    for dry_run in [true, false] {
        let status = client.apply(&more, dry_run).err().context("beyond the limit")?;
        ensure!(status.code() == Code::ResourceExhausted, "{status}");
        ensure!(status.message().contains("of map-memory-limit"), "{status}");
    }
    ensure!(client.export()? == (generation, fits.clone()), "something changed");
    ensure!(kernel(&balancer)? == there, "something is in the maps");
    balancer.stop()?;

    // One of the large tables fits beside the first one, the other takes a chunk of its own: 4 MiB of words, and a page
    // for its head.
    let most = most + (4 << 20) + 4096;
    balancer.more = vec!["--map-memory-limit".into(), most.to_string()];
    balancer.start()?;
    let client = balancer.client()?;
    let memory = client.apply(&more, false)?.memory.context("nothing changed")?;
    ensure!((memory.needed_bytes, memory.limit_bytes) == (most, Some(most)));
    drop(client);
    balancer.stop()?;

    // Less than the maps take before any configuration: it does not start, and says so.
    balancer.more = vec!["--map-memory-limit".into(), "1MiB".into()];
    let error = balancer.start().err().context("it starts")?;
    let said = format!("{error:#}");
    ensure!(said.contains("more than --map-memory-limit"), "{said}");
    ensure!(said.contains("hint: "), "{said}");
    Ok(())
}
