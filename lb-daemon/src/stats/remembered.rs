use std::borrow::Cow;

use lb_common::abi::{
    clock::Coarse,
    event::Event,
    meter::{ADOPTIONS_V4, ADOPTIONS_V6, EXCEPTIONS_V4, EXCEPTIONS_V6},
};
use serde::Serialize;

use super::sentence;
use crate::{
    capacity,
    dataplane::{FlowTable, FlowTables, MapsError, PinnedMaps, clock},
    names::Names,
};

/// What is remembered of connections, and what happened to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Remembered {
    /// The tables.
    pub tables: Vec<Table>,
    /// How fast exceptions may be added.
    pub budgets: Vec<Budget>,
    /// Pools some of whose connections may be away from home, by name.
    pub open_gates: Vec<String>,
    /// What happened, by number.
    pub events: Vec<EventStats>,
}

/// A table of connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Table {
    /// `exceptions`, `udp_flows` or `records`.
    pub table: Cow<'static, str>,
    /// `ipv4`, `ipv6`, or `both`.
    pub ip: Cow<'static, str>,
    /// Entries that are there.
    pub held: u64,
    /// Entries there is room for.
    pub room: u64,
}

/// How fast a table of exceptions may be filled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Budget {
    /// `exceptions`: by connections that are placed away from home. `adoptions`: by those that a change
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
    let mut open_gates: Vec<_> = maps.open_pools().map(|(index, _)| names.pool(index)).collect();
    open_gates.sort();
    Ok(Remembered {
        tables: vec![
            table("exceptions", "ipv4", &tables.exceptions_v4)?,
            table("exceptions", "ipv6", &tables.exceptions_v6)?,
            table("udp_flows", "ipv4", &tables.flows_v4)?,
            table("udp_flows", "ipv6", &tables.flows_v6)?,
            records(maps),
        ],
        budgets: vec![
            budget("exceptions", "ipv4", maps, EXCEPTIONS_V4),
            budget("exceptions", "ipv6", maps, EXCEPTIONS_V6),
            budget("adoptions", "ipv4", maps, ADOPTIONS_V4),
            budget("adoptions", "ipv6", maps, ADOPTIONS_V6),
        ],
        open_gates,
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

/// Records have no families: a line is picked by the hash of a flow.
fn records(maps: &PinnedMaps) -> Table {
    let now = Coarse::of(clock::now().unwrap_or(0));
    let (held, room) = maps.records_held(now);
    Table { table: "records".into(), ip: "both".into(), held, room }
}

fn budget(budget: &'static str, ip: &'static str, maps: &PinnedMaps, meter: u32) -> Budget {
    Budget {
        budget: budget.into(),
        ip: ip.into(),
        per_second: capacity::per_second(maps.limit(meter)),
    }
}
