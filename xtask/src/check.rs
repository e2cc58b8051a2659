//! `cargo xtask check`: format, lints and unit tests of what changed, for the time between two edits.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde::Deserialize;

use crate::artifacts;
use crate::build;
use crate::cargo::cargo;
use crate::cli::CheckArgs;
use crate::process;
use crate::progress::Limits;
use crate::setup::toolchain::Toolchain;
use crate::test::{mutants, steps};
use crate::ui;
use crate::workspace;

/// The packet programs, which have a compiler of their own.
const PACKET_PROGRAMS: &str = "lb-ebpf";

/// Files beside the packages, and the packages whose unit tests read them. A change of any other file beside
/// them concerns all packages. The first prefix that fits counts.
const READERS: [(&str, &[&str]); 15] = [
    ("docs/verdicts.md", &["lb-cli", "lb-daemon", "lb-tests"]),
    ("docs/examples/python/requirements.txt", &["lb-cli", "lb-daemon", "xtask"]),
    ("docs/examples/go/go.mod", &["lb-cli", "lb-daemon", "xtask"]),
    ("docs/", &["lb-model", "lb-config", "lb-daemon", "lb-observe", "lb-cli"]),
    ("packaging/", &["lb-model", "lb-daemon", "lb-observe", "xtask"]),
    ("README.md", &["lb-daemon", "lb-cli"]),
    ("ARCHITECTURE.md", &[]),
    ("CONTRIBUTING.md", &[]),
    ("CHANGELOG.md", &[]),
    ("SECURITY.md", &[]),
    ("LICENSE", &[]),
    (".ci/", &[]),
    (".editorconfig", &[]),
    (".git-blame-ignore-revs", &[]),
    (".gitignore", &[]),
];

/// Test programs that are no unit tests: they take longer than all others together.
const SLOW: [&str; 1] = ["hostile"];

const LIMITS: Limits = Limits::stalled(Duration::from_secs(15 * 60));

