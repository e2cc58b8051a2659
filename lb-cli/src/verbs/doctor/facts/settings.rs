//! Settings files of daemons.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::{Holder, Unit};

/// A text in a settings file; `None`: the file has none of this name, or cannot be read.
pub(super) fn text(file: &Path, name: &str) -> Option<String> {
    let table: toml::Table = fs::read_to_string(file).ok()?.parse().ok()?;
    Some(table.get(name)?.as_str()?.to_owned())
}

/// What the settings files of daemons and units hold; those that cannot be read are missing.
pub(super) fn files<'f>(
    holders: impl Iterator<Item = &'f Holder>,
    units: &[Unit],
) -> BTreeMap<PathBuf, String> {
    let of_units = units.iter().filter_map(|unit| unit.settings.clone());
    let all = holders.filter_map(Holder::settings).chain(of_units);
    all.filter_map(|file| fs::read_to_string(&file).ok().map(|text| (file, text))).collect()
}
