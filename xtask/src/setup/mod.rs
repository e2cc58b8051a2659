//! What must be there before anything can be built or run, told with size and reason, then fetched.

mod apt;
mod cache;
mod debian;
mod deny;
mod etcd;
mod go;
mod install;
pub(crate) mod kernel;
mod packages;
mod python;
mod services;
mod sockets;
pub(crate) mod toolchain;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::build;
use crate::cli::SetupArgs;
use crate::process::Background;
use crate::ui;
use apt::Lists;
pub(crate) use go::Go;
pub(crate) use packages::Purpose;
use packages::Wanted;
use toolchain::Toolchain;

/// `cargo xtask setup`.
pub(crate) fn run(args: &SetupArgs) -> Result<ExitCode> {
    let wants = Wants { everything: true, ..Wants::tests(&kernel::SERIES[..1], false, false) };
    if args.no_install {
        return Ok(if Missing::look_up(&wants)?.is_nothing() {
            ui::heading("nothing is missing");
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    ensure(&wants, false)?;
    ui::heading("nothing is missing");
    Ok(ExitCode::SUCCESS)
}

/// What a verb needs beside the BPF toolchain, which all of them do.
#[derive(Clone, Copy)]
pub(crate) struct Wants<'a> {
    /// All packages, whoever needs them.
    everything: bool,
    purpose: Purpose,
    /// Series of kernels to boot; tests want at least one.
    kernels: &'a [&'a str],
    /// Go too, for example clients.
    go: bool,
    /// A release is built next.
    builds_release: bool,
}

impl<'a> Wants<'a> {
    /// For building only.
    pub(crate) fn build() -> Self {
        Self::purpose(Purpose::Build)
    }

    /// For one verb.
    pub(crate) fn purpose(purpose: Purpose) -> Self {
        let builds_release = !matches!(purpose, Purpose::Build | Purpose::Fuzz);
        Self { everything: false, purpose, kernels: &[], go: false, builds_release }
    }

    /// For the tests; cargo-deny, modules of Python and a kernel among it, and Go for a long run.
    pub(crate) fn tests(kernels: &'a [&'a str], is_long: bool, builds_release: bool) -> Self {
        Self { kernels, go: is_long, builds_release, ..Self::purpose(Purpose::Test) }
    }

    fn packages(&self) -> Vec<&'static Wanted> {
        match self.everything {
            true => packages::missing(None),
            false => packages::missing(Some(self.purpose)),
        }
    }
}

/// What is there once nothing is missing.
pub(crate) struct Ready {
    pub(crate) toolchain: Toolchain,
    /// What of the release needs nothing of this is built meanwhile; none unless a release is built next.
    pub(crate) begun_release: Option<Background>,
    /// Folders of the kernels that were asked for, by series; without those that apt does not offer.
    pub(crate) kernels: Vec<(String, PathBuf)>,
    /// The interpreter that has the modules of the example in Python; none unless for the tests.
    pub(crate) python: Option<PathBuf>,
    /// The folder of etcd 3.5; none unless for the tests, or if it cannot be had.
    pub(crate) newer_etcd: Option<PathBuf>,
}

/// Prints what is missing and gets it; with `no_install` refuses to go on instead.
pub(crate) fn ensure(wants: &Wants<'_>, no_install: bool) -> Result<Ready> {
    let missing = Missing::look_up(wants)?;
    if no_install && !missing.is_nothing() {
        bail!("listed above: missing; without --no-install it is installed");
    }
    // Downloads leave the CPUs idle, and packet programs one of them.
    let begun_release = wants.builds_release.then(build::begin_release).transpose()?;
    missing.get(wants.everything)?;
    let Some(toolchain) = Toolchain::find()? else {
        bail!("BPF toolchain: not there, though made")
    };
    let mut kernels = Vec::new();
    for series in wants.kernels {
        kernels.extend(kernel::find(series)?.map(|folder| ((*series).to_owned(), folder)));
    }
    let python = (!wants.kernels.is_empty()).then(python::ensure).transpose()?;
    let newer_etcd = if wants.kernels.is_empty() { None } else { etcd::find()? };
    Ok(Ready { toolchain, begun_release, kernels, python, newer_etcd })
}

/// cargo-deny's program; built first, on idle CPU time, if it is missing.
pub(crate) fn cargo_deny() -> Result<PathBuf> {
    deny::ensure()
}

/// The tar file of a Debian to try the package in; made first if it is missing.
pub(crate) fn debian() -> Result<PathBuf> {
    debian::ensure()
}

/// What is made here once and kept, for the tests.
struct Made {
    /// Not before it is used, beside tests; `cargo xtask setup` makes it at once.
    later: bool,
    is_missing: fn() -> Result<bool>,
    print: fn(),
    ensure: fn() -> Result<PathBuf>,
}

