//! The screen on a terminal of 80 columns and 24 lines, compared with snapshots.

use std::{
    fs,
    ops::ControlFlow,
    path::Path,
    time::{Duration, Instant},
};

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use ratatui::{Terminal, backend::TestBackend, style::Color};
use spillway_proto::v1;

use crate::commands::backend_status::messages;

use super::{
    draw::{Palette, draw},
    sample::{Reading, Snapshot},
    screen::{Screen, Tab, handle_event},
};

const PLAIN: Palette = Palette { colours: false };

fn backend(address: &str, region: &str, state: &str, reason: &str) -> v1::BackendStatus {
    v1::BackendStatus {
        pool: "web".into(),
        address: address.into(),
        region: region.into(),
        state: messages::state(state),
        reason: messages::reason(reason),
        next_hop_resolved: true,
        ..Default::default()
    }
}

fn status() -> v1::StatusResponse {
    let service = |name: &str, endpoint: &str, protocol: &str| v1::ServiceStatus {
        name: name.into(),
        endpoint: endpoint.into(),
        protocol: protocol.into(),
        pool: "web".into(),
        backends_up: 2,
        backends: 3,
        encapsulation: v1::Encapsulation::IpInIp.into(),
        gue_port: 0,
        slots: 1_009,
    };
    v1::StatusResponse {
        version: "0.1.0".into(),
        region: "eu".into(),
        generation: 4,
        uptime: Some(prost_types::Duration { seconds: 200, nanos: 0 }),
        services: vec![
            service("shop", "203.0.113.1:80", "tcp"),
            service("names", "[2001:db8:f::1]:53", "udp"),
        ],
        backends: vec![
            backend("10.1.0.11", "eu", "up", "all checks pass"),
            backend("10.1.0.12", "eu", "unhealthy", "check page: status 503"),
            backend("2001:db8:0:2::11", "us", "up", "all checks pass"),
        ],
        ..Default::default()
    }
}

/// What was counted after so many seconds of the same traffic.
fn stats(seconds: u64) -> v1::StatsResponse {
    let traffic = |packets: u64, bytes: u64, connections: u64| {
        let [packets, bytes, connections] = [packets, bytes, connections].map(|n| n * seconds);
        Some(v1::Traffic { packets, bytes, connections })
    };
    let verdict = |verdict: &str, action: &str, packets: u64| v1::VerdictStats {
        verdict: verdict.into(),
        action: action.into(),
        packets,
        bytes: packets * 60,
    };
    let group = |region: &str, offered, admitted, overflow_in, overflow_out| v1::GroupStats {
        pool: "web".into(),
        region: region.into(),
        counters: Some(v1::GroupCounters {
            offered: offered * seconds,
            admitted: admitted * seconds,
            overflow_in: overflow_in * seconds,
            overflow_out: overflow_out * seconds,
            refused: 0,
            over_capacity: 0,
        }),
    };
    v1::StatsResponse {
        verdicts: vec![
            verdict("not_ours", "pass", 77 * seconds),
            verdict("transmitted", "transmit", 12_000 * seconds),
            verdict("fragment", "drop", 0),
            verdict("no_backend", "drop", 9),
            verdict("too_large", "drop", 30 * seconds),
        ],
        services: vec![
            v1::ServiceStats {
                service: "shop".into(),
                endpoint: "203.0.113.1:80".into(),
                protocol: "tcp".into(),
                pool: "web".into(),
                traffic: traffic(11_000, 1_500_000, 130),
            },
            v1::ServiceStats {
                service: "names".into(),
                endpoint: "[2001:db8:f::1]:53".into(),
                protocol: "udp".into(),
                pool: "web".into(),
                traffic: traffic(1_000, 80_000, 0),
            },
        ],
        backends: [("10.1.0.11", 9_000, 100), ("10.1.0.12", 0, 0), ("2001:db8:0:2::11", 3_000, 30)]
            .map(|(address, packets, connections)| v1::BackendStats {
                backend: address.into(),
                pools: vec!["web".into()],
                traffic: traffic(packets, packets * 100, connections),
            })
            .into(),
        groups: vec![group("eu", 130, 100, 0, 30), group("us", 30, 30, 30, 0)],
        ..Default::default()
    }
}

