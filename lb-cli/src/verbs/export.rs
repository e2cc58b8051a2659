//! `spillway export`: the configuration in force, in the form that `spillway apply` reads.

use lb_daemon::document::Document;
use serde::Serialize;
use spillway_proto::v1;

use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    exit::Exit,
    failure::Failure,
    output::{Report, print},
};

/// The answer.
#[derive(Serialize)]
pub(super) struct Exported {
    pub(super) generation: u64,
    configuration: Document,
    #[serde(skip)]
    file: String,
}

/// Asks the daemon and prints.
///
/// # Errors
/// The daemon does not answer.
pub(crate) fn run(options: Options) -> Result<(), Failure> {
    let answer = converse(async { Daemon::open(&options).await?.export().await })?;
    print(&Exported::new(answer)?, options.output)
}

impl Exported {
    /// # Errors
    /// It holds what this version has no word for.
    pub(super) fn new(answer: v1::ExportResponse) -> Result<Self, Failure> {
        let unreadable = |error: &dyn std::fmt::Display| {
            Failure::new(Exit::Failure, format!("the daemon's configuration: {error}"))
                .hint("spillway and spillwayd should be of one version")
        };
        let configuration = Document::try_from(answer.configuration.unwrap_or_default())
            .map_err(|error| unreadable(&error))?;
        let file = configuration.to_toml().map_err(|error| unreadable(&error))?;
        Ok(Self { generation: answer.generation, configuration, file })
    }
}

impl Report for Exported {
    fn table(&self) -> String {
        format!("# generation {}\n{}", self.generation, self.file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_exported_can_be_applied() {
        let configuration = v1::Configuration {
            regions: vec![v1::Region { name: "eu".into(), overflow_to: vec!["us".into()] }],
            hash_key: "000102030405060708090a0b0c0d0e0f".into(),
            ..Default::default()
        };
        let answer =
            v1::ExportResponse { generation: 3, configuration: Some(configuration.clone()) };
        let text = Exported::new(answer).unwrap().table();
        assert!(text.starts_with("# generation 3\nhash_key = \"00010203"), "{text}");
        let again = v1::Configuration::from(Document::parse(&text).unwrap());
        assert_eq!(again, configuration);
    }
}
