//! How many entries maps have: what the settings say when they are made, and afterwards what they have.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use aya::maps::{Array as PinnedArray, HashMap, Map, MapData, MapInfo, PerCpuArray};
use lb_common::abi::{
    arrays::Array,
    limiter::Limiter,
    sizes::{MapSizes, Size},
};
use lb_maps::{
    Arrays, Component, Dataplane, MappingMut, Options, Pins, SizeSettings, XdpMode, detach,
};
use lb_tests::sandbox::Sandbox;

use super::{options, refusal};

fn with(bpffs: &Path, sizes: &[(Size, u32)]) -> Options {
    let sizes = sizes.iter().copied().collect();
    Options { sizes, ..options(bpffs, &[], XdpMode::Auto) }
}

/// Entries of each pinned map, as the kernel has them; of the arrays, which are one element, its bytes.
fn entries(bpffs: &Path) -> Result<BTreeMap<String, u32>> {
    let maps = Pins::new(bpffs, Component::Balancer).maps();
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(&maps)? {
        let path = entry?.path();
        let name = path.file_name().context("a name")?.to_string_lossy().into_owned();
        let info = MapInfo::from_pin(&path)?;
        let size = if name == "ARRAYS" { info.value_size() } else { info.max_entries() };
        found.insert(name, size);
    }
    Ok(found)
}

/// Numbers that no other setting or map has.
const SMALL: [(Size, u32); 8] = [
    (Size::Services, 8),
    (Size::Ports, 70),
    (Size::Pools, 5),
    (Size::Groups, 6),
    (Size::Backends, 20),
    (Size::PoolBackends, 30),
    (Size::LimitedBackends, 4),
    (Size::Flows, 8_192),
];

/// What the maps of these sizes have, two generations and three versions side by side.
const SMALL_MAPS: [(&str, u32); 6] = [
    ("ADDRESSES", 16),
    // Bytes: a head of 64; 65,536 times 32 (next hops); 2 times 65,536 words; 64 words; 65,536 times 16 (zones); 8,192 words (answers); 1,096 words of index (a cache line for its
    // head, and two areas of 512 entries and 32 more); 141, 6, 18 and 21 times 32, 32, 128 and 32 (services, pools,
    // descriptors, backends); 60 words (members); 13 times 32 (groups); 104 words (standbys); 60 words (limiters of
    // members); 24 times 64 (limiters); 21 words (states); 6 words (cells of
    // pools); each a whole number of cache lines.
    ("ARRAYS", 4_281_024),
    ("BACKEND_COUNTERS", 21),
    ("GROUP_COUNTERS", 16),
    ("SERVICE_COUNTERS", 9),
    ("SHARED_BACKENDS", 60),
];

/// The pinned flow table, by lines.
fn flows(bpffs: &Path) -> Result<PinnedArray<MapData, [u64; 8]>> {
    let pin = Pins::new(bpffs, Component::Balancer).map("FLOWS");
    Ok(Map::from_map_data(MapData::from_pin(pin)?)?.try_into()?)
}

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
    let mut table = flows(&bpffs)?;
    ensure!(table.len() == 64 + 8_192 / 4, "{} lines", table.len());
    table.set(7, [1, 2, 3, 4, 5, 6, 7, 8], 0)?;
    let secret = table.get(&0, 0)?;
    ensure!(secret[2..4] != [0; 2], "no secret: {secret:x?}");
    let larger = SMALL.map(|(size, number)| (size, 2 * number));
    let fewer = [(Size::Services, 2), (Size::Flows, 4_096)];
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
        let there = flows(&bpffs)?;
        ensure!(there.get(&7, 0)? == [1, 2, 3, 4, 5, 6, 7, 8] && there.get(&0, 0)? == secret);
    }
    detach(&bpffs, Component::Balancer)?;
    drop(Dataplane::open(&with(&bpffs, &[(Size::Flows, 5_000)]))?);
    let found = entries(&bpffs)?;
    for (map, entries) in [
        ("SERVICE_COUNTERS", 4_097),
        ("BACKEND_COUNTERS", 16_385),
        ("GROUP_COUNTERS", 8_196),
        ("SHARED_BACKENDS", 65_536),
    ] {
        ensure!(found.get(map) == Some(&entries), "{map}: {:?}", found.get(map));
    }
    // A power of two of cells.
    ensure!(flows(&bpffs)?.len() == 64 + 8_192 / 4);
    Ok(())
}

/// A start that was killed pinned some of the maps. The next one makes the others to fit, whatever it was asked for.
pub(super) fn interrupted(sandbox: &Sandbox) -> Result<()> {
    let bpffs = sandbox.bpffs("interrupted")?;
    drop(Dataplane::open(&with(&bpffs, &SMALL))?);
    let small = entries(&bpffs)?;
    let pins = Pins::new(&bpffs, Component::Balancer);
    // The arrays, which say the sizes, are the first that it pins.
    for kept in [vec!["ARRAYS"], vec!["ARRAYS", "ADDRESSES", "GROUP_COUNTERS"]] {
        for (map, _) in SMALL_MAPS {
            if !kept.contains(&map) {
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
    let tables = [Size::Flows];
    let sizes = Size::ALL.into_iter().filter(|size| !tables.contains(size));
    let most: Vec<_> = sizes.map(|size| (size, size.most())).collect();
    let mut opened = Dataplane::open(&with(&bpffs, &most))?;
    let expected = most.iter().fold(MapSizes::DEFAULT, |all, (size, most)| all.with(*size, *most));
    ensure!(opened.maps.sizes() == expected, "{:?}", opened.maps.sizes());
    let found = entries(&bpffs)?;
    for (map, entries) in
        [("SERVICE_COUNTERS", 10_001), ("BACKEND_COUNTERS", 200_001), ("GROUP_COUNTERS", 80_004)]
    {
        ensure!(found.get(map) == Some(&entries), "{map}: {:?}", found.get(map));
    }
    // The highest index of each array whose size is a setting, and none above.
    let arrays = Arrays::<MappingMut>::open(&bpffs)?;
    for (array, entries) in [
        (Array::Services, 200_001),
        (Array::Pools, 10_001),
        (Array::Descriptors, 30_003),
        (Array::Groups, 80_001),
        (Array::Members, 800_000),
        (Array::Backends, 200_001),
        (Array::Limiters, 880_004),
        (Array::BackendStates, 200_001),
    ] {
        ensure!(array.entries(&expected) == entries, "{array:?}: {}", array.entries(&expected));
    }
    let limiters = arrays.view::<Limiter>(Array::Limiters);
    limiters.set(880_003, &Limiter { arrival: 5, ..Limiter::default() });
    ensure!(limiters.get(880_003).is_some_and(|it| it.arrival == 5));
    ensure!(limiters.get(880_004).is_none(), "there are more than expected");
    ensure!(arrays.view::<u64>(Array::BackendStates).get(0) == Some(0), "written beyond the end");
    opened.maps.reset_service_traffic(10_000)?;
    opened.member_maps.reset_backend_traffic(200_000)?;
    opened.member_maps.reset_group_connections(80_003)?;
    ensure!(
        opened.member_maps.reset_backend_traffic(200_001).is_err(),
        "there are more than expected"
    );
    let pin = Pins::new(&bpffs, Component::Balancer).map("SHARED_BACKENDS");
    let mut shared: HashMap<_, u64, u64> =
        HashMap::try_from(Map::from_map_data(MapData::from_pin(pin)?)?)?;
    shared.insert(u64::MAX, 2, 0)?;
    Ok(())
}