fn regions() -> v1::RegionsResponse {
    let region = |region: &str, limit| v1::GroupStatus {
        pool: "web".into(),
        region: region.into(),
        limit_per_second: limit,
        ..Default::default()
    };
    v1::RegionsResponse {
        regions: vec![region("eu", Some(100.0)), region("us", Some(200.0))],
        ..Default::default()
    }
}

fn generations() -> Vec<v1::Generation> {
    let generation = |number, who: &str, why: &str| v1::Generation {
        number,
        applied_at: Some(prost_types::Timestamp {
            seconds: 1_000_000 + 60 * number as i64,
            nanos: 0,
        }),
        who: who.into(),
        why: why.into(),
        changes: Some(number),
        current: number == 4,
        ..v1::Generation::default()
    };
    let damaged = v1::Generation {
        number: 2,
        unusable: "piece ab is damaged".into(),
        ..v1::Generation::default()
    };
    vec![
        generation(4, "uid 0", "rollback to generation 1: web is slow"),
        generation(3, "certificate ci.example", "ticket 7"),
        damaged,
    ]
}

fn reading(start: Instant, seconds: u64) -> Box<Reading> {
    Box::new(Reading {
        at: start + Duration::from_secs(seconds),
        status: status(),
        regions: regions(),
        stats: stats(seconds),
        generations: generations(),
    })
}

/// Two readings, two seconds apart.
fn now() -> Snapshot {
    let start = Instant::now();
    let mut now = Snapshot::from_first(*reading(start, 10));
    now.update(Ok(reading(start, 12)));
    now
}

fn terminal(screen: &mut Screen, now: &Snapshot, palette: Palette) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| draw(frame, screen, now, palette)).unwrap();
    terminal
}

fn text(screen: &mut Screen, now: &Snapshot) -> String {
    let terminal = terminal(screen, now, PLAIN);
    let buffer = terminal.backend().buffer();
    let lines = buffer.content.chunks(80).map(|cells| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned() + "\n"
    });
    lines.collect()
}

