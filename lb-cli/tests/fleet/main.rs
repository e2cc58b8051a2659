//! `spillway fleet`, and `--wait`, against a fake daemon: what is asked, exit status, stdout and stderr.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod daemon;

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

use spillway_proto::v1;
use tonic::Code;

use daemon::{Daemon, State};

/// A fleet of three, as lb-1 sees it. Etcd has generation 8.
fn fleet(generations: [u64; 3]) -> State {
    let member = |(name, generation): (&str, u64)| v1::FleetMember {
        name: name.into(),
        alive: true,
        ready: true,
        revision: 4_711,
        generation,
        heard_ms_ago: Some(120),
        ..v1::FleetMember::default()
    };
    let members = ["lb-1", "lb-2", "lb-3"].into_iter().zip(generations).map(member).collect();
    let status = v1::FleetStatus {
        fleet: "edge".into(),
        balancer: "lb-1".into(),
        member: true,
        revision: 4_711,
        generation: 8,
        members,
        ..v1::FleetStatus::default()
    };
    State { status, ..State::default() }
}

/// The settings name a fleet of which the balancer is no member, and the fleet has a service more.
fn outside() -> State {
    let status = v1::FleetStatus {
        fleet: "edge".into(),
        balancer: "lb-1".into(),
        generation: 8,
        ..v1::FleetStatus::default()
    };
    let change = v1::Change {
        kind: v1::change::Kind::Added.into(),
        text: "service web".into(),
        ..v1::Change::default()
    };
    State { status, join_changes: vec![change], ..State::default() }
}

/// The command of a line, in which FILE is a configuration without anything in it.
fn command(daemon: &Daemon, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spillway"));
    let file = daemon.socket.with_file_name("web.toml");
    std::fs::write(&file, "# nothing\n").unwrap();
    let file = file.to_str().unwrap();
    command
        .args(line.split(' ').map(|word| if word == "FILE" { file } else { word }))
        .arg("--socket")
        .arg(&daemon.socket);
    command.env_clear().env("XDG_CONFIG_HOME", "/nonexistent").stdin(Stdio::null());
    command
}

/// Exit status, stdout and stderr.
fn ended(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn run(daemon: &Daemon, line: &str) -> (i32, String, String) {
    ended(command(daemon, line).output().unwrap())
}

/// Runs a command whose standard input is a terminal, at which somebody types.
fn run_and_type(daemon: &Daemon, line: &str, typed: &str) -> (i32, String, String) {
    let terminal = nix::pty::openpty(None, None).unwrap();
    let mut child = command(daemon, line);
    child.stdin(terminal.slave).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    std::fs::File::from(terminal.master.try_clone().unwrap()).write_all(typed.as_bytes()).unwrap();
    ended(child.wait_with_output().unwrap())
}

#[test]
fn a_status_is_checked_by_its_exit_status() {
    let daemon = Daemon::start(fleet([8, 8, 8]));
    let (code, stdout, stderr) = run(&daemon, "fleet status --check");
    assert_eq!((code, &*stderr), (0, ""));
    assert!(stdout.starts_with("fleet edge, as lb-1 sees it: generation 8, "), "{stdout}");

    let daemon = Daemon::start(fleet([8, 7, 8]));
    let (code, stdout, stderr) = run(&daemon, "fleet status");
    assert_eq!((code, &*stderr), (0, ""));
    assert!(stdout.ends_with("\nlb-2 has generation 7 in force, etcd has 8\n"), "{stdout}");
    let (code, stdout, stderr) = run(&daemon, "fleet status --check -o json");
    assert_eq!(code, 1);
    let expected = "error: fleet edge: lb-2 has generation 7 in force, etcd has 8\nhint: ";
    assert!(stderr.starts_with(expected), "{stderr}");
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["problems"][0]["reason"], "behind");

    let daemon = Daemon::start(outside());
    let (code, stdout, stderr) = run(&daemon, "fleet status --check -o yaml");
    assert_eq!(code, 1, "{stderr}");
    assert!(stdout.contains("\nmember: false\n"), "{stdout}");
    let expected =
        "error: lb-1 is not a member of fleet edge\nhint: `spillway fleet join` makes it one\n";
    assert_eq!(stderr, expected);
}

