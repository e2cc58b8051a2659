//! `spillway apply` puts a configuration file in force.

use std::path::{Path, PathBuf};

use lb_config::document::{self, Document};
use spillway_proto::{SCHEMA_REVISION, v1};

use super::{
    changes::Changes,
    confirm::{Confirmation, ForceArgument, Request},
    fleet::WaitArgument,
};
use crate::{
    arguments::{Options, ReasonArgument, input_name, read_input},
    client::{DaemonClient, block_on},
    failure::Failure,
    output::print,
};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Configuration file (TOML); `-` reads standard input
    #[arg(long, short, value_name = "FILE")]
    file: PathBuf,
    /// Only print what would change
    #[arg(long)]
    dry_run: bool,
    /// Apply only while this generation is in force
    #[arg(long, value_name = "N")]
    expect_generation: Option<u64>,
    /// Apply even if spillway, the daemon or its store have different schema versions; fields that only one of them
    /// knows are lost
    #[arg(long)]
    any_schema: bool,
    #[command(flatten)]
    force: ForceArgument,
    #[command(flatten)]
    wait: WaitArgument,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    reason: ReasonArgument,
}

/// # Errors
/// The file cannot be read or is not a configuration, the daemon refuses or does not answer, or balancers of the fleet
/// lag.
pub(crate) fn run(options: Options, arguments: Arguments) -> Result<(), Failure> {
    let Arguments {
        file,
        dry_run,
        expect_generation,
        any_schema,
        force,
        wait,
        confirmation,
        reason,
    } = arguments;
    let file = ConfigurationFile::read(&file)?;
    let how = ApplyOptions {
        dry_run,
        expected_generation: expect_generation,
        any_schema,
        force: force.force,
        reason: reason.text(),
    };
    let (changes, waited) = block_on(async {
        let mut daemon = DaemonClient::connect(&options).await?;
        let mut changes = file.apply(&mut daemon, how, confirmation).await?;
        let waited = wait.wait(&mut daemon, &mut changes).await;
        Ok((changes, waited))
    })?;
    print(&changes, options.output)?;
    waited
}

#[derive(Clone, Debug)]
pub(super) struct ApplyOptions {
    /// Only answer what it would change.
    pub(super) dry_run: bool,
    /// Fail unless this generation is in force.
    pub(super) expected_generation: Option<u64>,
    /// Ignore the schema revisions.
    pub(super) any_schema: bool,
    /// Remove what the file removes, however much that is.
    pub(super) force: bool,
    /// Empty: none.
    pub(super) reason: String,
}

pub(super) struct ConfigurationFile {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) configuration: v1::Configuration,
}

impl ConfigurationFile {
    /// # Errors
    /// The file cannot be read, or is not a configuration.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        Self::new(input_name(path), read_input(path)?)
    }

    /// # Errors
    /// The text is not a configuration.
    pub(super) fn new(name: String, text: String) -> Result<Self, Failure> {
        let document = Document::parse(&text).map_err(|error| {
            Failure::document(&name, &error).hint(
                "nothing was sent; /usr/share/doc/spillway/docs/configuration.md lists the fields",
            )
        })?;
        Ok(Self { name, text, configuration: document.into() })
    }

    /// Puts the file in force; a dry run only answers what that would change.
    ///
    /// # Errors
    /// The daemon refuses or does not answer, or the user does not agree.
    pub(super) async fn apply(
        &self,
        daemon: &mut DaemonClient,
        how: ApplyOptions,
        confirmation: Confirmation,
    ) -> Result<Changes, Failure> {
        let apply = async |Request { dry_run, seen }| {
            let request = v1::ApplyRequest {
                configuration: Some(self.configuration.clone()),
                validate_only: dry_run,
                expected_generation: how.expected_generation.or(seen),
                schema_revision: SCHEMA_REVISION.into(),
                any_schema: how.any_schema,
                reason: how.reason.clone(),
                force: how.force,
            };
            let answer = daemon.apply(request).await;
            answer.map_err(|failure| with_location(failure, &self.name, &self.text))
        };
        let answer = confirmation.change(how.dry_run, apply).await?;
        Ok(Changes::new(answer, how.dry_run))
    }
}