/// Compares a screen with the snapshot of that name; `SPILLWAY_SNAPSHOTS=write` rewrites it.
fn assert_snapshot(name: &str, text: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/commands/top/snapshots");
    let path = folder.join(format!("{name}.txt"));
    if std::env::var_os("SPILLWAY_SNAPSHOTS").is_some_and(|value| value == "write") {
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap();
    assert!(text == expected, "{name} differs; it is now\n{text}\nand was\n{expected}");
}

fn key(screen: &mut Screen, code: KeyCode) -> ControlFlow<()> {
    handle_event(screen, &Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
}

fn type_keys(screen: &mut Screen, keys: &str) {
    for letter in keys.chars() {
        assert!(key(screen, KeyCode::Char(letter)).is_continue());
    }
}

/// Now, with overrides and a condition.
fn troubled() -> Snapshot {
    let mut now = now();
    let drain = |name: &str, why: &str| v1::Override {
        name: name.into(),
        kind: v1::OverrideKind::Drain.into(),
        who: "uid 0".into(),
        reason: why.into(),
        until: Some(prost_types::Timestamp { seconds: 1_007_200, nanos: 0 }),
        ..v1::Override::default()
    };
    now.reading.status.overrides =
        vec![drain("backends/10.1.0.12/drain", "new kernel"), drain("regions/us/drain", "")];
    now.reading.status.conditions = vec![v1::Condition {
        subject: "store".into(),
        text: "/var/lib/spillway/store: No space left on device".into(),
        since: Some(prost_types::Timestamp { seconds: 1_000_000, nanos: 0 }),
        ..v1::Condition::default()
    }];
    now
}

#[test]
fn each_view_matches_its_snapshot() {
    let now = troubled();
    for tab in Tab::ALL {
        let mut screen = Screen { tab, ..Screen::default() };
        assert_snapshot(tab.name(), &text(&mut screen, &now));
    }
}

#[test]
fn help_is_a_page() {
    let mut screen = Screen::default();
    type_keys(&mut screen, "?");
    assert_snapshot("help", &text(&mut screen, &now()));
    assert!(key(&mut screen, KeyCode::Esc).is_continue());
    assert!(!screen.help);
}

#[test]
fn one_reading_has_no_rates() {
    let now = Snapshot::from_first(*reading(Instant::now(), 10));
    let text = text(&mut Screen { tab: Tab::Services, ..Screen::default() }, &now);
    assert!(text.contains("no rates yet"), "{text}");
    let shop = text.lines().find(|line| line.contains("shop")).unwrap();
    let words: Vec<_> = shop.split_whitespace().collect();
    assert_eq!(words[3..6], ["-", "-", "-"], "{text}");
}

/// Two seconds at the rates in `stats`.
#[test]
fn rates_are_differences_by_time() {
    let now = now();
    assert_eq!(now.seconds, Some(2.0));
    let shop = now.services[&("203.0.113.1:80".to_owned(), "tcp".to_owned())];
    assert_eq!((shop.packets, shop.bytes, shop.connections), (11_000.0, 1_500_000.0, 130.0));
    assert_eq!((now.verdicts["too_large"], now.verdicts["no_backend"]), (30.0, 0.0));
    let eu = now.regions[&("web".to_owned(), "eu".to_owned())];
    assert_eq!((eu.offered, eu.admitted, eu.overflow_out), (130.0, 100.0, 30.0));
}

#[test]
fn new_items_and_reset_counters_have_no_rate() {
    let start = Instant::now();
    let mut now = Snapshot::from_first(*reading(start, 10));
    let mut next = reading(start, 12);
    next.stats.services[0].traffic = Some(v1::Traffic { packets: 5, bytes: 5, connections: 5 });
    next.stats.backends[0].backend = "10.1.0.99".into();
    now.update(Ok(next));
    assert!(!now.services.contains_key(&("203.0.113.1:80".to_owned(), "tcp".to_owned())));
    assert!(!now.backends.contains_key("10.1.0.99"));
    assert_eq!(now.services.len(), 1);
}

#[test]
fn without_the_daemon_the_last_picture_stays_and_is_marked_stale() {
    let mut now = now();
    let why = "spillwayd at /run/spillway/spillwayd.sock: nothing listens there";
    now.update(Err(why.into()));
    let text = text(&mut Screen::default(), &now);
    assert!(text.lines().any(|line| line == format!("STALE: {why}")), "{text}");
    assert!(text.contains("100%  |###"), "the bars stay: {text}");
}

#[test]
fn tabs_wrap_around_in_both_directions() {
    let mut screen = Screen::default();
    let mut others = Tab::ALL[1..].to_vec();
    others.push(Tab::Regions);
    for tab in others {
        assert!(key(&mut screen, KeyCode::Tab).is_continue());
        assert_eq!(screen.tab, tab);
    }
    assert!(key(&mut screen, KeyCode::Left).is_continue());
    assert_eq!(screen.tab, Tab::Conditions);
}

/// First words of the rows.
fn order(screen: &mut Screen, now: &Snapshot) -> Vec<String> {
    let text = text(screen, now);
    let rows = text.lines().skip(5).take(screen.rows);
    rows.map(|row| row.split_whitespace().nth(1).unwrap().to_owned()).collect()
}

#[test]
fn sorting_goes_from_the_largest_number_and_back() {
    let now = now();
    let mut screen = Screen { tab: Tab::Backends, ..Screen::default() };
    let by_share = ["10.1.0.11", "2001:db8:0:2::11", "10.1.0.12"];
    let unsorted = ["10.1.0.11", "10.1.0.12", "2001:db8:0:2::11"];
    assert_eq!(order(&mut screen, &now), unsorted);
    type_keys(&mut screen, "sssss");
    assert_eq!(order(&mut screen, &now), by_share);
    type_keys(&mut screen, "r");
    assert_eq!(order(&mut screen, &now), ["10.1.0.12", "2001:db8:0:2::11", "10.1.0.11"]);
    // There are eight columns; after the last, rows are unsorted.
    type_keys(&mut screen, "ssss");
    assert_eq!(order(&mut screen, &now), unsorted);
}

#[test]
fn a_filter_is_typed_kept_and_cleared() {
    let now = now();
    let mut screen = Screen { tab: Tab::Backends, ..Screen::default() };
    order(&mut screen, &now);
    // Keys with a function are typed as letters here.
    type_keys(&mut screen, "/UNHEALTHYq");
    assert!(text(&mut screen, &now).contains("no row contains this text"));
    assert!(key(&mut screen, KeyCode::Backspace).is_continue());
    assert_eq!(order(&mut screen, &now), ["10.1.0.12"]);
    assert!(key(&mut screen, KeyCode::Enter).is_continue());
    assert!(text(&mut screen, &now).contains("filter: UNHEALTHY\n"));
    assert!(key(&mut screen, KeyCode::Esc).is_continue());
    assert_eq!(order(&mut screen, &now).len(), 3);
    assert!(key(&mut screen, KeyCode::Char('q')).is_break());
}

#[test]
fn a_backend_shows_the_same_reason_as_status() {
    let mut now = now();
    now.reading.status.backends[0].share = Some(0.4);
    let text = text(&mut Screen { tab: Tab::Backends, ..Screen::default() }, &now);
    assert!(text.contains("10.1.0.11: all checks pass; takes 40% of its share\n"), "{text}");
}

#[test]
fn the_selected_row_stays_visible_among_a_thousand() {
    let mut now = now();
    let one = now.reading.status.backends[0].clone();
    now.reading.status.backends =
        (0..1000).map(|n| v1::BackendStatus { address: format!("b{n}"), ..one.clone() }).collect();
    let mut screen = Screen { tab: Tab::Backends, ..Screen::default() };
    assert!(text(&mut screen, &now).contains(" b0 "));
    assert!(key(&mut screen, KeyCode::End).is_continue());
    let end = text(&mut screen, &now);
    assert!(end.contains(" b999 ") && !end.contains(" b0 "), "{end}");
    assert!(key(&mut screen, KeyCode::PageUp).is_continue());
    assert_eq!(screen.tab_state().row, 999 - screen.visible_rows);
    assert!(key(&mut screen, KeyCode::Home).is_continue());
    assert_eq!(screen.tab_state().row, 0);
    assert!(text(&mut screen, &now).contains(" b0 "));
}

/// Without colour nothing is coloured; with colour the text is the same.
#[test]
fn colour_adds_no_information() {
    let now = troubled();
    for tab in Tab::ALL {
        let mut screen = Screen { tab, ..Screen::default() };
        let plain = terminal(&mut screen, &now, PLAIN);
        let coloured = terminal(&mut screen, &now, Palette { colours: true });
        let of = |terminal: &Terminal<TestBackend>| {
            let cells = terminal.backend().buffer().content.clone();
            let text: String = cells.iter().map(|cell| cell.symbol()).collect();
            (text, cells.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset))
        };
        assert_eq!(of(&plain).0, of(&coloured).0);
        assert!(!of(&plain).1, "{tab:?}");
        assert!(of(&coloured).1, "{tab:?}");
    }
}

#[test]
fn a_small_terminal_does_not_panic() {
    for (width, height) in [(1, 1), (10, 3), (20, 5), (40, 10), (300, 100)] {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        for tab in Tab::ALL {
            let mut screen = Screen { tab, ..Screen::default() };
            terminal.draw(|frame| draw(frame, &mut screen, &now(), PLAIN)).unwrap();
        }
    }
}

#[test]
fn what_is_wrong_or_asked_for_has_a_line() {
    let line = |change: fn(&mut v1::StatusResponse)| {
        let mut now = now();
        change(&mut now.reading.status);
        let text = text(&mut Screen::default(), &now);
        text.lines().nth(2).unwrap().to_owned()
    };
    assert_eq!(line(|_| {}), "");
    assert_eq!(line(|status| status.overrides.push(v1::Override::default())), "1 override");
    assert_eq!(
        line(|status| {
            status.overrides.extend([v1::Override::default(), v1::Override::default()]);
            status.settling.push(v1::SettlingPool { pool: "web".into(), ..Default::default() });
        }),
        "2 overrides; remapping: web"
    );
    let told = line(|status| {
        status.overrides.push(v1::Override::default());
        for subject in ["store", "log"] {
            let (subject, text) = (subject.into(), "no space left".into());
            status.conditions.push(v1::Condition { subject, text, ..Default::default() });
        }
    });
    assert_eq!(told, "CONDITION: store (and 1 more condition): no space left");
}
