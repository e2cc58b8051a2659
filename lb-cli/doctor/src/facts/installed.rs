//! The pins of a component, its daemon and its systemd unit.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use lb_maps::{Component, DEFAULT_BPFFS, Linked, Pins, StartRecord, links};

use super::maps::MapsProblem;
use crate::process;

/// Paths and options of the command line.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    pub bpffs: PathBuf,
    pub state_directory: PathBuf,
    pub socket: PathBuf,
    /// The daemon's program: the one beside this program, or else its name.
    pub spillwayd: String,
    /// Largest IP packet that clients send, bytes.
    pub client_mtu: u32,
}

/// Path of the daemon's program, or its name.
pub fn spillwayd() -> String {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("spillwayd"));
    match beside.filter(|path| path.is_file()) {
        Some(path) => path.display().to_string(),
        None => "spillwayd".into(),
    }
}

/// A component with pins of this version.
#[derive(Clone, Debug)]
pub struct InstalledComponent {
    pub component: Component,
    /// Its interfaces.
    pub(crate) links: Vec<Linked>,
    /// The daemon that holds the pins; `None`: none runs.
    pub owner: Option<PinOwner>,
    /// How its last daemon was started; `None`: unknown.
    pub(crate) started: Option<StartRecord>,
    /// Why its maps cannot be read; `None`: they can.
    pub(crate) maps_problem: Option<MapsProblem>,
}

impl InstalledComponent {
    /// The pins of a component, if it has any.
    pub(super) fn read(environment: &Environment, component: Component) -> Option<Self> {
        let pins = Pins::new(&environment.bpffs, component);
        pins.root().is_dir().then(|| Self {
            component,
            links: links(&pins).unwrap_or_default(),
            owner: PinOwner::find(pins.root()),
            started: StartRecord::read(&pins),
            maps_problem: None,
        })
    }

    /// Names of its interfaces.
    pub(crate) fn names(&self) -> Vec<String> {
        self.links.iter().map(|link| link.name.clone()).collect()
    }
}

/// Directories of pins that this version does not know.
pub(super) fn other_pins(environment: &Environment) -> Vec<PathBuf> {
    let own: Vec<_> = Component::ALL
        .map(|component| Pins::new(&environment.bpffs, component).root().to_owned())
        .into();
    let Ok(there) = fs::read_dir(environment.bpffs.join("spillway")) else { return Vec::new() };
    let mut others: Vec<_> = there
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() && !own.contains(path))
        .collect();
    others.sort();
    others
}

/// The daemon that holds the lock on the pins of a component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinOwner {
    pub pid: u32,
    /// Its command line, the program's full path first.
    pub command: Vec<String>,
    /// Effective capabilities as bits; `None`: unknown.
    pub(crate) capabilities: Option<u64>,
    /// Its systemd unit without suffix: `spillway-balancer`.
    pub(crate) unit: Option<String>,
}

impl PinOwner {
    /// The process that has locked a directory of pins.
    pub(super) fn find(pins: &Path) -> Option<Self> {
        let pid = lb_base::lock_owner::holder(pins)?;
        Some(Self {
            pid,
            command: process::command_line(pid),
            capabilities: process::effective_capabilities(&pid.to_string()),
            unit: fs::read_to_string(format!("/proc/{pid}/cgroup"))
                .ok()
                .and_then(|at| service_of(&at)),
        })
    }

    pub(crate) fn settings(&self) -> Option<PathBuf> {
        process::settings_file(&self.command)
    }
}

/// The systemd service of a process, from its proc_pid_cgroup(5).
fn service_of(cgroup: &str) -> Option<String> {
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    let last = path.rsplit('/').next()?;
    last.strip_suffix(".service").map(str::to_owned)
}

/// An installed systemd unit of a component that uses these pins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) component: Component,
    /// Name for `systemctl`: `spillway-balancer`.
    pub(crate) name: String,
    pub(crate) settings: Option<PathBuf>,
    /// Why its start failed; `None`: it runs, or was not started.
    pub(crate) failed: Option<String>,
}

/// Properties from `systemctl show`.
#[derive(Debug, Default, PartialEq, Eq)]
struct UnitProperties {
    /// Command line of the daemon; empty: no such unit is installed.
    command: Vec<String>,
    /// Result of a failed or retried start, such as `exit-code`.
    failed: Option<String>,
    /// Identifies the last start in the journal.
    invocation: String,
    /// The last status text of the daemon.
    status: String,
}

const PROPERTIES: &str =
    "--property=LoadState,ActiveState,SubState,Result,NRestarts,StatusText,InvocationID,ExecStart";

impl Unit {
    /// `None`: there is no such unit, or systemd is not process 1.
    pub(super) fn find(environment: &Environment, component: Component) -> Option<Self> {
        let name = format!("spillway-{component}");
        if !Path::new("/run/systemd/system").is_dir() {
            return None;
        }
        let properties = UnitProperties::parse(&run("systemctl", &["show", PROPERTIES, &name])?);
        let settings = process::settings_file(&properties.command);
        // A unit with other pins belongs to another spillwayd.
        let bpffs = process::setting(&properties.command, "bpffs");
        if properties.command.is_empty()
            || environment.bpffs != Path::new(&bpffs.unwrap_or(DEFAULT_BPFFS.into()))
        {
            return None;
        }
        let failed = properties.failed.map(|result| {
            let last = last_log_message(&name, &properties.invocation)
                .or((!properties.status.is_empty()).then_some(properties.status));
            last.unwrap_or_else(|| {
                format!("no message in its log ({result}): see `journalctl -u {name}`")
            })
        });
        Some(Self { component, name, settings, failed })
    }
}

