//! The shared libraries that programs of unpacked packages need beside those of the system.

use std::collections::HashSet;

use anyhow::Result;

use super::Package;

/// Packages that are unpacked even where the system has them: their files must lie together.
const TOGETHER: [&str; 2] = ["libstd-rust", "libllvm"];

/// `roots` with the library packages that they depend on, directly or not, and that are not
/// `installed`. `show` describes packages by name and leaves out those it does not know.
pub(crate) fn with_libraries(
    roots: Vec<Package>,
    installed: &HashSet<String>,
    mut show: impl FnMut(&[String]) -> Result<Vec<Package>>,
) -> Result<Vec<Package>> {
    let mut seen: HashSet<String> = roots.iter().map(|package| package.name.clone()).collect();
    let mut found = roots;
    let mut start = 0;
    while start < found.len() {
        let wanted: Vec<String> = found[start..]
            .iter()
            .flat_map(|package| &package.depends)
            .filter(|name| may_be_needed(name, installed) && seen.insert((*name).clone()))
            .cloned()
            .collect();
        start = found.len();
        if !wanted.is_empty() {
            found.extend(show(&wanted)?.into_iter().filter(|package| package.section == "libs"));
        }
    }
    Ok(found)
}

fn may_be_needed(name: &str, installed: &HashSet<String>) -> bool {
    let together = TOGETHER.iter().any(|prefix| name.starts_with(prefix));
    name.starts_with("lib") && !name.ends_with("-dev") && (together || !installed.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, section: &str, depends: &[&str]) -> Package {
        Package {
            name: name.into(),
            version: "1".into(),
            section: section.into(),
            size: 1,
            depends: depends.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    fn closure(installed: &[&str]) -> Vec<String> {
        let offered = [
            package("libstd-rust-web-1.96", "libs", &["libc6", "libllvm22"]),
            package("libllvm22", "libs", &["libz3-4", "libxml2", "libc6"]),
            package("libz3-4", "libs", &["libc6"]),
            package("libxml2", "libs", &["libicu72"]),
            package("libicu72", "libs", &["libxml2"]),
            package("libc6", "libs", &[]),
            package("libtool", "devel", &[]),
        ];
        let roots =
            vec![package("rustc-web", "devel", &["libstd-rust-web-1.96", "gcc", "libtool"])];
        let installed = installed.iter().map(|&name| name.to_owned()).collect();
        let show = |names: &[String]| {
            Ok(offered.iter().filter(|package| names.contains(&package.name)).cloned().collect())
        };
        let found = with_libraries(roots, &installed, show).unwrap();
        found.into_iter().map(|package| package.name).collect()
    }

    #[test]
    fn libraries_of_libraries_come_along_once() {
        assert_eq!(
            closure(&["libc6"]),
            ["rustc-web", "libstd-rust-web-1.96", "libllvm22", "libz3-4", "libxml2", "libicu72"]
        );
    }

    #[test]
    fn what_the_system_has_is_left_to_it_but_the_compilers_own() {
        assert_eq!(
            closure(&["libc6", "libz3-4", "libxml2", "libllvm22"]),
            ["rustc-web", "libstd-rust-web-1.96", "libllvm22"]
        );
    }
}
