//! Asking apt, and downloading with it, without root.

mod closure;
mod parse;

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use nix::unistd::{Uid, User};

pub(crate) use closure::with_libraries;
pub(crate) use parse::{Download, Package};

use super::cache;
use crate::process;
use crate::programs;
use crate::ui;

/// Where the system keeps its package lists.
const SYSTEM_LISTS: &str = "/var/lib/apt/lists";

/// What Debian signs its releases with, the next one too.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Older lists may name versions that the mirrors no longer have.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether this system has apt and dpkg at all.
pub(crate) fn is_here() -> bool {
    ["apt-get", "apt-cache", "dpkg-deb", "dpkg-query"]
        .iter()
        .all(|name| programs::find(name).is_some())
}

/// Package lists: the system's where they are fresh, else our own, which need no root.
pub(crate) struct Lists {
    options: Vec<OsString>,
    own: bool,
}

impl Lists {
    /// Fetches lists into the cache if the system's are missing or a day old.
    pub(crate) fn open() -> Result<Self> {
        if is_fresh(Path::new(SYSTEM_LISTS)) {
            return Ok(Self { options: Vec::new(), own: false });
        }
        Self::own(false)
    }

    fn own(renew: bool) -> Result<Self> {
        let dir = cache::root()?.join("apt");
        let lists = Self { options: options(&dir)?, own: true };
        let _lock = cache::lock(&dir)?;
        if renew || !is_fresh(&dir.join("state/lists")) {
            ui::note("package lists of our own: apt-get update (about 14 MB, no root)");
            lists.update(&dir)?;
        }
        Ok(lists)
    }

    /// Fetches lists of another release of Debian, main only, into `dir`. They are checked by the keys of Debian that the
    /// system has.
    pub(crate) fn of_release(dir: &Path, mirror: &str, release: &str) -> Result<Self> {
        let mut options = options(dir)?;
        let sources = dir.join("sources.list");
        fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        fs::write(&sources, format!("deb [signed-by={KEYS}] {mirror} {release} main\n"))
            .with_context(|| sources.display().to_string())?;
        for (name, value) in [("sourcelist", &*sources), ("sourceparts", Path::new("/dev/null"))] {
            options.push("--option".into());
            options.push(format!("Dir::Etc::{name}={}", value.display()).into());
        }
        let lists = Self { options, own: true };
        lists.update(dir)?;
        Ok(lists)
    }

    fn update(&self, dir: &Path) -> Result<()> {
        for folder in ["state/lists/partial", "cache/archives/partial"] {
            let folder = dir.join(folder);
            fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        }
        process::read(self.command("apt-get").arg("update")).map(drop)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C").args(&self.options);
        command
    }

    /// Describes the candidates of these names. Unknown names are left out.
    pub(crate) fn show(&self, names: &[String]) -> Result<Vec<Package>> {
        let mut command = self.command("apt-cache");
        command.args(["show", "--no-all-versions"]).args(names).stdin(Stdio::null());
        let output = command.output().context("apt-cache show")?;
        // It fails if one name is unknown, having shown the others.
        Ok(parse::packages(&String::from_utf8_lossy(&output.stdout)))
    }

    /// The names of packages that begin so.
    pub(crate) fn names(&self, prefix: &str) -> Result<Vec<String>> {
        let printed = process::read(self.command("apt-cache").args(["pkgnames", prefix]))?;
        Ok(printed.lines().map(str::to_owned).collect())
    }

    /// What an installation of these would download, their dependencies included.
    pub(crate) fn to_install(&self, names: &[&str]) -> Result<Download> {
        let mut command = self.command("apt-get");
        command.args(["install", "--print-uris", "--yes", "--no-install-recommends"]).args(names);
        Ok(parse::download(&process::read(&mut command)?))
    }

    /// Downloads packages and unpacks them below `root`. Installs nothing.
    pub(crate) fn unpack(&self, names: &[String], root: &Path) -> Result<()> {
        if let Err(error) = self.unpack_offered(names, root) {
            // Lists that name versions the mirrors have replaced since.
            ui::note(&format!("{error:#}: once more with new package lists"));
            Self::own(true)?.unpack_offered(names, root)?;
        }
        Ok(())
    }

    /// The same by these lists alone.
    pub(crate) fn unpack_offered(&self, names: &[String], root: &Path) -> Result<()> {
        let debs = root.with_extension("debs");
        fs::create_dir_all(&debs).with_context(|| debs.display().to_string())?;
        let user = format!("APT::Sandbox::User={}", user()?);
        let mut download = self.command("apt-get");
        download.args(["--quiet", "--quiet", "--option", &user, "download"]).args(names);
        download.current_dir(&debs).stdin(Stdio::null());
        process::check(download)?;
        fs::create_dir_all(root).with_context(|| root.display().to_string())?;
        for deb in files_of(&debs)? {
            process::read(Command::new("dpkg-deb").arg("--extract").arg(&deb).arg(root))?;
        }
        fs::remove_dir_all(&debs).with_context(|| debs.display().to_string())
    }

    /// Whether root's `apt-get update` must come before an installation.
    pub(crate) fn system_is_stale(&self) -> bool {
        self.own
    }
}

/// Every installed package, by name.
pub(crate) fn installed() -> Result<HashSet<String>> {
    let format = "--showformat=${db:Status-Status} ${Package}\n";
    let printed = process::read(Command::new("dpkg-query").args(["--show", format]))?;
    Ok(parse::installed(&printed).map(str::to_owned).collect())
}

/// Options that give apt lists of its own in `dir`, with the system's sources and status.
fn options(dir: &Path) -> Result<Vec<OsString>> {
    let mut options = Vec::new();
    let mut option = |name: &str, value: OsString| {
        let mut setting = OsString::from(name);
        setting.push("=");
        setting.push(value);
        options.extend([OsString::from("--option"), setting]);
    };
    option("Dir::State", dir.join("state").into());
    option("Dir::State::status", "/var/lib/dpkg/status".into());
    option("Dir::Cache", dir.join("cache").into());
    option("Dir::Cache::srcpkgcache", OsString::new());
    option("APT::Sandbox::User", user()?.into());
    // Descriptions for software centres: a third of the download, of no use here.
    option("Acquire::IndexTargets::deb::DEP-11::DefaultEnabled", "false".into());
    Ok(options)
}

fn user() -> Result<String> {
    let uid = Uid::effective();
    let user = User::from_uid(uid).with_context(|| format!("user {uid}"))?;
    Ok(user.map_or_else(|| uid.to_string(), |user| user.name))
}

fn is_fresh(lists: &Path) -> bool {
    let has_lists = fs::read_dir(lists).is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().contains("_Packages"))
    });
    // Every update works in `partial`, even one that brings nothing new.
    let updated = fs::metadata(lists.join("partial")).and_then(|partial| partial.modified());
    let age = updated.ok().and_then(|then| SystemTime::now().duration_since(then).ok());
    has_lists && age.is_some_and(|age| age < FRESH)
}

fn files_of(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).with_context(|| dir.display().to_string())?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|ending| ending == "deb")).collect())
}
