//! Steps and questions that the tests of the package share: install, list files, ask systemd.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use lb_e2e::container::Container;

/// A file that whoever runs this names in a variable.
pub(crate) fn given(variable: &str) -> Result<PathBuf> {
    let path = std::env::var_os(variable);
    let path = path.with_context(|| format!("{variable}: not set; `cargo xtask test package`"))?;
    Ok(path.into())
}

/// Installs a package file and returns what was said; whoever changed a settings file keeps it.
pub(crate) fn dpkg(host: &Container, how: &str, deb: &Path) -> Result<String> {
    let package = "/tmp/spillway.deb";
    host.write(package, fs::read(deb).with_context(|| deb.display().to_string())?)?;
    let said = host.run(["dpkg", "--force-confold", how, package])?;
    host.run(["rm", package])?;
    Ok(said)
}

/// What the installed documents link to and is not there; a line each, and where it stands.
pub(crate) fn broken_links(host: &Container) -> Result<String> {
    const LOOK: &str = r#"
        cd /usr/share/doc/spillway && test -s README.md && test -s docs/settings.md || exit 1
        for from in *.md docs/*.md; do
            grep -oE '\]\([^)#]+' "$from" | cut -c3- | grep -v '^https\?:' | while read -r to; do
                test -e "$(dirname "$from")/$to" || echo "$from: $to"
            done
        done"#;
    host.run(["sh", "-c", LOOK])
}

/// A property of a unit.
pub(crate) fn show(host: &Container, unit: &str, property: &str) -> Result<String> {
    let text = host.run(["systemctl", "show", "--value", "--property", property, unit])?;
    Ok(text.trim().to_owned())
}

/// Every file that is not somebody else's business: records of dpkg and apt, logs, and what is mounted.
pub(crate) fn files(host: &Container) -> Result<BTreeSet<String>> {
    let names = host.run(["find", "/", "-xdev", "!", "-path", "/proc/*"])?;
    let run = host.run(["find", "/run", "/tmp", "-name", "*spillway*"])?;
    const OTHERS: [&str; 5] =
        ["/var/lib/dpkg/", "/var/lib/apt/", "/var/log/", "/var/cache/", "/etc/group"];
    let all = names.lines().chain(run.lines()).map(str::to_owned);
    let files: BTreeSet<_> =
        all.filter(|name| !OTHERS.iter().any(|other| name.starts_with(other))).collect();
    if files.len() < 1000 {
        bail!("only {} files", files.len());
    }
    Ok(files)
}