/// Adds the line and column in the file of each field that is wrong.
pub(super) fn with_location(failure: Failure, source: &str, text: &str) -> Failure {
    failure.located(source, |field| document::find_field(text, field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{commands::changes::change_message, failure::Exit, output::Report as _};

    fn answer() -> v1::ApplyResult {
        use v1::change::Kind;
        v1::ApplyResult {
            generation: 5,
            memory: None,
            movements: Vec::new(),
            movements_unknown: false,
            balancers: Vec::new(),
            warnings: Vec::new(),
            changes: vec![
                change_message(Kind::Added, "service shop", &[], 0),
                change_message(Kind::Removed, "region us", &[], 0),
                change_message(
                    Kind::Changed,
                    "pool web: backend 10.0.0.1",
                    &["weight: 1 -> 2"],
                    21_845,
                ),
            ],
        }
    }

    #[test]
    fn the_table_lists_the_changes_under_the_generation() {
        assert_eq!(
            Changes::new(answer(), false).table(),
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
    fn a_dry_run_and_an_equal_configuration_change_nothing() {
        let mut answer = answer();
        answer.memory = Some(v1::MapMemory {
            needed_bytes: 3 << 19,
            peak_bytes: 3 << 19,
            limit_bytes: None,
            maps: vec![v1::MapBytes { map: "TABLES".into(), bytes: 3 << 19 }],
        });
        let dry = Changes::new(answer.clone(), true);
        let table = "\
dry run: generation 5 stays in force; it would make 3 changes
+ service shop
- region us
~ pool web: backend 10.0.0.1 (21845 slots moved)
    weight: 1 -> 2
open connections: none move
kernel memory: the maps need 1.5 MiB
";
        assert_eq!(dry.table(), table);
        assert_eq!(dry.wide(), format!("{table}  TABLES  1.5 MiB\n"));
        let done = Changes::new(answer, false).wide();
        assert!(!done.contains("kernel memory") && !done.contains("connections"), "{done}");
        let same = v1::ApplyResult { generation: 5, ..Default::default() };
        assert_eq!(
            Changes::new(same, false).table(),
            "generation 5 stays in force: nothing differs\n"
        );
    }

    #[test]
    fn a_refusal_names_its_place_in_the_file() {
        let failure = |field: Option<&str>| Failure {
            field: field.map(str::to_owned),
            ..Failure::new(Exit::Invalid, "services[0] \"web\": port: 70000 is not a port")
        };
        let text = "[[service]]\nname = \"web\"\nport = 70000\n";
        assert_eq!(
            with_location(failure(Some("services[0].port")), "web.toml", text).message,
            "web.toml: line 3, column 1: services[0] \"web\": port: 70000 is not a port"
        );
        assert_eq!(with_location(failure(None), "web.toml", text), failure(None));
    }

    #[test]
    fn json_has_the_same_changes() {
        assert_eq!(
            serde_json::to_value(Changes::new(answer(), true)).unwrap(),
            serde_json::json!({"generation": 5, "dry_run": true, "movements": [], "memory": null,
            "warnings": [], "balancers": [], "changes": [
                {"kind": "added", "object": null, "text": "service shop", "fields": [], "slots_moved": 0},
                {"kind": "removed", "object": null, "text": "region us", "fields": [], "slots_moved": 0},
                {"kind": "changed", "object": null, "text": "pool web: backend 10.0.0.1",
                 "fields": [{"field": "weight", "region": null, "old": "1", "new": "2", "text": "weight: 1 -> 2"}],
                 "slots_moved": 21_845},
            ]})
        );
    }
}
