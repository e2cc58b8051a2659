use std::collections::{BTreeMap, BTreeSet};

use lb_common::abi::verdict::Verdict;

use super::*;

/// How many samples a metric has, by its labels.
fn samples(labels: &[&str]) -> &'static str {
    match labels {
        [] => "1",
        ["role"] | ["role", "version", "region", "program"] => "1",
        ["checksum"] => "1",
        ["role", "verdict", "action"] => "a verdict",
        ["event"] => "an event",
        ["result"] => "3",
        ["table", "ip"] => "5",
        ["budget", "ip"] => "4",
        ["role", "interface"] => "an interface",
        ["service"] | ["service", "endpoint", "protocol", "pool"] => "a service",
        ["backend"] => "a backend address",
        ["pool", "backend", "region"] => "a backend of a pool",
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
         format; so does `spillwayd receiver --http …`, those with a label `role` only. What the packet\n\
         path counts is read when somebody asks, and counts on over restarts of the daemon. A counter\n\
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
         pool; {} a verdict, of which there are {}, and one an event. Labels hold names and addresses of\n\
         the configuration, and words of a fixed set: nothing that a client or a backend sends.\n",
        per("a service"),
        per("a region of a pool"),
        per("a backend address"),
        per("a backend of a pool"),
        per("a pool"),
        per("a verdict"),
        Verdict::ALL.len(),
    );
    text
}

#[test]
fn the_document_is_made_of_the_definitions() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/metrics.md");
    if std::env::var_os("SPILLWAY_WRITE_DOCS").is_some() {
        std::fs::write(path, document()).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        written,
        document(),
        "docs/metrics.md differs; write it anew with \
         SPILLWAY_WRITE_DOCS=1 cargo test -p lb-daemon the_document_is_made_of_the_definitions"
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
