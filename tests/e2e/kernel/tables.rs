//! A daemon that restarts over many tables is ready soon, and a packet finds them by look-ups that the kernel inlines.
//! Before Linux 6.8 each look-up in an array of maps from outside waits for a grace period: one by one, those of a
//! large fleet would take minutes.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use aya::maps::{Array, ArrayOfMaps, Map, MapData};
use lb_common::abi::slot::{SlotWord, TABLE_HEAD, TableRef, TableShape};
use lb_maps::{
    Component, DEFAULT_BPFFS, Dataplane, NewTable, Options, PinnedMaps, Pins, SizeSettings,
    TableName, XdpMode, detach,
};
use libtest_mimic::{Failed, Trial};

const TABLES: u32 = 512;
/// Chunks with them.
const CHUNKS: u32 = 16;
/// Look-ups that are timed, for comparison.
const LOOKS: u32 = 16;
const SHAPE: TableShape = TableShape { slots: 31, members: 3 };
/// Least time of a grace period. Linux 6.8 and later wait for none.
const NO_WAIT: Duration = Duration::from_millis(1);

pub(crate) fn trial() -> Trial {
    Trial::test("tables: many are found without a wait for each", || {
        run().map_err(|error| Failed::from(format!("{error:#}")))
    })
}

/// The `n`th table: in one chunk after the other, each with 32 of them.
fn table(n: u32) -> NewTable {
    let at = ((n % CHUNKS) << 19) + 1 + TABLE_HEAD + (n / CHUNKS) * SHAPE.words();
    NewTable { at: TableRef(at), name: TableName([n.into(), !u64::from(n)]), shape: SHAPE }
}

fn list(table: u32, slot: u32) -> SlotWord {
    SlotWord::new([(table + slot) as u16 % 3, 1, 2, 0])
}

fn run() -> Result<()> {
    let options = Options {
        bpffs: DEFAULT_BPFFS.into(),
        interfaces: Vec::new(),
        hook: XdpMode::Generic.into(),
        sizes: SizeSettings::default(),
        objects: lb_programs::OBJECTS,
    };
    let mut maps = Dataplane::open(&options)?.maps;
    maps.add_chunks(&(1..CHUNKS).collect::<Vec<_>>())?;
    for n in 0..TABLES {
        maps.write_table(&table(n), |set| {
            (0..SHAPE.slots).for_each(|slot| set(slot, list(n, slot)))
        })?;
    }
    drop(maps);

    let maps = Dataplane::open(&options)?.maps;
    let begun = Instant::now();
    for n in 0..TABLES {
        let found = maps.table(table(n).at, SHAPE)?;
        ensure!(found.name() == Some(table(n).name), "table {n} is {:?}", found.name());
    }
    let took = begun.elapsed();
    let one = look(&options)?;
    // As the command line reads them.
    let read = PinnedMaps::open(&options.bpffs)?;
    for n in 0..TABLES {
        let found = read.table(table(n).at, SHAPE)?;
        let owners = (0..SHAPE.slots).map(|slot| found.owner(slot));
        let expected = (0..SHAPE.slots).map(|slot| Some(list(n, slot).rank(0)));
        ensure!(owners.eq(expected), "table {n} has other owners");
    }
    detach(&options.bpffs, Component::Balancer)?;
    let one_by_one = one * TABLES;
    ensure!(one < NO_WAIT || took < one_by_one / 4, "{took:?}, where one look-up takes {one:?}");
    Ok(())
}

/// How long a look-up takes on the average.
fn look(options: &Options) -> Result<Duration> {
    let pin = Pins::new(&options.bpffs, Component::Balancer).map("TABLES");
    let map = Map::ArrayOfMaps(MapData::from_pin(&pin).with_context(|| pin.display().to_string())?);
    let chunks: ArrayOfMaps<MapData, Array<MapData, u64>> = map.try_into()?;
    let begun = Instant::now();
    for index in 0..LOOKS {
        chunks.get(&index, 0)?;
    }
    Ok(begun.elapsed() / LOOKS)
}
