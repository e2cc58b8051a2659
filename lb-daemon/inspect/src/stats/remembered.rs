use std::borrow::Cow;

use lb_common::abi::{
    clock::Coarse,
    counter::Event,
    limiter::{ADOPTIONS_V4, ADOPTIONS_V6, DISPLACED_V4, DISPLACED_V6},
};
use serde::Serialize;

use super::sentence;
use crate::names::Names;
use lb_maps::{FlowTable, FlowTables, MapsError, PinnedMaps, clock};
use lb_model::capacity;

/// What is remembered of connections, and what happened to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Remembered {
    pub tables: Vec<Table>,
    /// How fast displaced entries may be added.
    pub budgets: Vec<Budget>,
    /// Pools that may have displaced connections, by name.
    pub pools_with_displaced: Vec<String>,
    /// What happened, by number.
    pub events: Vec<EventStats>,
}

/// A table of connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Table {
    /// `displaced`, `udp_flows` or `handshakes`.
    pub table: Cow<'static, str>,
    /// `ipv4`, `ipv6`, or `both`.
    pub ip: Cow<'static, str>,
    /// Entries that are there.
    pub held: u64,
    /// Entries there is room for.
    pub room: u64,
}

/// How fast a table of displaced entries may be filled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Budget {
    /// `displaced`: by displaced connections. `adoptions`: by those that a change
    /// of home finds open.
    pub budget: Cow<'static, str>,
    /// `ipv4` or `ipv6`.
    pub ip: Cow<'static, str>,
    /// Insertions a second; `None`: as many as come.
    pub per_second: Option<f64>,
}

/// How often something happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventStats {
    /// What.
    pub event: Cow<'static, str>,
    /// How often.
    pub count: u64,
    /// What it means.
    pub meaning: String,
}

impl From<(Event, u64)> for EventStats {
    fn from((event, count): (Event, u64)) -> Self {
        Self { event: event.name().into(), count, meaning: sentence(event.meaning()) }
    }
}

pub(super) fn remembered(
    maps: &PinnedMaps,
    tables: &FlowTables,
    names: &Names,
) -> Result<Remembered, MapsError> {
    let mut pools_with_displaced: Vec<_> =
        maps.pools_with_displaced().map(|(index, _)| names.pool(index)).collect();
    pools_with_displaced.sort();
    Ok(Remembered {
        tables: vec![
            table("displaced", "ipv4", &tables.displaced_v4)?,
            table("displaced", "ipv6", &tables.displaced_v6)?,
            table("udp_flows", "ipv4", &tables.flows_v4)?,
            table("udp_flows", "ipv6", &tables.flows_v6)?,
            handshakes(maps),
        ],
        budgets: vec![
            budget("displaced", "ipv4", maps, DISPLACED_V4),
            budget("displaced", "ipv6", maps, DISPLACED_V6),
            budget("adoptions", "ipv4", maps, ADOPTIONS_V4),
            budget("adoptions", "ipv6", maps, ADOPTIONS_V6),
        ],
        pools_with_displaced,
        events: maps.events()?.into_iter().map(Into::into).collect(),
    })
}

fn table<const N: usize>(
    name: &'static str,
    ip: &'static str,
    table: &FlowTable<N>,
) -> Result<Table, MapsError> {
    Ok(Table { table: name.into(), ip: ip.into(), held: table.held()?, room: table.room().into() })
}

/// Handshake entries have no families: a line is picked by the hash of a flow.
fn handshakes(maps: &PinnedMaps) -> Table {
    let now = Coarse::from_nanoseconds(clock::now().unwrap_or(0));
    let (held, room) = maps.handshake_entries_held(now);
    Table { table: "handshakes".into(), ip: "both".into(), held, room }
}

fn budget(budget: &'static str, ip: &'static str, maps: &PinnedMaps, limiter: u32) -> Budget {
    Budget {
        budget: budget.into(),
        ip: ip.into(),
        per_second: capacity::per_second(maps.limit(limiter)),
    }
}