#[test]
fn joining_shows_what_it_replaces_and_needs_consent() {
    let daemon = Daemon::start(outside());
    let (code, stdout, stderr) = run(&daemon, "fleet join");
    assert_eq!((code, &*stdout), (2, ""));
    let expected = "\
error: the configuration of fleet edge would replace that of lb-1: 1 change
hint: nothing was changed; see `spillway fleet join --dry-run`, and if that is meant, add --yes
";
    assert_eq!(stderr, expected);
    assert_eq!(daemon.changes(), ["join (dry run)"]);

    let (code, stdout, _) = run(&daemon, "fleet join --dry-run");
    let expected = "\
dry run: lb-1 would be a member of fleet edge, with generation 8 in force
+ service web
open connections: none move
";
    assert_eq!((code, &*stdout), (0, expected));
    assert_eq!(daemon.changes(), ["join (dry run)"]);

    let joined = "lb-1 is a member of fleet edge, with generation 8 in force\n+ service web\n";
    let (code, stdout, _) = run(&daemon, "fleet join --yes");
    assert_eq!((code, &*stdout), (0, joined));
    assert_eq!(daemon.changes(), ["join, replace"]);

    let (code, stdout, _) = run(&daemon, "fleet join --yes --new");
    assert_eq!((code, &*stdout), (0, joined));
    assert_eq!(daemon.changes(), ["join, replace, new"]);

    let (code, stdout, stderr) = run_and_type(&daemon, "fleet join", "y\n");
    assert_eq!((code, &*stdout), (0, joined), "{stderr}");
    let question = "\n+ service web\nopen connections: none move\nReplace the configuration of lb-1 by that of fleet \
                    edge, generation 8? [y/N]\n";
    assert!(stderr.ends_with(question), "{stderr}");
    assert_eq!(daemon.changes(), ["join (dry run)", "join, replace"]);

    let (code, stdout, stderr) = run_and_type(&daemon, "fleet join", "n\n");
    assert_eq!((code, &*stdout), (1, ""));
    assert!(stderr.ends_with("error: not confirmed\nhint: nothing was changed\n"), "{stderr}");
    assert_eq!(daemon.changes(), ["join (dry run)"]);
}

#[test]
fn leaving_removing_and_restoring_always_ask() {
    let daemon = Daemon::start(fleet([8, 8, 8]));
    for (line, done) in [
        ("fleet leave", "lb-1 has left fleet edge, and keeps the configuration that it has\n"),
        ("fleet remove lb-3", "lb-3 is removed from fleet edge\n"),
        (
            "fleet restore --from lb-1",
            "fleet edge has the configuration of lb-1, as generation 9\n",
        ),
        (
            "fleet restore --from etcd",
            "fleet edge has the configuration of etcd, as generation 9\n",
        ),
    ] {
        let (code, stdout, stderr) = run(&daemon, line);
        assert_eq!((code, &*stdout), (2, ""), "{line}");
        let asks = " asks before it changes anything, and standard input is not a terminal\n";
        let hint =
            format!("hint: nothing was changed; see `spillway {line} --dry-run`, then add --yes\n");
        assert!(stderr.contains(asks) && stderr.ends_with(&hint), "{line}: {stderr}");
        assert!(daemon.changes().is_empty(), "{line}");

        let (code, stdout, _) = run(&daemon, &format!("{line} --dry-run"));
        assert!(code == 0 && stdout.starts_with("dry run: "), "{line}: {stdout}");
        let dry = daemon.changes();
        assert!(dry.len() == 1 && dry[0].ends_with(" (dry run)"), "{line}: {dry:?}");

        assert_eq!(run(&daemon, &format!("{line} --yes")), (0, done.into(), String::new()));
        let changed = daemon.changes();
        assert_eq!(changed, [dry[0].trim_end_matches(" (dry run)")], "{line}");

        let (code, stdout, stderr) = run_and_type(&daemon, line, "yes\n");
        assert_eq!((code, &*stdout), (0, done), "{line}: {stderr}");
        assert!(stderr.ends_with("? [y/N]\n"), "{line}: {stderr}");
        assert_eq!(daemon.changes(), [dry[0].clone(), changed[0].clone()], "{line}");
    }
    let (code, _, stderr) = run(&daemon, "fleet leave --abandon --yes");
    assert_eq!((code, daemon.changes()), (0, vec!["abandon".to_owned()]));
    assert!(stderr.starts_with("warning: its portions"), "{stderr}");
}

#[test]
fn wrong_balancers_are_refused_with_a_hint() {
    let daemon = Daemon::start(fleet([8, 8, 8]));
    for (line, status, said) in [
        ("fleet remove lb-1 --yes", 2, "`spillway fleet leave` makes it independent"),
        ("fleet remove lb-4 --yes", 5, "did you mean lb-"),
        ("fleet remove nothing-like-it --yes", 5, "`spillway fleet status` lists the balancers"),
        ("fleet restore --from lb-2 --yes", 2, "run `spillway fleet restore --from this` at lb-2"),
        ("fleet restore --from lb-9 --yes", 2, "neither `etcd` nor `this` balancer"),
        ("fleet restore --yes", 2, "--from <SOURCE>"),
        ("fleet remove", 2, "<NAME>"),
        ("fleet leave --yes --dry-run", 2, "cannot be used with"),
        ("fleet join extra", 2, "unexpected argument 'extra'"),
        ("apply -f FILE --wait --dry-run", 2, "cannot be used with"),
        ("apply -f FILE --wait=soon", 2, "give whole numbers with units"),
        ("apply -f FILE --wait=20", 2, "give a unit: ms, s, m, h or d, as in 30s"),
        ("backend drain 10.0.0.1 --wait=20", 2, "give a unit: ms, s, m, h or d, as in 30s"),
        (
            "backend drain 10.0.0.1 --for 20s --wait",
            2,
            "before --wait has seen 30 s without packets",
        ),
        ("fleet", 2, "Usage"),
    ] {
        let (code, stdout, stderr) = run(&daemon, line);
        assert_eq!((code, &*stdout), (status, ""), "{line}: {stderr}");
        assert!(stderr.contains(said), "{line}: {stderr}");
    }
    assert!(daemon.changes().iter().all(|change| change.starts_with("remove ")));
}

