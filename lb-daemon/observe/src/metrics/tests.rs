use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use lb_common::abi::verdict::Verdict;

use super::*;
use lb_base::durations::Durations;

/// How many samples a metric has, by its labels.
fn samples(labels: &[&str]) -> &'static str {
    match labels {
        [] => "1",
        ["component"] | ["component", "version", "region", "program"] => "1",
        ["checksum"] => "1",
        ["component", "verdict", "action"] => "a verdict",
        ["event"] => "an event",
        ["result"] => "3",
        ["loop"] => "5",
        ["certificate"] => "3",
        ["kind"] => "4",
        ["state"] => "6",
        ["listener", "limit"] => "6",
        ["component", "interface"] | ["interface"] => "an interface",
        ["interface", "direction"] => "an interface: 2",
        ["interface", "counter"] => "an interface: 6",
        ["interface", "tracepoint"] => "an interface: 3",
        ["interface", "counter", "stage"] => "a counter of an interface's driver",
        ["service"] | ["service", "endpoint", "protocol", "pool"] => "a service",
        ["backend"] => "a backend address",
        ["pool", "backend", "region"] | ["pool", "backend", "region", "state"] => {
            "a backend of a pool"
        }
        ["pool", "backend", "check"] => "a check that fails",
        ["pool", "region"] => "a region of a pool",
        ["pool"] => "a pool",
        other => panic!("say how many samples there are for {other:?}"),
    }
}

/// docs/metrics.md as it should stand in the repository.
fn document() -> String {
    let mut text = String::from(
        "# Metrics\n\n\
         `spillwayd balancer --http 127.0.0.1:9750` serves them at `/metrics`, in the OpenMetrics text\n\
         format; so does `spillwayd receiver --http …`, those with a label `component`, `conditions`,\n\
         `waiting_settings`, `log_entries_dropped`, `http_requests_refused`, and those of the certificate `http`. What the packet path counts is read when somebody asks, and counts on over restarts of the daemon. A counter\n\
         of an object begins anew with the object.\n\n\
         | metric | kind | labels | one for | meaning |\n|---|---|---|---|---|\n",
    );
    for definition in ALL {
        let labels: Vec<_> = definition.labels.iter().map(|label| format!("`{label}`")).collect();
        text += &format!(
            "| `{}` | {} | {} | {} | {}. |\n",
            definition.sample(),
            definition.kind.name(),
            if labels.is_empty() { "none".into() } else { labels.join(", ") },
            samples(definition.labels),
            definition.help,
        );
    }
    text += "\n## How many there are\n\n";
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for definition in ALL.iter().filter(|definition| definition.kind != Kind::Histogram) {
        *count.entry(samples(definition.labels)).or_default() += 1;
    }
    let per = |what: &str| count.get(what).copied().unwrap_or_default();
    text += &format!(
        "{} series a service, {} a region of a pool, {} a backend address, {} a backend of a pool, {} a\n\
         pool, {} a check of a backend while it fails; {} a verdict, of which there are {}, and one an event. Labels hold names and addresses of\n\
         the configuration, and words of a fixed set: nothing that a client or a backend sends.\n",
        per("a service"),
        per("a region of a pool"),
        per("a backend address"),
        per("a backend of a pool"),
        per("a pool"),
        per("a check that fails"),
        per("a verdict"),
        Verdict::ALL.len(),
    );
    text
}

#[test]
fn the_document_is_made_of_the_definitions() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    if std::env::var_os("SPILLWAY_WRITE_DOCS").is_some() {
        std::fs::write(path, document()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        written,
        document(),
        "docs/metrics.md differs; write it anew with \
         SPILLWAY_WRITE_DOCS=1 cargo test -p lb-observe the_document_is_made_of_the_definitions"
    );
}

/// The conventions of Prometheus for names: <https://prometheus.io/docs/practices/naming/>.
#[test]
fn names_are_those_of_convention() {
    let mut names = BTreeSet::new();
    for definition in ALL {
        let (family, sample) = (definition.family(), definition.sample());
        assert!(names.insert(family.clone()), "{family} is defined twice");
        assert!(family.starts_with("spillway_"), "{family}");
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(family.chars().all(plain) && !family.contains("__"), "{family}");
        assert_eq!(sample.ends_with("_total"), definition.kind == Kind::Counter, "{sample}");
        for wrong in ["_milliseconds", "_ms", "_percent", "_kb", "_count", "_total"] {
            assert!(!family.ends_with(wrong), "{family} ends in {wrong}");
        }
        assert!(!definition.help.ends_with('.'), "{family}: the exposition adds the full stop");
        let kept = ["le", "quantile", "job", "instance"];
        assert!(definition.labels.iter().all(|label| !kept.contains(label)), "{family}");
    }
}

/// Two histograms of one family.
#[derive(Debug)]
struct TwoLoops;

