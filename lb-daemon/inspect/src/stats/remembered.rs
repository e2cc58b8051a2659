use std::borrow::Cow;

use lb_common::{
    abi::{clock::Coarse, counter::Event},
    flow_table::{Owner, State},
};
use serde::Serialize;

use super::sentence;
use crate::names::Names;
use lb_maps::{MapsError, PinnedMaps, clock};

/// What is remembered of connections, and what happened to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Remembered {
    /// Cells of the flow table, by what is known of their flows.
    pub flows: Vec<FlowsHeld>,
    /// Cells that the flow table has.
    pub room: u64,
    /// Pools that may have displaced connections, by name.
    pub pools_with_displaced: Vec<String>,
    /// What happened, by number.
    pub events: Vec<EventStats>,
}

/// Cells of the flow table with one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowsHeld {
    /// `open`, `half_open`, `half_open_at_home`, `seen_once`, `closing` or `datagrams`.
    pub state: Cow<'static, str>,
    /// Cells that are in use.
    pub held: u64,
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

pub(super) fn remembered(maps: &PinnedMaps, names: &Names) -> Result<Remembered, MapsError> {
    let mut pools_with_displaced: Vec<_> =
        maps.pools_with_displaced().map(|(index, _)| names.pool(index)).collect();
    pools_with_displaced.sort();
    Ok(Remembered {
        flows: held(maps),
        room: maps.flows().room().into(),
        pools_with_displaced,
        events: maps.events()?.into_iter().map(Into::into).collect(),
    })
}

/// Behind the states.
const DATAGRAMS: &str = "datagrams";

/// Reads the whole table.
fn held(maps: &PinnedMaps) -> Vec<FlowsHeld> {
    let now = Coarse::from_nanoseconds(clock::now().unwrap_or(0));
    let mut counts = [0; State::ALL.len() + 1];
    let table = maps.flows();
    for (_, owner, _) in table.cells(0, table.buckets()) {
        if owner != Owner::BUSY && owner.left(now) > 0 {
            let place = match owner.state() {
                Some(state) if !owner.is_of_datagrams() => state as usize,
                _ => State::ALL.len(),
            };
            counts[place] += 1;
        }
    }
    let names = State::ALL.map(State::name).into_iter().chain([DATAGRAMS]);
    names.zip(counts).map(|(state, held)| FlowsHeld { state: state.into(), held }).collect()
}
