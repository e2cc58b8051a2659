//! The units of the daemons, where systemd has them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use lb_daemon::dataplane::{DEFAULT_BPFFS, Role};

use super::Places;
use crate::command_line;

/// A unit that is installed for a role, and for the pins that are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Unit {
    pub(in super::super) role: Role,
    /// As `systemctl` takes it, `spillway-balancer`.
    pub(in super::super) name: String,
    /// Its settings file.
    pub(in super::super) settings: Option<PathBuf>,
    /// Why it does not run though it was started; `None`: it runs, or nobody wants it to.
    pub(in super::super) failed: Option<String>,
}

/// What `systemctl show` says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
    /// Command line of its daemon; empty: no such unit is installed.
    command: Vec<String>,
    /// What became of its last start, where that is `failed` or is tried again: `exit-code`.
    failed: Option<String>,
    /// By what the journal knows its last start.
    invocation: String,
    /// What the daemon said of itself last.
    status: String,
}

const PROPERTIES: &str =
    "--property=LoadState,ActiveState,SubState,Result,NRestarts,StatusText,InvocationID,ExecStart";

impl Unit {
    /// The unit of a role. Where systemd is not process 1, there is none.
    pub(super) fn of(places: &Places, role: Role) -> Option<Self> {
        let name = format!("spillway-{role}");
        if !Path::new("/run/systemd/system").is_dir() {
            return None;
        }
        let shown = Shown::read(&said("systemctl", &["show", PROPERTIES, &name])?);
        let settings = command_line::settings_file(&shown.command);
        // With pins elsewhere it is another spillwayd's.
        let bpffs = command_line::setting(&shown.command, "bpffs");
        if shown.command.is_empty()
            || places.bpffs != Path::new(&bpffs.unwrap_or(DEFAULT_BPFFS.into()))
        {
            return None;
        }
        let failed = shown.failed.map(|result| {
            let last = logged(&name, &shown.invocation)
                .or((!shown.status.is_empty()).then_some(shown.status));
            last.unwrap_or_else(|| {
                format!("it says nothing ({result}): see `journalctl -u {name}`")
            })
        });
        Some(Self { role, name, settings, failed })
    }
}

/// What a unit's daemon said at the end of its last start.
fn logged(name: &str, invocation: &str) -> Option<String> {
    let lines = |of: &str| {
        said("journalctl", &["--quiet", "--no-pager", "--output=cat", "--lines=100", of])
    };
    // What the journal has not read yet is written to it.
    let _refused_to_others_than_root = said("journalctl", &["--sync"]);
    let of_start = lines(&format!("_SYSTEMD_INVOCATION_ID={invocation}"));
    // What it read when the daemon was gone already, it knows no start of.
    let of_unit = || last_start(&lines(&format!("--unit={name}"))?).and_then(sentence);
    of_start.as_deref().and_then(sentence).or_else(of_unit)
}

/// Of a unit's journal, what follows systemd's own line about its last start.
fn last_start(journal: &str) -> Option<&str> {
    let at = journal.rfind("\nStarting ").or(journal.starts_with("Starting ").then_some(0))?;
    Some(&journal[at..])
}

/// What a program prints; `None`: it cannot be run, or fails.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

impl Shown {
    /// Of lines of `Property=value`.
    fn read(text: &str) -> Self {
        let of = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default()
        };
        if of("LoadState") != "loaded" {
            return Self::default();
        }
        let again = of("SubState").starts_with("auto-restart")
            || of("ActiveState") == "activating" && of("NRestarts") != "0";
        let failed = of("ActiveState") == "failed" || again;
        let line = of("ExecStart").split_once("argv[]=").map(|(_, rest)| rest).unwrap_or_default();
        let words = line.split(" ; ").next().unwrap_or_default().split_whitespace();
        Self {
            command: words.map(str::to_owned).collect(),
            failed: failed.then(|| of("Result").to_owned()),
            invocation: of("InvocationID").to_owned(),
            status: of("StatusText").to_owned(),
        }
    }
}

/// The last sentence of a daemon that ended, with its hint.
fn sentence(journal: &str) -> Option<String> {
    let lines: Vec<_> = journal.lines().collect();
    let at = lines.iter().rposition(|line| line.starts_with("spillwayd: "))?;
    let said = lines[at].strip_prefix("spillwayd: ")?;
    let hint = lines.get(at + 1).and_then(|line| line.strip_prefix("hint: "));
    Some(hint.map_or_else(|| said.to_owned(), |hint| format!("{said} ({hint})")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As systemd 252 prints it.
    const SHOWN: &str = "\
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
    fn a_unit_says_its_command_and_whether_it_failed() {
        let failed = Shown::read(SHOWN);
        assert_eq!(
            failed.command,
            ["/usr/sbin/spillwayd", "balancer", "--config", "/etc/spillway/balancer.toml"]
        );
        assert_eq!(failed.failed.as_deref(), Some("exit-code"));
        assert_eq!(failed.invocation, "0123456789abcdef0123456789abcdef");
        let of = |active: &str, sub: &str, restarts: &str| {
            let text = SHOWN.replace("State=failed", "State=other").replace(
                "ActiveState=other\nSubState=other",
                &format!("ActiveState={active}\nSubState={sub}"),
            );
            Shown::read(&text.replace("NRestarts=0", &format!("NRestarts={restarts}"))).failed
        };
        let exit = Some("exit-code".to_owned());
        assert_eq!(of("activating", "auto-restart", "1"), exit);
        assert_eq!(of("activating", "start", "7"), exit);
        assert_eq!(of("activating", "start", "0"), None);
        assert_eq!(of("active", "running", "7"), None);
        assert_eq!(of("inactive", "dead", "0"), None);
        let absent = SHOWN.replace("LoadState=loaded", "LoadState=not-found");
        assert_eq!(Shown::read(&absent), Shown::default());
    }

    #[test]
    fn what_was_said_at_starts_before_is_no_reason() {
        let last = |journal: &str| last_start(journal).and_then(sentence);
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
        assert_eq!(sentence(journal).as_deref(), Some("b: new (do y)"));
        assert_eq!(sentence("spillwayd: b: new\n").as_deref(), Some("b: new"));
        assert_eq!(sentence("killed\n"), None);
    }
}