/// `cargo xtask check`.
pub(crate) fn run(args: &CheckArgs) -> Result<ExitCode> {
    let start = Instant::now();
    let packages = Packages::read()?;
    let (since, files) = changed(args.since.as_deref())?;
    let touched = packages.with_files(&files);
    let mut to_lint = packages.with_dependents(&touched);
    let lints_packets = to_lint.remove(PACKET_PROGRAMS);
    ui::heading(&format!("{} files changed since {since}, of: {}", files.len(), list(&touched)));

    let check = Check::default();
    check.call("mutants find their places", mutants::check_places);
    check.command("format", steps::fmt())?;
    let mut programs = Vec::new();
    for mut tests in touched.iter().filter_map(|name| packages.unit_tests(name)) {
        let built = check.call("build of unit tests", || artifacts::build(&mut tests));
        programs.extend(built.unwrap_or_default().programs);
    }
    thread::scope(|scope| {
        // Tests mostly wait, and cargo builds nothing for clippy while it builds them.
        let tested = scope.spawn(|| {
            let mut tests = programs.iter().filter(|program| program.is_test);
            tests.try_for_each(|test| {
                check.command(&format!("tests: {}", test.name), run_tests(test))
            })
        });
        let linted = lint(&check, &to_lint, lints_packets);
        tested.join().unwrap_or_else(|_| Err(anyhow!("running tests panicked"))).and(linted)
    })?;
    let failed = check.failed.into_inner();
    ui::note(&format!(
        "{} in all; not run: unit tests of packages that did not change, {}, doc tests, and what `cargo xtask test` adds",
        ui::elapsed(start.elapsed()),
        SLOW.join(", ")
    ));
    println!("{}", if failed == 0 { "ok" } else { "FAILED" });
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn lint(check: &Check, packages: &BTreeSet<&str>, lints_packets: bool) -> Result<()> {
    if lints_packets && let Some(toolchain) = Toolchain::find()? {
        if let Some(clippy) = steps::clippy_bpf(&toolchain)? {
            check.command("clippy of the packet programs", clippy)?;
        }
    } else if lints_packets {
        ui::note("not checked: the packet programs; `cargo xtask setup` gets their compiler");
    }
    if packages.is_empty() {
        return Ok(());
    }
    check.command(&format!("clippy of {}", list(packages)), steps::clippy_packages(packages))
}

/// Runs a test program as cargo does.
fn run_tests(program: &artifacts::Program) -> Command {
    let mut command = Command::new(&program.executable);
    command.current_dir(&program.package).env("CARGO_MANIFEST_DIR", &program.package);
    steps::many_at_a_time(&mut command);
    build::with_objects_if_built(&mut command);
    command
}

fn list(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(", ")
}

/// The checks of a run; all are made, whatever fails.
#[derive(Default)]
struct Check {
    failed: AtomicU32,
}

impl Check {
    fn command(&self, name: &str, command: Command) -> Result<()> {
        let start = Instant::now();
        let captured = process::capture(command, LIMITS, name)?;
        if !captured.success() {
            eprintln!("{}", captured.output.trim_end());
        }
        self.conclude(name, start, captured.success());
        Ok(())
    }

    /// What the check has made; none if it failed.
    fn call<T>(&self, name: &str, check: impl FnOnce() -> Result<T>) -> Option<T> {
        let start = Instant::now();
        let checked = check();
        if let Err(error) = &checked {
            eprintln!("{error:#}");
        }
        self.conclude(name, start, checked.is_ok());
        checked.ok()
    }

    fn conclude(&self, name: &str, start: Instant, is_ok: bool) {
        let word = if is_ok { "ok" } else { "FAILED" };
        ui::note(&format!("{word:<6} {:>12}  {name}", ui::elapsed(start.elapsed())));
        self.failed.fetch_add(u32::from(!is_ok), Ordering::Relaxed);
    }
}

/// What a revision is called, and the files that differ from it. Without one it is HEAD, or the commit
/// before where nothing differs.
fn changed(since: Option<&str>) -> Result<(String, Vec<String>)> {
    let since = since.unwrap_or("HEAD");
    let files = differing(since)?;
    if !files.is_empty() || since != "HEAD" {
        return Ok((since.to_owned(), files));
    }
    Ok(("HEAD~1".to_owned(), differing("HEAD~1")?))
}

fn differing(revision: &str) -> Result<Vec<String>> {
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        process::read(git.current_dir(workspace::root()).args(args))
    };
    let mut files = git(&["diff", "--name-only", "--no-renames", revision, "--"])?;
    files += &git(&["ls-files", "--others", "--exclude-standard"])?;
    Ok(files.lines().map(str::to_owned).collect())
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
    test: bool,
}

/// The packages of the workspace, by their names.
pub(crate) struct Packages {
    /// Folder below the root, with a slash at its end.
    folders: BTreeMap<String, String>,
    packages: BTreeMap<String, Package>,
}

impl Packages {
    pub(crate) fn read() -> Result<Self> {
        let mut command = cargo();
        command.args(["metadata", "--no-deps", "--format-version", "1"]);
        let metadata: Metadata =
            serde_json::from_str(&process::read(&mut command)?).context("cargo metadata")?;
        let root = format!("{}/", workspace::root().canonicalize()?.display());
        let mut folders = BTreeMap::new();
        for package in &metadata.packages {
            let folder = package.manifest_path.strip_prefix(&root);
            let folder = folder.and_then(|path| path.strip_suffix("Cargo.toml"));
            let folder = folder.with_context(|| format!("{}: not below {root}", package.name))?;
            folders.insert(package.name.clone(), folder.to_owned());
        }
        let packages = metadata.packages.into_iter().map(|it| (it.name.clone(), it)).collect();
        Ok(Self { folders, packages })
    }

    pub(crate) fn all(&self) -> BTreeSet<&str> {
        self.packages.keys().map(String::as_str).collect()
    }

