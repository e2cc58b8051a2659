//! `spillway export`: the configuration in force, in the form that `spillway apply` reads.

use lb_config::document::Document;
use serde::Serialize;
use spillway_proto::{SCHEMA_REVISION, v1};

use super::overrides::OverrideRow;
use crate::{
    arguments::Options,
    client::{DaemonClient, block_on},
    failure::{Exit, Failure},
    output::{Report, print},
};

#[derive(Serialize)]
pub(super) struct Exported {
    pub(super) generation: u64,
    schema_revision: i32,
    /// Why the daemon cannot use the configuration; empty: it can.
    #[serde(skip_serializing_if = "String::is_empty")]
    unusable: String,
    configuration: Document,
    /// In force beside the configuration, and no part of it.
    overrides: Vec<OverrideRow>,
    #[serde(skip)]
    file: String,
    #[serde(skip)]
    warnings: Vec<String>,
}

/// # Errors
/// The daemon does not answer.
pub(crate) fn run(options: Options) -> Result<(), Failure> {
    let answer = block_on(async { DaemonClient::connect(&options).await?.export().await })?;
    print(&Exported::new(answer)?, options.output)
}

impl Exported {
    /// # Errors
    /// The configuration holds values that this version does not know.
    pub(super) fn new(answer: v1::ExportResponse) -> Result<Self, Failure> {
        let unreadable = |error: &dyn std::fmt::Display| {
            Failure::new(Exit::Failure, format!("the daemon's configuration: {error}"))
                .hint("use the same version of spillway and spillwayd")
        };
        let configuration = Document::try_from(answer.configuration.unwrap_or_default())
            .map_err(|error| unreadable(&error))?;
        let file = configuration.to_toml().map_err(|error| unreadable(&error))?;
        let (schema_revision, own) = (answer.schema_revision, SCHEMA_REVISION as i32);
        let newer = format!(
            "the configuration has a newer schema (revision {schema_revision}, spillway has {own}): fields that \
             spillway does not know are left out"
        );
        // A daemon always has a key, so one that is not there is not shown.
        let hidden = "the hash_key is left out, because only an admin of all pools is shown it: an apply of this file \
                      chooses other backends for connections, unless hash_key is added";
        let mut warnings = if schema_revision > own { vec![newer] } else { Vec::new() };
        if configuration.hash_key.is_none() {
            warnings.push(hidden.into());
        }
        let (generation, unusable) = (answer.generation, answer.unusable);
        let overrides = answer.overrides.into_iter().map(OverrideRow::new).collect();
        Ok(Self { generation, schema_revision, unusable, configuration, overrides, file, warnings })
    }

    /// The export, if it may be changed and sent back.
    ///
    /// # Errors
    /// Fields are left out.
    pub(super) fn require_complete(self) -> Result<Self, Failure> {
        match self.warnings.first() {
            None => Ok(self),
            Some(why) => Err(Failure::new(Exit::Conflict, why.clone())
                .hint("nothing was changed; upgrade spillway, or ask as an admin")),
        }
    }
}

impl Report for Exported {
    fn table(&self) -> String {
        let Self { generation, unusable, overrides, file, .. } = self;
        let cannot = match &**unusable {
            "" => String::new(),
            why => format!(", which the daemon cannot use: {why}"),
        };
        let beside = match overrides.len() {
            0 => String::new(),
            _ => "# in force beside it, and not changed by an apply:\n".into(),
        };
        let names = overrides.iter().map(|it| format!("#   override {}\n", it.name));
        format!("# generation {generation}{cannot}\n{beside}{}{file}", names.collect::<String>())
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> v1::ExportResponse {
        let configuration = v1::Configuration {
            regions: vec![v1::Region {
                name: "eu".into(),
                overflow_to: vec!["us".into()],
                ..v1::Region::default()
            }],
            hash_key: "000102030405060708090a0b0c0d0e0f".into(),
            ..Default::default()
        };
        v1::ExportResponse {
            generation: 3,
            configuration: Some(configuration),
            schema_revision: SCHEMA_REVISION.into(),
            unusable: String::new(),
            overrides: Vec::new(),
        }
    }

    #[test]
    fn an_export_without_the_key_says_what_an_apply_would_do_and_cannot_be_edited() {
        let mut hidden = answer();
        assert!(Exported::new(hidden.clone()).unwrap().warnings().is_empty());
        hidden.configuration.as_mut().unwrap().hash_key.clear();
        let exported = Exported::new(hidden).unwrap();
        let warnings = exported.warnings();
        let [warning] = &*warnings else { panic!("{warnings:?}") };
        assert!(warning.starts_with("the hash_key is left out"), "{warning}");
        assert!(exported.require_complete().is_err());
    }

    #[test]
    fn an_export_can_be_applied() {
        let answer = answer();
        let configuration = answer.configuration.clone().unwrap();
        let text = Exported::new(answer.clone()).unwrap().table();
        assert!(text.starts_with("# generation 3\nhash_key = \"00010203"), "{text}");
        let again = v1::Configuration::from(Document::parse(&text).unwrap());
        assert_eq!(again, configuration);

        let drained = v1::Override { name: "regions/eu/drain".into(), ..Default::default() };
        let overridden = v1::ExportResponse { overrides: vec![drained], ..answer.clone() };
        let text = Exported::new(overridden).unwrap().table();
        let head = "# generation 3\n# in force beside it, and not changed by an apply:\n#   override regions/eu/drain\n";
        assert!(text.starts_with(head), "{text}");
        assert_eq!(v1::Configuration::from(Document::parse(&text).unwrap()), configuration);

        let unusable = v1::ExportResponse { unusable: "pools[0] \"v4\": bad".into(), ..answer };
        let text = Exported::new(unusable).unwrap().table();
        let head = "# generation 3, which the daemon cannot use: pools[0] \"v4\": bad\nhash_key = ";
        assert!(text.starts_with(head), "{text}");
        assert_eq!(v1::Configuration::from(Document::parse(&text).unwrap()), configuration);
    }

    #[test]
    fn the_export_of_a_newer_daemon_comes_with_a_warning_and_cannot_be_edited() {
        let newer = v1::ExportResponse { schema_revision: SCHEMA_REVISION as i32 + 1, ..answer() };
        let exported = Exported::new(newer).unwrap();
        assert!(exported.warnings()[0].contains("left out"), "{:?}", exported.warnings());
        let refused = exported.require_complete().map(|exported| exported.generation).unwrap_err();
        assert!(refused.exit == Exit::Conflict && refused.message.contains("has a newer schema"));
        assert_eq!(
            refused.hint.as_deref(),
            Some("nothing was changed; upgrade spillway, or ask as an admin")
        );
    }
}
