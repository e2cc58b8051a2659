//! What starts at boot: an installation of ours adds nothing to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// systemd's units and sysvinit's start links that are enabled, as paths.
pub(crate) fn enabled() -> BTreeSet<PathBuf> {
    let mut links = BTreeSet::new();
    for folder in folders(Path::new("/etc/systemd/system"), |name| name.ends_with(".wants")) {
        links.extend(folders(&folder, |name| {
            name.ends_with(".service") || name.ends_with(".socket")
        }));
    }
    for folder in folders(Path::new("/etc"), |name| name.starts_with("rc") && name.ends_with(".d"))
    {
        links.extend(folders(&folder, |name| name.starts_with('S')));
    }
    links
}

fn folders(dir: &Path, is_wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let wanted = entries.flatten().filter(|entry| is_wanted(&entry.file_name().to_string_lossy()));
    wanted.map(|entry| entry.path()).collect()
}

/// The names of services behind links that are new: `nginx` for `…/nginx.service` and for
/// `/etc/rc2.d/S01nginx`.
pub(crate) fn names<'a>(links: impl Iterator<Item = &'a PathBuf>) -> BTreeSet<String> {
    links.filter_map(|link| name(link)).collect()
}

fn name(link: &Path) -> Option<String> {
    let file = link.file_name()?.to_str()?;
    let unit = file.strip_suffix(".service").or_else(|| file.strip_suffix(".socket"));
    let name = match unit {
        Some(unit) => unit,
        None => file.strip_prefix('S')?.trim_start_matches(|c: char| c.is_ascii_digit()),
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_links_name_one_service() {
        let links = [
            PathBuf::from("/etc/systemd/system/multi-user.target.wants/nginx.service"),
            PathBuf::from("/etc/rc2.d/S01nginx"),
            PathBuf::from("/etc/rc5.d/S01nginx"),
            PathBuf::from("/etc/systemd/system/sockets.target.wants/ssh.socket"),
        ];
        let names = names(links.iter());
        assert_eq!(names.iter().collect::<Vec<_>>(), ["nginx", "ssh"]);
    }
}