#[rustfmt::skip]
static MADE: [Made; 4] = [
    Made { later: true, is_missing: deny::is_missing, print: deny::print, ensure: deny::ensure },
    Made { later: false, is_missing: debian::is_missing, print: debian::print, ensure: debian::ensure },
    Made { later: false, is_missing: etcd::is_missing, print: etcd::print, ensure: etcd::ensure },
    Made { later: false, is_missing: python::is_missing, print: python::print, ensure: python::ensure },
];

#[rustfmt::skip]
static GO: Made = Made { later: false, is_missing: go::is_missing, print: go::print, ensure: go::ensure };

struct Missing {
    packages: Vec<&'static Wanted>,
    lists: Option<Lists>,
    toolchain: Option<toolchain::Missing>,
    kernels: Vec<kernel::Missing>,
    made: Vec<&'static Made>,
}

impl Missing {
    /// Finds out and prints.
    fn look_up(wants: &Wants<'_>) -> Result<Self> {
        toolchain::check_prerequisites()?;
        let packages = wants.packages();
        let toolchain = match Toolchain::find()? {
            Some(_) => None,
            None => Some(toolchain::Missing::look_up()?),
        };
        let mut kernels = Vec::new();
        for series in wants.kernels {
            kernels.extend(Self::kernel(series)?);
        }
        let mut made = Vec::new();
        let tests = MADE.iter().filter(|_| !wants.kernels.is_empty());
        for each in tests.chain(wants.go.then_some(&GO)) {
            if (each.is_missing)()? {
                made.push(each);
            }
        }
        let needs_apt = !packages.is_empty();
        let lists = (needs_apt && apt::is_here()).then(Lists::open).transpose()?;
        let missing = Self { packages, lists, toolchain, kernels, made };
        missing.print()?;
        Ok(missing)
    }

    fn kernel(series: &str) -> Result<Option<kernel::Missing>> {
        if kernel::find(series)?.is_some() || !apt::is_here() {
            return Ok(None);
        }
        let found = kernel::Missing::look_up(series)?;
        if found.is_none() {
            ui::note(&format!("Linux {series}: apt offers no such kernel; not tried"));
        }
        Ok(found)
    }

    fn is_nothing(&self) -> bool {
        let nothing_to_fetch = self.toolchain.is_none() && self.kernels.is_empty();
        self.packages.is_empty() && nothing_to_fetch && self.made.is_empty()
    }

    fn print(&self) -> Result<()> {
        if self.is_nothing() {
            return Ok(());
        }
        ui::heading("missing");
        self.print_packages()?;
        if let Some(toolchain) = &self.toolchain {
            toolchain.print()?;
        }
        self.kernels.iter().for_each(kernel::Missing::print);
        self.made.iter().for_each(|made| (made.print)());
        Ok(())
    }

    fn print_packages(&self) -> Result<()> {
        let Some(lists) = &self.lists else {
            for wanted in &self.packages {
                ui::note(&format!("{:<18} {}", wanted.programs.join(", "), wanted.why));
            }
            return Ok(());
        };
        let names: Vec<String> = self.names().iter().map(|&name| name.to_owned()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let offered = lists.show(&names)?;
        for wanted in &self.packages {
            let offer = offered.iter().find(|offer| offer.name == wanted.package);
            let size = offer.map_or("unknown".to_owned(), |offer| ui::megabytes(offer.size));
            ui::note(&format!("{:<18} {size:>8}  {}", wanted.package, wanted.why));
        }
        let all = lists.to_install(&self.names())?;
        if all.packages == 0 {
            ui::note("all of them downloaded before, to be installed with apt-get (root)");
            return Ok(());
        }
        ui::note(&format!(
            "{:<18} {:>8}  those and what they need: {} packages, installed with apt-get (root)",
            "together",
            ui::megabytes(all.bytes),
            all.packages
        ));
        Ok(())
    }

    fn names(&self) -> Vec<&'static str> {
        self.packages.iter().map(|wanted| wanted.package).collect()
    }

    fn get(&self, at_once: bool) -> Result<()> {
        if !self.packages.is_empty() {
            let Some(lists) = &self.lists else {
                let programs: Vec<_> =
                    self.packages.iter().flat_map(|wanted| wanted.programs).copied().collect();
                bail!(
                    "not found: {}; this is not Debian, so install them your system's way \
                     (Debian's packages: {})",
                    programs.join(", "),
                    self.names().join(", ")
                );
            };
            ui::heading("Debian packages");
            install::install(lists, &self.names())?;
        } else {
            install::recover()?;
        }
        if let Some(toolchain) = &self.toolchain {
            toolchain.get()?;
        }
        self.kernels.iter().try_for_each(kernel::Missing::get)?;
        let mut now = self.made.iter().filter(|made| at_once || !made.later);
        now.try_for_each(|made| (made.ensure)().map(drop))
    }
}
