//! Documents match the code: their configurations parse, and they list every field.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{collections::BTreeSet, fs, path::Path};

use lb_config::document::Document;

fn document(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    fs::read_to_string(root.join(name)).unwrap()
}

/// The fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Keys of a TOML value, all levels.
fn keys(value: &toml::Value, into: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                into.insert(key.clone());
                keys(value, into);
            }
        }
        toml::Value::Array(values) => values.iter().for_each(|value| keys(value, into)),
        _ => {}
    }
}

#[test]
fn every_configuration_in_the_documents_parses() {
    for name in ["README.md", "docs/configuration.md", "docs/health.md"] {
        // Other blocks are settings, which a test of the daemon checks.
        let mut blocks = blocks(&document(name), "toml");
        blocks.retain(|block| block.contains("[["));
        assert!(!blocks.is_empty(), "{name}: no configuration");
        for block in blocks {
            assert!(Document::parse(&block).is_ok(), "{name}: {:?}", Document::parse(&block));
        }
    }
}

/// `FULL` has every field once; that it is complete is held by its type.
#[test]
fn every_field_has_its_line() {
    let text = document("docs/configuration.md");
    let example = blocks(&text, "toml").remove(0);
    let mut shown = BTreeSet::new();
    keys(&toml::from_str(&example).unwrap(), &mut shown);
    let known = fields_of_the_file_form();
    assert_eq!(shown, known, "the example shows each field");
    for field in known {
        let is_listed =
            text.lines().any(|line| line.starts_with('|') && line.contains(&format!("`{field}`")))
                || text.lines().any(|line| line.starts_with(&format!("## `[[{field}]]`")));
        assert!(is_listed, "field {field} is in no table");
    }
}

/// Names of all fields, as the parser itself lists them when it meets an unknown one.
fn fields_of_the_file_form() -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    for probe in [
        "?",
        "[[region]]\n?",
        "[[health_check]]\n?",
        "[[health_check]]\nhttp = { ? }",
        "[[health_check]]\ngrpc = { ? }",
        "[[health_check]]\nudp = { ? }",
        "[[health_check]]\nagent = { ? }",
        "[[health_check]]\ntls = { ? }",
        "[[pool]]\n?",
        "[[pool]]\nname = \"p\"\n[[pool.backend]]\n?",
        "[[pool]]\nname = \"p\"\n[[pool.group]]\n?",
        "[[service]]\n?",
        "[[vip]]\n?",
    ] {
        let error = Document::parse(&probe.replace('?', "unknown = 1")).unwrap_err();
        let line = error.lines().find(|line| line.contains("unknown field")).unwrap();
        let (_, list) = line.split_once("expected ").unwrap();
        fields.extend(list.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    fields
}