impl Collector for TwoLoops {
    fn encode(&self, encoder: prometheus_client::encoding::DescriptorEncoder<'_>) -> fmt::Result {
        let [one, other] = [1, 2].map(|millis| {
            let durations = Durations::new(Duration::from_millis(millis), 1);
            durations.record(Duration::from_micros(1_500));
            durations
        });
        let definition = catalogue::LOOP_SERVICE;
        Sheet::new(encoder).durations(&definition, [(["member"], &one), (["state"], &other)])
    }
}

#[test]
fn histograms_with_labels_are_written_in_the_text_format() {
    let text = exposition(TwoLoops).unwrap();
    let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let expected = [
        "spillway_loop_service_seconds_sum{loop=\"member\"} 0.0015",
        "spillway_loop_service_seconds_count{loop=\"member\"} 1",
        "spillway_loop_service_seconds_bucket{le=\"0.001\",loop=\"member\"} 0",
        "spillway_loop_service_seconds_bucket{le=\"+Inf\",loop=\"member\"} 1",
        "spillway_loop_service_seconds_sum{loop=\"state\"} 0.0015",
        "spillway_loop_service_seconds_count{loop=\"state\"} 1",
        "spillway_loop_service_seconds_bucket{le=\"0.002\",loop=\"state\"} 1",
        "spillway_loop_service_seconds_bucket{le=\"+Inf\",loop=\"state\"} 1",
    ];
    assert_eq!(samples, expected);
}

/// What the dashboard and the alert rules ask for, as they name it.
const ASKED: [(&str, &str); 2] = [
    ("alerts.yaml", include_str!("../../../../packaging/observability/alerts.yaml")),
    (
        "grafana-dashboard.json",
        include_str!("../../../../packaging/observability/grafana-dashboard.json"),
    ),
];

#[test]
fn dashboard_and_alerts_ask_for_metrics_that_there_are() {
    let mut known: BTreeSet<String> = ALL.iter().map(|definition| definition.sample()).collect();
    for histogram in ALL.iter().filter(|definition| definition.kind == Kind::Histogram) {
        let parts = ["bucket", "sum", "count"].map(|it| format!("{}_{it}", histogram.sample()));
        known.extend(parts);
    }
    for (file, text) in ASKED {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words: Vec<&str> = text.split(|c: char| !is_part(c)).collect();
        let named: Vec<_> = words.iter().filter(|word| word.starts_with("spillway_")).collect();
        assert!(named.len() > 10, "{file} asks for {} only", named.len());
        for name in named {
            assert!(known.contains(*name), "{file}: there is no {name}");
        }
    }
}

#[test]
fn dashboard_and_alerts_ask_for_labels_that_there_are() {
    let verdicts = Verdict::ALL.iter().map(|verdict| verdict.name());
    let events = lb_common::abi::counter::Event::ALL.iter().map(|event| event.name());
    let values: BTreeMap<&str, BTreeSet<&str>> = [
        ("verdict", verdicts.collect()),
        ("event", events.collect()),
        ("action", ["pass", "drop", "transmit", "redirect"].into()),
        ("result", ["passed", "failed", "not_made"].into()),
        (
            "state",
            ["open", "half_open", "half_open_at_home", "seen_once", "closing", "datagrams"].into(),
        ),
        ("loop", ["member", "state", "publisher", "status"].into()),
        ("component", ["balancer", "receiver"].into()),
        ("stage", lb_inspect::stats::DropStage::ALL.iter().map(|stage| stage.name()).collect()),
        ("counter", lb_maps::LinkStatistics::default().errors().map(|(name, _)| name).into()),
    ]
    .into();
    let mut seen = BTreeSet::new();
    for (file, text) in ASKED {
        let text = text.replace("\\\"", "\"");
        for (label, there) in &values {
            for sign in ["=\"", "!=\""] {
                for rest in text.split(&format!("{label}{sign}")).skip(1) {
                    let value = rest.split('"').next().unwrap_or_default();
                    assert!(there.contains(value), "{file}: {label} is never {value}");
                    seen.insert(*label);
                }
            }
        }
    }
    assert!(seen.is_superset(&["verdict", "event", "action", "result"].into()), "{seen:?}");
}

#[test]
fn the_dashboard_is_json_with_its_panels_side_by_side() {
    let dashboard: serde_json::Value = serde_json::from_str(ASKED[1].1).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut cells = BTreeSet::new();
    for panel in panels {
        let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        for (x, y) in (0..at("w")).flat_map(|x| (0..at("h")).map(move |y| (x, y))) {
            let cell = (at("x") + x, at("y") + y);
            assert!(cell.0 < 24 && cells.insert(cell), "{} covers another", panel["title"]);
        }
        let plain = panel["type"] == "row" || panel["targets"][0]["expr"].is_string();
        assert!(plain, "{} asks for nothing", panel["title"]);
    }
    assert!(panels.len() > 15, "{}", panels.len());
}
