//! A daemon that restarts over many tables is ready soon. Before Linux 6.8 each look-up in an array of maps waits for
//! a grace period: one by one, those of a large fleet would take minutes.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use aya::maps::{Array, ArrayOfMaps, Map, MapData};
use lb_common::abi::slot::TableRef;
use lb_maps::{
    Component, DEFAULT_BPFFS, Dataplane, NewTable, Options, Pins, SizeSettings, TableName, XdpMode,
    detach,
};
use libtest_mimic::{Failed, Trial};

const TABLES: u32 = 512;
/// Look-ups that are timed, for comparison.
const LOOKS: u32 = 16;
const SLOTS: usize = 31;
/// Least time of a grace period. Linux 6.8 and later wait for none.
const NO_WAIT: Duration = Duration::from_millis(1);

pub(crate) fn trial() -> Trial {
    Trial::test("tables: many are found without a wait for each", || {
        run().map_err(|error| Failed::from(format!("{error:#}")))
    })
}

fn run() -> Result<()> {
    let bpffs = DEFAULT_BPFFS.into();
    let options = Options {
        bpffs,
        interfaces: Vec::new(),
        hook: XdpMode::Generic.into(),
        sizes: SizeSettings::default(),
        objects: lb_daemon::OBJECTS,
    };
    let mut maps = Dataplane::open(&options)?.maps;
    let name = |index: u32| TableName::from_digest(format!("{index:015x}"));
    let tables: Vec<_> = (1..=TABLES)
        .map(|index| NewTable {
            at: TableRef::sized(index),
            name: name(index),
            words: vec![0; SLOTS],
        })
        .collect();
    maps.publish_tables(&tables)?;

    let begun = Instant::now();
    let mut found = maps.present_tables()?;
    let took = begun.elapsed();
    let one = look(&options)?;
    detach(&options.bpffs, Component::Balancer)?;

    found.sort_by_key(|(table, _)| table.index());
    let there: Vec<_> =
        (1..=TABLES).map(|index| (TableRef::sized(index), Some(name(index)))).collect();
    ensure!(found == there, "{found:?}");
    let one_by_one = one * TABLES;
    ensure!(one < NO_WAIT || took < one_by_one / 4, "{took:?}, where one look-up takes {one:?}");
    Ok(())
}

/// How long a look-up takes on the average.
fn look(options: &Options) -> Result<Duration> {
    let pin = Pins::new(&options.bpffs, Component::Balancer).map("SIZED_TABLES");
    let map = Map::ArrayOfMaps(MapData::from_pin(&pin).with_context(|| pin.display().to_string())?);
    let tables: ArrayOfMaps<MapData, Array<MapData, u64>> = map.try_into()?;
    let begun = Instant::now();
    for index in 1..=LOOKS {
        tables.get(&index, 0)?;
    }
    Ok(begun.elapsed() / LOOKS)
}
