//! `spillway diff`: what is different between two generations of the history, or between the one in force and a file.

use std::path::PathBuf;

use serde::Serialize;
use spillway_proto::v1;

use super::{
    apply::{ApplyOptions, ConfigurationFile},
    changes::{Change, Changes, Movement, describe_movements},
    confirm::Confirmation,
};
use crate::{
    arguments::{Options, parse_generation},
    client::{DaemonClient, block_on},
    failure::{Exit, Failure},
    output::{Report, print},
};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Generation that the changes start from
    #[arg(value_name = "N", value_parser = parse_generation)]
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    from: Option<u64>,
    /// Generation that they lead to [default: the one in force]
    #[arg(value_name = "M", value_parser = parse_generation)]
    to: Option<u64>,
    /// Configuration file (TOML) to compare with the generation in force; `-` reads standard input
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Serialize)]
struct FileDifference {
    generation: u64,
    different: bool,
    changes: Vec<Change>,
    #[serde(skip)]
    file: String,
}

#[derive(Serialize)]
struct GenerationDifference {
    from: u64,
    to: u64,
    different: bool,
    changes: Vec<Change>,
    movements: Vec<Movement>,
}

/// The exit status says whether anything differs.
///
/// # Errors
/// The file cannot be read or is not a configuration, or the daemon refuses or does not answer.
pub(crate) fn run(options: Options, arguments: Arguments) -> Result<Exit, Failure> {
    let Arguments { from, to, file } = arguments;
    let different = match (file, from) {
        (Some(file), _) => {
            let file = ConfigurationFile::read(&file)?;
            let report = block_on(compare_file(&options, file))?;
            print(&report, options.output)?;
            report.different
        }
        (None, from) => {
            let request = v1::DiffGenerationsRequest { from: from.unwrap_or_default(), to };
            let answer = block_on(async {
                DaemonClient::connect(&options).await?.diff_generations(request).await
            })?;
            let report = GenerationDifference::new(answer);
            print(&report, options.output)?;
            report.different
        }
    };
    Ok(if different { Exit::Different } else { Exit::Success })
}

async fn compare_file(
    options: &Options,
    file: ConfigurationFile,
) -> Result<FileDifference, Failure> {
    // As an apply with --any-schema and --force would.
    let how = ApplyOptions {
        dry_run: true,
        expected_generation: None,
        any_schema: true,
        force: true,
        reason: String::new(),
    };
    let changes = file
        .apply(&mut DaemonClient::connect(options).await?, how, Confirmation::default())
        .await?;
    let Changes { generation, changes, .. } = changes;
    let different = !changes.is_empty();
    Ok(FileDifference { generation, different, changes, file: file.name })
}

impl GenerationDifference {
    fn new(answer: v1::DiffGenerationsResponse) -> Self {
        let v1::DiffGenerationsResponse { from, to, changes, movements } = answer;
        Self {
            from,
            to,
            different: !changes.is_empty(),
            changes: changes.into_iter().map(Change::from).collect(),
            movements: movements.into_iter().map(Movement::from).collect(),
        }
    }
}

impl Report for FileDifference {
    fn table(&self) -> String {
        let Self { generation, file, changes, .. } = self;
        if changes.is_empty() {
            return format!("generation {generation} and {file} are equal\n");
        }
        let lines: String = changes.iter().map(Change::lines).collect();
        format!("from generation {generation} to {file}:\n{lines}")
    }
}

impl Report for GenerationDifference {
    fn table(&self) -> String {
        let Self { from, to, changes, movements, .. } = self;
        if changes.is_empty() {
            return format!("generation {from} and generation {to} are equal\n");
        }
        let lines: String = changes.iter().map(Change::lines).collect();
        let moved = describe_movements(Some(movements));
        format!("from generation {from} to generation {to}:\n{lines}{moved}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::changes::change_message;

    fn answer(changes: Vec<v1::Change>) -> GenerationDifference {
        GenerationDifference::new(v1::DiffGenerationsResponse {
            from: 3,
            to: 5,
            changes,
            movements: Vec::new(),
        })
    }

    #[test]
    fn generations_are_compared_by_their_changes() {
        let change = change_message(
            v1::change::Kind::Changed,
            "pool web: backend 10.0.0.1",
            &["weight: 1 -> 2"],
            0,
        );
        assert_eq!(
            answer(vec![change]).table(),
            "\
from generation 3 to generation 5:
~ pool web: backend 10.0.0.1
    weight: 1 -> 2
open connections: none move
"
        );
        let equal = answer(Vec::new());
        assert_eq!(equal.table(), "generation 3 and generation 5 are equal\n");
        assert_eq!(
            serde_json::to_value(&equal).unwrap(),
            serde_json::json!({"from": 3, "to": 5, "different": false, "changes": [], "movements": []})
        );
    }
}
