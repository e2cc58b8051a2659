//! What starts at boot: an installation of ours adds no server to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The servers that our packages bring. Other services that come along (procps sets the kernel's
/// parameters) are part of a system that has them.
const SERVERS: [&str; 4] = ["etcd", "haproxy", "nginx", "prometheus"];

/// Of our servers those that do not start at boot now, and are not to after an installation.
pub(crate) fn kept_out() -> Vec<&'static str> {
    let starting = servers(enabled().iter());
    SERVERS.into_iter().filter(|&name| !starting.contains(name)).collect()
}

/// systemd's units and sysvinit's start links that are enabled, as paths.
fn enabled() -> BTreeSet<PathBuf> {
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

/// The servers behind links: `nginx` for `…/nginx.service` and for
/// `/etc/rc2.d/S01nginx`.
fn servers<'a>(links: impl Iterator<Item = &'a PathBuf>) -> BTreeSet<String> {
    links.filter_map(|link| name(link)).filter(|name| SERVERS.contains(&name.as_str())).collect()
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
            PathBuf::from("/etc/rcS.d/S01procps"),
        ];
        assert_eq!(servers(links[..2].iter()), BTreeSet::from(["nginx".to_owned()]));
        assert_eq!(servers(links[..1].iter()), servers(links[1..].iter()));
        assert_eq!(servers(links[3..].iter()), BTreeSet::new());
    }
}
