//! How many entries maps have: what the settings say when they are made, and afterwards what they have.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use aya::maps::{HashMap, Map, MapData, MapInfo, PerCpuArray};
use lb_common::abi::sizes::{MapSizes, Size};
use lb_maps::{Component, Dataplane, FlowTables, Options, Pins, SizeSettings, XdpMode, detach};
use lb_tests::sandbox::Sandbox;

use super::{options, refusal};

fn with(bpffs: &Path, sizes: &[(Size, u32)]) -> Options {
    let sizes = sizes.iter().copied().collect();
    Options { sizes, ..options(bpffs, &[], XdpMode::Auto) }
}

/// Entries of each pinned map, as the kernel has them.
fn entries(bpffs: &Path) -> Result<BTreeMap<String, u32>> {
    let maps = Pins::new(bpffs, Component::Balancer).maps();
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(&maps)? {
        let path = entry?.path();
        let name = path.file_name().context("a name")?.to_string_lossy().into_owned();
        found.insert(name, MapInfo::from_pin(&path)?.max_entries());
    }
    Ok(found)
}

/// Numbers that no other setting or map has.
const SMALL: [(Size, u32); 9] = [
    (Size::Services, 8),
    (Size::Ports, 70),
    (Size::Pools, 5),
    (Size::Groups, 6),
    (Size::Backends, 20),
    (Size::PoolBackends, 30),
    (Size::LimitedBackends, 4),
    (Size::Displaced, 8_192),
    (Size::UdpFlows, 4_096),
];

/// What the maps of these sizes have, two generations and three versions side by side.
const SMALL_MAPS: [(&str, u32); 20] = [
    ("ADDRESSES", 8),
    ("BACKENDS", 21),
    ("BACKEND_COUNTERS", 21),
    ("BACKEND_STATES", 21),
    ("DESCRIPTORS", 18),
    ("DISPLACED_V4", 8_192),
    ("DISPLACED_V6", 2_048),
    ("FLOWS_V4", 4_096),
    ("FLOWS_V6", 1_024),
    ("GROUPS", 13),
    ("GROUP_COUNTERS", 20),
    ("LIMITERS", 28),
    ("MEMBERS", 60),
    ("MEMBER_LIMITERS", 60),
    ("POOLS", 6),
    ("SERVICES", 141),
    // A cache line for the head, and two areas of 512 entries and 32 more.
    ("SERVICE_INDEX", 1_096),
    ("SERVICE_COUNTERS", 9),
    ("SHARED_BACKENDS", 60),
    ("STANDBYS", 104),
];

fn are_small(found: &BTreeMap<String, u32>) -> Result<()> {
    for (map, entries) in SMALL_MAPS {
        ensure!(found.get(map) == Some(&entries), "{map}: {:?}", found.get(map));
    }
    Ok(())
}

/// Pinned maps keep their sizes and what is in them: a start with other settings is no reason to break open
/// connections, nor to leave the host without daemon.
pub(super) fn stay(sandbox: &Sandbox) -> Result<()> {
    let bpffs = sandbox.bpffs("sizes")?;
    drop(Dataplane::open(&with(&bpffs, &SMALL))?);
    let small = entries(&bpffs)?;
    are_small(&small)?;
    let mut tables = FlowTables::open(&bpffs)?;
    tables.displaced_v4.set(&[1, 2], 3)?;
    let larger = SMALL.map(|(size, number)| (size, 2 * number));
    let fewer = [(Size::Services, 2), (Size::Displaced, 4_096)];
    for asked in [larger.as_slice(), &fewer, &[]] {
        let settings: SizeSettings = asked.iter().copied().collect();
        let opened = Dataplane::open(&with(&bpffs, asked))?;
        let in_force = opened.maps.sizes();
        for (size, number) in SMALL {
            ensure!(in_force.get(size) == number, "{size:?}: {}", in_force.get(size));
        }
        let waiting: Vec<_> = settings.waiting(&in_force).into_iter().map(|it| it.size).collect();
        ensure!(waiting == asked.iter().map(|(size, _)| *size).collect::<Vec<_>>(), "{waiting:?}");
        ensure!(entries(&bpffs)? == small, "{asked:?}: {:?}", entries(&bpffs)?);
        let there = FlowTables::open(&bpffs)?.displaced_v4.read(None, 100)?;
        ensure!(there == (vec![([1, 2], 3)], None), "{there:?}");
    }
    detach(&bpffs, Component::Balancer)?;
    drop(Dataplane::open(&with(&bpffs, &[(Size::UdpFlows, 5_000)]))?);
    let found = entries(&bpffs)?;
    for (map, entries) in [
        ("SERVICE_COUNTERS", 4_097),
        ("POOLS", 4_097),
        ("GROUPS", 8_193),
        ("BACKENDS", 16_385),
        ("MEMBERS", 65_536),
        ("DISPLACED_V4", 262_144),
        ("DISPLACED_V6", 65_536),
        ("FLOWS_V4", 5_000),
        ("FLOWS_V6", 1_250),
    ] {
        ensure!(found.get(map) == Some(&entries), "{map}: {:?}", found.get(map));
    }
    Ok(())
}