#[test]
fn a_change_says_where_it_is_in_force() {
    let daemon = Daemon::start(fleet([8, 7, 8]));
    let (code, stdout, stderr) = run(&daemon, "apply -f FILE --yes");
    let expected = "\
generation 8 stays in force: nothing differs
in force at 2 of 3 balancers; not yet at lb-2 (generation 7)
";
    assert_eq!((code, &*stdout, &*stderr), (0, expected, ""));
    let (_, stdout, _) = run(&daemon, "apply -f FILE --yes -o json");
    let json: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(json["balancers"][1], serde_json::json!({"balancer": "lb-2", "generation": 7}));
}

#[test]
fn wait_ends_with_the_last_balancer_or_at_the_limit() {
    let state = State { catches_up_after: Some(3), ..fleet([8, 7, 6]) };
    let daemon = Daemon::start(state);
    let everywhere = "generation 8 stays in force: nothing differs\nin force at all 3 balancers\n";
    assert_eq!(run(&daemon, "apply -f FILE --yes --wait"), (0, everywhere.into(), String::new()));

    let daemon = Daemon::start(fleet([8, 7, 6]));
    let (code, stdout, stderr) = run(&daemon, "apply -f FILE --yes --wait=300ms");
    assert_eq!(code, 1);
    let expected =
        "in force at 1 of 3 balancers; not yet at lb-2 (generation 7), lb-3 (generation 6)\n";
    assert!(stdout.ends_with(expected), "{stdout}");
    let expected = "\
error: generation 8 is not in force everywhere after 300 ms: not yet at lb-2 (generation 7), lb-3 (generation 6)
hint: the change stays; `spillway fleet status` says what is wrong with them
";
    assert_eq!(stderr, expected);

    let (code, stdout, stderr) = run(&daemon, "rollback 7 --yes --wait 300ms");
    assert!(code == 1 && stdout.ends_with(", lb-3 (generation 6)\n"), "{stdout}{stderr}");
    assert!(stderr.starts_with("error: generation 8 is not in force everywhere"), "{stderr}");

    let daemon = Daemon::start(outside());
    let (code, stdout, _) = run(&daemon, "apply -f FILE --yes --wait");
    assert_eq!((code, &*stdout), (0, "generation 8 stays in force: nothing differs\n"));
}

#[test]
fn the_reason_of_a_refusal_decides_the_exit_status() {
    for (line, code, reason, hint, status, said) in [
        ("fleet join --yes", Code::FailedPrecondition, "FLEET_MEMBERSHIP", None, 7, "whether this"),
        (
            "apply -f FILE --yes",
            Code::FailedPrecondition,
            "FLEET_CONFLICT",
            None,
            7,
            "fleet restore`",
        ),
        (
            "apply -f FILE --yes",
            Code::FailedPrecondition,
            "FLEET_CONFLICT",
            Some("ask lb-1"),
            7,
            "ask lb-1",
        ),
        ("apply -f FILE", Code::Unavailable, "FLEET_UNAVAILABLE", None, 3, "once it answers"),
        (
            "fleet leave --yes",
            Code::Unavailable,
            "FLEET_UNAVAILABLE",
            Some("wait for etcd"),
            3,
            "wait for etcd",
        ),
        ("apply -f FILE", Code::Unavailable, "FLEET_UNKNOWN", None, 3, "it is unknown whether"),
        ("apply -f FILE", Code::Internal, "FLEET_BEHIND", None, 1, "the change is committed"),
        ("apply -f FILE --yes", Code::FailedPrecondition, "OTHER", Some("free it"), 7, "free it"),
    ] {
        let state = State { refusal: Some((code, reason, hint)), ..fleet([8, 8, 8]) };
        let daemon = Daemon::start(state);
        let (exit, stdout, stderr) = run(&daemon, line);
        assert_eq!((exit, &*stdout), (status, ""), "{line} {reason}: {stderr}");
        let (error, hint) = stderr.trim_end().split_once("\nhint: ").unwrap();
        assert_eq!(error, "error: the fleet says no", "{line} {reason}");
        assert!(hint.contains(said), "{line} {reason}: {hint}");
    }
}
