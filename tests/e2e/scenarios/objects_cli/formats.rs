//! What each command prints as JSON, it prints as YAML too.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use lb_tests::daemon::Balancer;
use lb_tests::sandbox::Sandbox;
use serde_json::Value;

use super::{CONFIGURATION, balancer};

/// One a command that prints an answer and ends, with the exit status. What goes on until it is stopped has tests of its
/// own, which read its lines.
const COMMANDS: &[(&str, i32)] = &[
    ("apply --dry-run -f -", 0),
    ("validate -f -", 0),
    ("diff 1 2", 8),
    ("export", 0),
    ("history", 0),
    ("rollback 1 --dry-run", 0),
    ("region list", 0),
    ("region get eu", 0),
    ("pool list", 0),
    ("pool get web", 0),
    ("backend list", 0),
    ("backend get 10.1.0.11 --pool web", 0),
    ("backend history web", 0),
    ("health list", 0),
    ("health get page", 0),
    ("service list", 0),
    ("service get web", 0),
    ("override list", 0),
    ("status", 0),
    ("regions", 0),
    ("stats", 0),
    ("table web", 0),
    ("explain 192.0.2.1:40000 203.0.113.1:80 --protocol tcp", 0),
    ("verdicts", 0),
    ("doctor", 9),
    ("context list", 0),
];

/// Leaves of an answer: the key, and the value as text. How often each is there.
type Leaves = BTreeMap<(String, String), usize>;

pub(super) fn agree(sandbox: &Sandbox) -> Result<()> {
    let (_fabric, balancer) = balancer(sandbox, "formats")?;
    balancer.apply(CONFIGURATION)?;
    balancer.cli(&["region", "create", "asia"])?;
    balancer.cli(&[
        "backend",
        "drain",
        "10.1.0.11",
        "--pool",
        "dns",
        "--reason",
        "a: \"b\" # c",
    ])?;
    for (line, code) in COMMANDS {
        agrees(&balancer, line, *code).with_context(|| format!("spillway {line}"))?;
    }
    Ok(())
}

/// Times and counters go on between two runs: what two answers in JSON have in common, the one in YAML between them has
/// too, and nothing is in it under a key that they do not have.
fn agrees(balancer: &Balancer, line: &str, code: i32) -> Result<()> {
    let print = |format: &str| -> Result<String> {
        let arguments: Vec<_> = ["-o", format].into_iter().chain(line.split(' ')).collect();
        let output = balancer.try_cli(&arguments, Some(CONFIGURATION))?;
        ensure!(output.status.code() == Some(code), "{format}: {output:?}");
        Ok(String::from_utf8(output.stdout)?)
    };
    let json = || -> Result<Leaves> {
        let mut leaves = Leaves::new();
        add("", &serde_json::from_str(&print("json")?)?, &mut leaves);
        Ok(leaves)
    };
    let (first, printed, second) = (json()?, print("yaml")?, json()?);
    ensure!(!first.is_empty(), "an answer with nothing in it");
    let yaml = leaves(&printed)?;
    for (leaf, count) in first.iter().filter(|(leaf, count)| second.get(leaf) == Some(*count)) {
        let found = yaml.get(leaf).copied().unwrap_or_default();
        ensure!(found == *count, "{leaf:?}: {count} times, and {found} times in\n{printed}");
    }
    let keys = |leaves: &Leaves| {
        let mut keys = BTreeMap::<String, usize>::new();
        for ((key, _), count) in leaves {
            *keys.entry(key.clone()).or_default() += count;
        }
        keys
    };
    ensure!(keys(&yaml) == keys(&first) || keys(&yaml) == keys(&second), "other keys:\n{printed}");
    Ok(())
}

fn add(key: &str, value: &Value, leaves: &mut Leaves) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(key, value)| add(key, value, leaves));
        }
        Value::Array(items) if !items.is_empty() => {
            items
                .iter()
                .for_each(|item| add(if item.is_object() { "" } else { key }, item, leaves));
        }
        Value::String(text) => *leaves.entry((key.into(), text.clone())).or_default() += 1,
        other => *leaves.entry((key.into(), other.to_string())).or_default() += 1,
    }
}

/// The leaves of block style YAML, line by line.
fn leaves(yaml: &str) -> Result<Leaves> {
    let mut leaves = Leaves::new();
    let mut list = "";
    let mut lines = yaml.lines().peekable();
    while let Some(line) = lines.next() {
        let mut rest = line.trim_start();
        while let Some(item) = rest.strip_prefix("- ") {
            rest = item.trim_start();
        }
        let key = rest.split_once(':').filter(|(key, value)| {
            !key.is_empty()
                && key.chars().all(|it| it.is_ascii_alphanumeric() || it == '_')
                && (value.is_empty() || value.starts_with(' '))
        });
        let (key, value) = key.map_or((list, rest), |(key, value)| (key, value.trim_start()));
        if value.is_empty() {
            list = key;
            continue;
        }
        let text = match value.strip_prefix('\'').and_then(|it| it.strip_suffix('\'')) {
            Some(text) => text.replace("''", "'"),
            // A long text, folded at blanks.
            None if value == ">-" => {
                let indented = |line: &str| line.len() - line.trim_start().len();
                let mut words = Vec::new();
                while let Some(more) = lines.next_if(|next| indented(next) > indented(line)) {
                    words.push(more.trim());
                }
                words.join(" ")
            }
            None if value.starts_with('"') => {
                serde_json::from_str(value).context(value.to_owned())?
            }
            None => value.to_owned(),
        };
        *leaves.entry((key.into(), text)).or_default() += 1;
    }
    Ok(leaves)
}