/// A start that was killed pinned some of the maps. The next one makes the others to fit, whatever it was asked for.
pub(super) fn interrupted(sandbox: &Sandbox) -> Result<()> {
    let bpffs = sandbox.bpffs("interrupted")?;
    drop(Dataplane::open(&with(&bpffs, &SMALL))?);
    let small = entries(&bpffs)?;
    let pins = Pins::new(&bpffs, Component::Balancer);
    for kept in [
        ["SERVICE_COUNTERS", "SERVICES", "POOLS", "GROUPS", "BACKENDS", "MEMBERS"],
        [
            "ADDRESSES",
            "SERVICES",
            "DESCRIPTORS",
            "GROUP_COUNTERS",
            "BACKEND_STATES",
            "SHARED_BACKENDS",
        ],
    ] {
        let also = ["LIMITERS", "DISPLACED_V4", "FLOWS_V6"];
        for (map, _) in SMALL_MAPS {
            if !kept.contains(&map) && !also.contains(&map) {
                fs::remove_file(pins.map(map)).with_context(|| map.to_owned())?;
            }
        }
        drop(Dataplane::open(&with(&bpffs, &SMALL.map(|(size, number)| (size, number + 100))))?);
        ensure!(entries(&bpffs)? == small, "{kept:?}: {:?}", entries(&bpffs)?);
    }
    Ok(())
}

pub(super) fn misfits(sandbox: &Sandbox) -> Result<()> {
    let bpffs = sandbox.bpffs("misfits")?;
    drop(Dataplane::open(&with(&bpffs, &SMALL))?);
    let pin = Pins::new(&bpffs, Component::Balancer).map("BACKEND_COUNTERS");
    fs::remove_file(&pin)?;
    PerCpuArray::<MapData, [u64; 3]>::create(22, 0)?.pin(&pin)?;
    let said = refusal(Dataplane::open(&with(&bpffs, &SMALL)))?;
    let expected = format!(
        "{}: has 22 entries, expected 21: another build of spillwayd made it; remove its pins with \
         `spillway detach`",
        pin.display()
    );
    ensure!(said == expected, "{said}");
    let said = refusal(lb_maps::PinnedMaps::open(&bpffs))?;
    ensure!(said == expected, "{said}");
    Ok(())
}

/// The maps of the greatest sizes, but for the tables of connections, and the highest number of each.
pub(super) fn greatest(sandbox: &Sandbox) -> Result<()> {
    let bpffs = sandbox.bpffs("greatest")?;
    let tables = [Size::Displaced, Size::UdpFlows];
    let sizes = Size::ALL.into_iter().filter(|size| !tables.contains(size));
    let most: Vec<_> = sizes.map(|size| (size, size.most())).collect();
    let mut opened = Dataplane::open(&with(&bpffs, &most))?;
    let expected = most.iter().fold(MapSizes::DEFAULT, |all, (size, most)| all.with(*size, *most));
    ensure!(opened.maps.sizes() == expected, "{:?}", opened.maps.sizes());
    let found = entries(&bpffs)?;
    for (map, entries) in [
        ("SERVICES", 200_001),
        ("SERVICE_COUNTERS", 10_001),
        ("DESCRIPTORS", 30_003),
        ("GROUPS", 80_001),
        ("MEMBERS", 800_000),
        ("BACKENDS", 200_001),
        ("LIMITERS", 880_008),
        ("GROUP_COUNTERS", 80_008),
    ] {
        ensure!(found.get(map) == Some(&entries), "{map}: {:?}", found.get(map));
    }
    opened.maps.reset_service_traffic(10_000)?;
    opened.maps.reset_backend_traffic(200_000)?;
    opened.maps.reset_group_connections(80_007)?;
    ensure!(opened.maps.reset_backend_traffic(200_001).is_err(), "there are more than expected");
    let pin = Pins::new(&bpffs, Component::Balancer).map("SHARED_BACKENDS");
    let mut shared: HashMap<_, u64, u64> =
        HashMap::try_from(Map::from_map_data(MapData::from_pin(pin)?)?)?;
    shared.insert(u64::MAX, 2, 0)?;
    Ok(())
}
