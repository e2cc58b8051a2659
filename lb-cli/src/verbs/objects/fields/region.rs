use clap::Args;
use lb_daemon::document;
use spillway_proto::v1;

use crate::{
    failure::Failure,
    verbs::objects::{
        edit::Edit,
        kind::{All, Column, Fields, Kind, Name, NameOrFile, cell},
    },
};

/// Fields of a region.
#[derive(Args, Debug)]
#[group(id = "fields")]
pub(crate) struct RegionFields {
    /// Regions that take over what this one cannot serve, nearest first; "" for none
    #[arg(long, value_name = "REGION,…", value_delimiter = ',')]
    overflow_to: Vec<String>,
}

impl Fields<v1::Region> for RegionFields {
    fn write(&self, edit: &mut Edit<v1::Region>, _: Option<&v1::Region>) -> Result<(), Failure> {
        edit.list("overflow_to", &self.overflow_to, |region, to| region.overflow_to = to);
        Ok(())
    }
}

impl Kind for v1::Region {
    const WORD: &'static str = "region";
    const WORDS: &'static str = "regions";
    const VERB: &'static str = "region";
    const KEYS: (&'static str, &'static str) = ("region", "regions");
    const COLUMNS: &'static [Column] =
        &[("NAME", |r| cell(&r["name"])), ("OVERFLOW TO", |r| cell(&r["overflow_to"]))];
    const MORE: &'static [Column] = &[];
    type Filter = All;
    type One = Name;
    type Named = NameOrFile;
    type Fields = RegionFields;
    type File = document::Region;

    fn name(&self) -> &str {
        &self.name
    }

    fn rename(&mut self, name: &str) {
        self.name = name.into();
    }
}