    /// The packages that files are of, or whose unit tests read them.
    fn with_files(&self, files: &[String]) -> BTreeSet<&str> {
        let mut touched = BTreeSet::new();
        for file in files {
            let inside =
                self.folders.iter().filter(|(_, folder)| file.starts_with(folder.as_str()));
            // tests/fuzz lies in tests.
            let innermost = inside.max_by_key(|(_, folder)| folder.len());
            let readers = READERS.iter().find(|(prefix, _)| file.starts_with(prefix));
            match (innermost, readers) {
                (Some((name, _)), _) => {
                    touched.insert(name.as_str());
                }
                (None, Some((_, names))) => touched.extend(names.iter().copied()),
                (None, None) => return self.all(),
            }
        }
        touched
    }

    /// The packages, and those that depend on them, by way of others too.
    fn with_dependents<'a>(&'a self, packages: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
        let mut all = packages.clone();
        loop {
            let depends = |package: &&Package| {
                package.dependencies.iter().any(|it| all.contains(it.name.as_str()))
            };
            let more: Vec<_> = self.packages.values().filter(depends).map(|it| &*it.name).collect();
            let before = all.len();
            all.extend(more);
            if all.len() == before {
                return all;
            }
        }
    }

    /// Builds the unit tests of a package, and those of its other tests that are as quick; none if it has none.
    pub(crate) fn unit_tests(&self, name: &str) -> Option<Command> {
        let package = self.packages.get(name)?;
        let mut kinds = BTreeSet::new();
        for target in package.targets.iter().filter(|target| target.test) {
            match target.kind.first().map(String::as_str) {
                Some("lib") => kinds.insert("--lib".to_owned()),
                Some("bin") => kinds.insert("--bins".to_owned()),
                // Those of lb-e2e want root.
                Some("test") if name != "lb-e2e" && !SLOW.contains(&&*target.name) => {
                    kinds.insert(format!("--test={}", target.name))
                }
                _ => false,
            };
        }
        if kinds.is_empty() {
            return None;
        }
        let mut command = cargo();
        command.args(["test", "--no-run"]).args(kinds);
        build::select(&mut command, [name, build::FEATURES]);
        build::with_objects_if_built(&mut command);
        Some(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<'a>(packages: &'a Packages, files: &[&str]) -> Vec<&'a str> {
        let files: Vec<_> = files.iter().map(|&file| file.to_owned()).collect();
        packages.with_files(&files).into_iter().collect()
    }

    #[test]
    fn a_file_is_of_the_innermost_package() {
        let packages = Packages::read().unwrap();
        assert_eq!(names(&packages, &["tests/fuzz/src/lib.rs"]), ["lb-fuzz"]);
        assert_eq!(names(&packages, &["tests/src/lib.rs"]), ["lb-tests"]);
        assert_eq!(names(&packages, &["docs/cli.md", "xtask/src/main.rs"]).len(), 6);
        assert_eq!(names(&packages, &["lb-daemon/net/src/lib.rs"]), ["lb-net"]);
        assert_eq!(names(&packages, &["CONTRIBUTING.md"]).len(), 0);
        assert_eq!(names(&packages, &["Cargo.lock"]).len(), packages.packages.len());
    }

    #[test]
    fn what_depends_on_a_package_is_linted_with_it() {
        let packages = Packages::read().unwrap();
        let of = |name| packages.with_dependents(&BTreeSet::from([name])).into_iter().collect();
        let (fuzz, daemon): (Vec<_>, Vec<_>) = (of("lb-fuzz"), of("lb-daemon"));
        assert_eq!(fuzz, ["lb-fuzz"]);
        assert_eq!(daemon, ["lb-daemon", "lb-e2e"]);
    }

    #[test]
    fn programs_that_want_root_or_take_long_are_left_out() {
        let packages = Packages::read().unwrap();
        let arguments = |name| {
            let command = packages.unit_tests(name).unwrap();
            command.get_args().map(|it| it.display().to_string()).collect::<Vec<_>>()
        };
        assert!(arguments("lb-e2e").iter().all(|it| !it.starts_with("--test=")));
        let model = arguments("lb-model");
        assert!(model.contains(&"--test=flows".to_owned()), "{model:?}");
        let health = arguments("lb-health");
        assert!(!health.contains(&"--test=hostile".to_owned()), "{health:?}");
        assert!(packages.unit_tests("lb-ebpf").is_none());
    }
}
