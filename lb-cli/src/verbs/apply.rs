//! `spillway apply`: a configuration file becomes the configuration in force.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use lb_daemon::document::{self, Document};
use serde::Serialize;
use spillway_proto::v1;

use super::change::Change;
use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    exit::Exit,
    failure::Failure,
    output::{Report, count, print},
};

/// Options of `apply`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// The configuration, a TOML file; `-` reads standard input
    #[arg(long, short, value_name = "FILE")]
    file: PathBuf,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
    /// Apply only while this generation is in force
    #[arg(long, value_name = "N")]
    expect_generation: Option<u64>,
}

/// The answer.
#[derive(Serialize)]
struct Applied {
    generation: u64,
    dry_run: bool,
    changes: Vec<Change>,
}

/// Reads the file, asks the daemon and prints what changed.
///
/// # Errors
/// The file cannot be read or is no configuration, or the daemon refuses or does not answer.
pub(crate) fn run(options: Options, arguments: Arguments) -> Result<(), Failure> {
    let source = name_of(&arguments.file);
    let text = read(&arguments.file)?;
    let document = Document::parse(&text).map_err(|error| {
        Failure::new(Exit::Invalid, format!("{source}: {error}"))
            .hint("nothing was sent; docs/configuration.md lists the fields")
    })?;
    let request = v1::ApplyRequest {
        configuration: Some(document.into()),
        dry_run: arguments.dry_run,
        expected_generation: arguments.expect_generation,
    };
    let answer = converse(async { Daemon::open(options.socket).await?.apply(request).await })
        .map_err(|failure| located(failure, &source, &text))?;
    print(&Applied::new(answer, arguments.dry_run), options.output)
}

/// Adds to what the daemon found fault with where it stands in the file.
fn located(failure: Failure, source: &str, text: &str) -> Failure {
    let place = failure.field.as_deref().and_then(|field| document::place(text, field));
    let Some((line, column)) = place else { return failure };
    let message = format!("{source}: line {line}, column {column}: {}", failure.message);
    Failure { message, ..failure }
}

fn name_of(file: &Path) -> String {
    if file == Path::new("-") { "standard input".into() } else { file.display().to_string() }
}

fn read(file: &Path) -> Result<String, Failure> {
    let bytes = if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    let bytes = bytes.map_err(|error| {
        Failure::path(file, &error).hint("give a readable file after -f, or - for standard input")
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(Exit::Invalid, format!("{}: byte {at} is not UTF-8", name_of(file)))
            .hint("a configuration is a TOML text")
    })
}

impl Applied {
    fn new(answer: v1::ApplyResponse, dry_run: bool) -> Self {
        let changes = answer.changes.into_iter().map(Change::from).collect();
        Self { generation: answer.generation, dry_run, changes }
    }
}

impl Report for Applied {
    fn table(&self) -> String {
        let generation = self.generation;
        let changes = count(self.changes.len() as u64, "change");
        let head = match (self.changes.is_empty(), self.dry_run) {
            (true, _) => format!("generation {generation} stays in force: nothing differs\n"),
            (false, true) => {
                format!("dry run: generation {generation} stays in force; it would be {changes}\n")
            }
            (false, false) => format!("generation {generation} is in force: {changes}\n"),
        };
        head + &self.changes.iter().map(Change::lines).collect::<String>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> v1::ApplyResponse {
        use v1::change::Kind;
        let change = |kind: Kind, object: &str, details: &[&str], slots_moved| v1::Change {
            kind: kind.into(),
            object: object.into(),
            details: details.iter().map(ToString::to_string).collect(),
            slots_moved,
        };
        v1::ApplyResponse {
            generation: 5,
            changes: vec![
                change(Kind::Added, "service shop", &[], 0),
                change(Kind::Removed, "region us", &[], 0),
                change(Kind::Changed, "pool web: backend 10.0.0.1", &["weight: 1 -> 2"], 21_845),
            ],
        }
    }

    #[test]
    fn the_table_lists_the_changes_under_the_generation() {
        assert_eq!(
            Applied::new(answer(), false).table(),
            "\
generation 5 is in force: 3 changes
+ service shop
- region us
~ pool web: backend 10.0.0.1 (21845 slots moved)
    weight: 1 -> 2
"
        );
    }

    #[test]
    fn a_dry_run_and_an_equal_configuration_say_that_nothing_was_changed() {
        let dry = Applied::new(answer(), true).table();
        assert!(dry.starts_with("dry run: generation 5 stays in force; it would be 3 changes\n"));
        let same = v1::ApplyResponse { generation: 5, changes: Vec::new() };
        assert_eq!(
            Applied::new(same, false).table(),
            "generation 5 stays in force: nothing differs\n"
        );
    }

    #[test]
    fn the_daemons_refusal_is_told_with_its_place_in_the_file() {
        let failure = |field: Option<&str>| Failure {
            field: field.map(str::to_owned),
            ..Failure::new(Exit::Invalid, "services[0] \"web\": port: 70000 is not a port")
        };
        let text = "[[service]]\nname = \"web\"\nport = 70000\n";
        assert_eq!(
            located(failure(Some("services[0].port")), "web.toml", text).message,
            "web.toml: line 3, column 1: services[0] \"web\": port: 70000 is not a port"
        );
        assert_eq!(located(failure(None), "web.toml", text), failure(None));
    }

    #[test]
    fn json_has_the_same_changes() {
        assert_eq!(
            serde_json::to_value(Applied::new(answer(), true)).unwrap(),
            serde_json::json!({"generation": 5, "dry_run": true, "changes": [
                {"kind": "added", "object": "service shop", "details": [], "slots_moved": 0},
                {"kind": "removed", "object": "region us", "details": [], "slots_moved": 0},
                {"kind": "changed", "object": "pool web: backend 10.0.0.1",
                 "details": ["weight: 1 -> 2"], "slots_moved": 21_845},
            ]})
        );
    }
}
