//! What is remembered of connections, and what happened to it.

use std::path::Path;

use lb_common::abi::event::Event;
use lb_daemon::dataplane::{FlowTable, FlowTables, MapsError, PinnedMaps};
use serde::Serialize;

use crate::{names::Names, output::Grid};

/// The tables of connections, the gates, and the events.
#[derive(Serialize)]
pub(super) struct Remembered {
    tables: Vec<Table>,
    /// Pools some of whose connections may be away from home.
    open_gates: Vec<String>,
    events: Vec<EventRow>,
}

#[derive(Serialize)]
struct Table {
    table: &'static str,
    ip: &'static str,
    /// Entries that are there.
    held: u64,
    /// Entries there is room for.
    room: u32,
}

#[derive(Serialize)]
struct EventRow {
    event: &'static str,
    count: u64,
    meaning: String,
}

impl Remembered {
    pub(super) fn read(bpffs: &Path, maps: &PinnedMaps, names: &Names) -> Result<Self, MapsError> {
        let tables = FlowTables::open(bpffs)?;
        let mut open_gates: Vec<_> =
            maps.open_pools().map(|(index, _)| names.pool(index)).collect();
        open_gates.sort();
        Ok(Self {
            tables: vec![
                table("exceptions", "ipv4", &tables.exceptions_v4)?,
                table("exceptions", "ipv6", &tables.exceptions_v6)?,
                table("udp_flows", "ipv4", &tables.flows_v4)?,
                table("udp_flows", "ipv6", &tables.flows_v6)?,
            ],
            open_gates,
            events: maps.events()?.into_iter().map(event).collect(),
        })
    }

    /// What there is; tables that are empty and events that never happened are only in the other form.
    pub(super) fn table(&self) -> String {
        let mut text = String::new();
        let mut tables = Grid::new(["REMEMBERED", "IP", "HELD", "ROOM"]).right([2, 3]);
        let filled = || self.tables.iter().filter(|table| table.held > 0);
        for t in filled() {
            tables.row([t.table.into(), t.ip.into(), t.held.to_string(), t.room.to_string()]);
        }
        if filled().next().is_some() {
            text += "\n";
            text += &tables.lines();
        }
        let mut events = Grid::new(["EVENT", "COUNT"]).right([1]);
        let happened = || self.events.iter().filter(|event| event.count > 0);
        for e in happened() {
            events.row([e.event.into(), e.count.to_string()]);
        }
        if happened().next().is_some() {
            text += "\n";
            text += &events.lines();
        }
        if !self.open_gates.is_empty() {
            text += &format!("\ngate open: {}\n", self.open_gates.join(", "));
        }
        text
    }
}

fn table<const N: usize>(
    name: &'static str,
    ip: &'static str,
    table: &FlowTable<N>,
) -> Result<Table, MapsError> {
    Ok(Table { table: name, ip, held: table.held()?, room: table.room() })
}

fn event((event, count): (Event, u64)) -> EventRow {
    let meaning = event.meaning().split_whitespace().collect::<Vec<_>>().join(" ");
    EventRow { event: event.name(), count, meaning }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn table(held: u64) -> Table {
        Table { table: "exceptions", ip: "ipv4", held, room: 524_288 }
    }

    /// A balancer that remembers nothing.
    pub(in super::super) fn nothing() -> Remembered {
        Remembered {
            tables: vec![table(0)],
            open_gates: Vec::new(),
            events: vec![event((Event::ExceptionHit, 0))],
        }
    }

    #[test]
    fn who_has_all_connections_at_home_sees_no_such_section() {
        assert_eq!(nothing().table(), "");
    }

    #[test]
    fn what_is_remembered_and_what_happened() {
        let events = [(Event::ExceptionInserted, 12), (Event::ExceptionHit, 3456)].map(event);
        let remembered = Remembered {
            tables: vec![table(12), table(0)],
            open_gates: vec!["api".into(), "web".into()],
            events: events.into(),
        };
        assert_eq!(
            remembered.table(),
            "\n\
REMEMBERED  IP    HELD    ROOM
exceptions  ipv4    12  524288

EVENT               COUNT
exception_inserted     12
exception_hit        3456

gate open: api, web
"
        );
        let json = serde_json::to_value(&remembered).unwrap();
        assert_eq!(json["tables"][0]["held"], 12);
        assert_eq!(
            json["events"][0]["meaning"],
            "An open connection away from home was given an exception."
        );
    }

    /// Event names and meanings stand in the page for operators, word for word.
    #[test]
    fn the_documents_explain_each_event() {
        let page = include_str!("../../../../docs/operations.md");
        for row in Event::ALL.iter().map(|each| event((*each, 0))) {
            let line = format!("| `{}` | {} |\n", row.event, row.meaning);
            assert!(page.contains(&line), "docs/operations.md lacks\n{line}");
        }
    }
}
