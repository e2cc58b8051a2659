//! Other kernels, to try the packet programs on in QEMU: Debian's cloud images, unpacked.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::apt::{Lists, Package};
use super::cache::{self, Entry};
use crate::ui;

const RECIPE: &str = "1";

/// The series that are tried at full size; a plain run has the first.
pub(crate) const SERIES: [&str; 2] = ["6.1", "6.12"];

/// The newest package of a series that apt offers, and where it is to be unpacked.
pub(crate) struct Missing {
    lists: Lists,
    series: String,
    package: Package,
}

/// A finished one of the series in the cache: a folder with `boot/` and `lib/modules/`.
pub(crate) fn find(series: &str) -> Result<Option<PathBuf>> {
    let root = cache::root()?;
    let prefix = format!("linux-image-{series}.");
    let entries = fs::read_dir(&root).with_context(|| root.display().to_string())?;
    let mut found: Vec<_> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(&prefix))
        .map(|name| Entry::new(&root, &name, RECIPE))
        .filter(Entry::is_finished)
        .map(|entry| entry.path)
        .collect();
    found.sort();
    Ok(found.pop())
}

impl Missing {
    /// None: apt offers no kernel of this series.
    pub(crate) fn look_up(series: &str) -> Result<Option<Self>> {
        let lists = Lists::open()?;
        let names = lists.names(&format!("linux-image-{series}."))?;
        let Some(name) = newest(series, &names) else { return Ok(None) };
        let package = lists.show(&[name.to_owned()])?.into_iter().next();
        Ok(package.map(|package| Self { lists, series: series.to_owned(), package }))
    }

    pub(crate) fn print(&self) {
        ui::note(&format!(
            "{:<18} {:>8}  the packet programs are tried on it in QEMU; unpacked, not installed: {}",
            format!("Linux {}", self.series),
            ui::megabytes(self.package.size),
            self.package.name
        ));
    }

    /// Needs no root.
    pub(crate) fn get(&self) -> Result<()> {
        let entry = Entry::new(&cache::root()?, &self.package.name, RECIPE);
        entry.fill(|dir| {
            ui::heading(&format!("{}, into {}", self.package.name, dir.display()));
            self.lists.unpack(std::slice::from_ref(&self.package.name), &dir.join("root"))?;
            for (from, to) in [("root/boot", "boot"), ("root/lib", "lib")] {
                fs::rename(dir.join(from), dir.join(to)).with_context(|| from.to_owned())?;
            }
            fs::remove_dir_all(dir.join("root")).context("root")
        })
    }
}

/// Of `linux-image-6.1.0-52-cloud-amd64` and its like the one with the highest numbers.
fn newest<'a>(series: &str, names: &'a [String]) -> Option<&'a str> {
    let ending = format!("-cloud-{}", debian_arch());
    let numbers = |name: &str| -> Option<Vec<u64>> {
        let rest = name.strip_prefix("linux-image-")?.strip_suffix(&ending)?;
        let is_of_series = rest.strip_prefix(series)?.starts_with('.');
        let split = rest.split(|c: char| !c.is_ascii_digit());
        is_of_series.then(|| split.filter_map(|number| number.parse().ok()).collect())
    };
    names
        .iter()
        .filter(|name| numbers(name).is_some())
        .max_by_key(|name| numbers(name))
        .map(|name| &**name)
}

fn debian_arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_found_by_number_not_by_letter() {
        let arch = debian_arch();
        let names: Vec<String> = ["6.1.0-9", "6.1.0-53", "6.1.0-100", "6.12.5+deb12", "6.10.1"]
            .iter()
            .map(|version| format!("linux-image-{version}-cloud-{arch}"))
            .chain([
                format!("linux-image-6.1.0-200-cloud-{arch}-dbg"),
                format!("linux-image-6.1.0-200-rt-{arch}"),
                "linux-image-cloud".to_owned(),
            ])
            .collect();
        assert_eq!(newest("6.1", &names), Some(&*format!("linux-image-6.1.0-100-cloud-{arch}")));
        assert_eq!(
            newest("6.12", &names),
            Some(&*format!("linux-image-6.12.5+deb12-cloud-{arch}"))
        );
        assert_eq!(newest("5.10", &names), None);
    }
}