/// The last message of a unit's daemon in its last start.
fn last_log_message(name: &str, invocation: &str) -> Option<String> {
    let lines =
        |of: &str| run("journalctl", &["--quiet", "--no-pager", "--output=cat", "--lines=100", of]);
    // Makes journald write out pending messages.
    let _needs_root = run("journalctl", &["--sync"]);
    let of_start = lines(&format!("_SYSTEMD_INVOCATION_ID={invocation}"));
    // Messages that journald read after the daemon was gone belong to no start.
    let of_unit = || last_start(&lines(&format!("--unit={name}"))?).and_then(last_error);
    of_start.as_deref().and_then(last_error).or_else(of_unit)
}

/// The part of a unit's journal after systemd's line about the last start.
fn last_start(journal: &str) -> Option<&str> {
    let at = journal.rfind("\nStarting ").or(journal.starts_with("Starting ").then_some(0))?;
    Some(&journal[at..])
}

/// The output of a program; `None`: it cannot be run, or fails.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

impl UnitProperties {
    /// Parses lines of `Property=value`.
    fn parse(text: &str) -> Self {
        let property = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
        };
        if property("LoadState") != "loaded" {
            return Self::default();
        }
        let again = property("SubState").starts_with("auto-restart")
            || property("ActiveState") == "activating" && property("NRestarts") != "0";
        let failed = property("ActiveState") == "failed" || again;
        let line =
            property("ExecStart").split_once("argv[]=").map(|(_, rest)| rest).unwrap_or_default();
        let words = line.split(" ; ").next().unwrap_or_default().split_whitespace();
        Self {
            command: words.map(str::to_owned).collect(),
            failed: failed.then(|| property("Result").to_owned()),
            invocation: property("InvocationID").to_owned(),
            status: property("StatusText").to_owned(),
        }
    }
}

/// The last error of a daemon, with its hint.
fn last_error(journal: &str) -> Option<String> {
    let lines: Vec<_> = journal.lines().collect();
    let at = lines.iter().rposition(|line| line.starts_with("spillwayd: "))?;
    let message = lines[at].strip_prefix("spillwayd: ")?;
    let hint = lines.get(at + 1).and_then(|line| line.strip_prefix("hint: "));
    Some(hint.map_or_else(|| message.to_owned(), |hint| format!("{message} ({hint})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_of_a_process_is_in_the_name_of_its_cgroup() {
        let service = service_of("0::/system.slice/spillway-balancer.service\n");
        assert_eq!(service.as_deref(), Some("spillway-balancer"));
        assert_eq!(service_of("0::/user.slice/user-0.slice/session-1.scope\n"), None);
        assert_eq!(service_of("0::/\n"), None);
    }

    /// As printed by systemd 252.
    const PROPERTIES_TEXT: &str = "\
Result=exit-code
NRestarts=0
ExecStart={ path=/usr/sbin/spillwayd ; argv[]=/usr/sbin/spillwayd balancer --config /etc/spillway/balancer.toml ; ignore_errors=no ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }
StatusText=
LoadState=loaded
ActiveState=failed
SubState=failed
InvocationID=0123456789abcdef0123456789abcdef
";

    #[test]
    fn properties_have_the_command_and_the_failure() {
        let failed = UnitProperties::parse(PROPERTIES_TEXT);
        assert_eq!(
            failed.command,
            ["/usr/sbin/spillwayd", "balancer", "--config", "/etc/spillway/balancer.toml"]
        );
        assert_eq!(failed.failed.as_deref(), Some("exit-code"));
        assert_eq!(failed.invocation, "0123456789abcdef0123456789abcdef");
        let of = |active: &str, sub: &str, restarts: &str| {
            let text = PROPERTIES_TEXT.replace("State=failed", "State=other").replace(
                "ActiveState=other\nSubState=other",
                &format!("ActiveState={active}\nSubState={sub}"),
            );
            UnitProperties::parse(&text.replace("NRestarts=0", &format!("NRestarts={restarts}")))
                .failed
        };
        let exit = Some("exit-code".to_owned());
        assert_eq!(of("activating", "auto-restart", "1"), exit);
        assert_eq!(of("activating", "start", "7"), exit);
        assert_eq!(of("activating", "start", "0"), None);
        assert_eq!(of("active", "running", "7"), None);
        assert_eq!(of("inactive", "dead", "0"), None);
        let absent = PROPERTIES_TEXT.replace("LoadState=loaded", "LoadState=not-found");
        assert_eq!(UnitProperties::parse(&absent), UnitProperties::default());
    }

    #[test]
    fn errors_of_earlier_starts_do_not_count() {
        let last = |journal: &str| last_start(journal).and_then(last_error);
        let (start, old) = ("Starting spillway-balancer.service - x\n", "spillwayd: a: old\n");
        assert_eq!(last(&format!("{start}{old}killed\n")).as_deref(), Some("a: old"));
        assert_eq!(last(&format!("{start}{old}{start}killed\n")), None);
        let again = format!("{start}{old}{start}spillwayd: b: new\n");
        assert_eq!(last(&again).as_deref(), Some("b: new"));
        assert_eq!(last(old), None);
    }

    #[test]
    fn the_last_sentence_comes_with_its_hint() {
        let journal =
            "reading settings\nspillwayd: a: old\nhint: x\nspillwayd: b: new\nhint: do y\n";
        assert_eq!(last_error(journal).as_deref(), Some("b: new (do y)"));
        assert_eq!(last_error("spillwayd: b: new\n").as_deref(), Some("b: new"));
        assert_eq!(last_error("killed\n"), None);
    }
}
