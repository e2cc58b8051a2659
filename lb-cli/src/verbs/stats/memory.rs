//! What is remembered of connections, and what happened to it.

use lb_daemon::stats::Remembered;

use crate::output::Grid;

/// What there is; tables that are empty and events that never happened are only in the other form.
pub(super) fn table(it: &Remembered) -> String {
    let mut text = String::new();
    let mut tables = Grid::new(["REMEMBERED", "IP", "HELD", "ROOM"]).right([2, 3]);
    let filled = || it.tables.iter().filter(|table| table.held > 0);
    for t in filled() {
        tables.row([t.table.to_string(), t.ip.to_string(), t.held.to_string(), t.room.to_string()]);
    }
    if filled().next().is_some() {
        text += "\n";
        text += &tables.lines();
    }
    let mut events = Grid::new(["EVENT", "COUNT"]).right([1]);
    let happened = || it.events.iter().filter(|event| event.count > 0);
    for e in happened() {
        events.row([e.event.to_string(), e.count.to_string()]);
    }
    if happened().next().is_some() {
        text += "\n";
        text += &events.lines();
    }
    if !it.open_gates.is_empty() {
        text += &format!("\ngate open: {}\n", it.open_gates.join(", "));
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use lb_common::abi::event::Event;
    use lb_daemon::stats::{EventStats, Table};

    use super::*;

    fn table(held: u64) -> Table {
        Table { table: "exceptions".into(), ip: "ipv4".into(), held, room: 524_288 }
    }

    /// A balancer that remembers nothing.
    pub(in super::super) fn nothing() -> Remembered {
        Remembered {
            tables: vec![table(0)],
            budgets: Vec::new(),
            open_gates: Vec::new(),
            events: vec![(Event::ExceptionHit, 0).into()],
        }
    }

    #[test]
    fn who_has_all_connections_at_home_sees_no_such_section() {
        assert_eq!(super::table(&nothing()), "");
    }

    #[test]
    fn what_is_remembered_and_what_happened() {
        let events = [(Event::ExceptionInserted, 12), (Event::ExceptionHit, 3456)];
        let remembered = Remembered {
            tables: vec![table(12), table(0)],
            budgets: Vec::new(),
            open_gates: vec!["api".into(), "web".into()],
            events: events.map(Into::into).into(),
        };
        assert_eq!(
            super::table(&remembered),
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
        for row in Event::ALL.iter().map(|each| EventStats::from((*each, 0))) {
            let line = format!("| `{}` | {} |\n", row.event, row.meaning);
            assert!(page.contains(&line), "docs/operations.md lacks\n{line}");
        }
    }
}
