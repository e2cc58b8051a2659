//! What `spillwayd` says when it cannot start: one sentence, what to do, and its exit status. None of
//! this needs root: the program ends before it touches an interface.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{
    fs,
    io::{self, Write as _},
    net::TcpListener,
    os::{fd::OwnedFd, unix::net::UnixListener},
    path::Path,
    process::{self, Command, Output},
    thread,
    time::{Duration, Instant},
};

use lb_store::{FILE, Store};
use nix::fcntl::{FcntlArg, fcntl};

/// Runs the balancer to its end with its files in `directory`, which is no BPF file system: at the
/// latest there it ends.
fn balancer(directory: &Path, more: &[&str]) -> Output {
    command(directory, more).output().unwrap()
}

fn command(directory: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spillwayd"));
    command.args(["balancer", "--interface", "lo", "--bpffs"]).arg(directory);
    command.arg("--state-dir").arg(directory).arg("--socket").arg(directory.join("s.sock"));
    command.args(more).env("RUST_LOG", "off").env("RUST_BACKTRACE", "0");
    command
}

fn refusal(output: &Output) -> (Option<i32>, String) {
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    (output.status.code(), String::from_utf8(output.stderr.clone()).unwrap())
}

#[test]
fn what_is_no_bpf_file_system_is_named_and_nothing_stays_but_the_store() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    let (code, text) = refusal(&balancer(directory.path(), &[]));
    assert_eq!(code, Some(1));
    let sentence = format!(
        "spillwayd: {path}: not a BPF file system: mount one with `mount -t bpf bpf {path}`\n"
    );
    assert!(text.starts_with(&sentence), "{text}");
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(directory.path().join(FILE).exists());
}

/// As with a journal that was stopped.
#[test]
fn a_stderr_that_is_not_read_does_not_keep_a_daemon_that_cannot_start() {
    let directory = tempfile::tempdir().unwrap();
    let (_unread, mut stderr) = io::pipe().unwrap();
    let size = fcntl(&stderr, FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    stderr.write_all(&vec![b'x'; usize::try_from(size).unwrap()]).unwrap();
    let mut daemon = command(directory.path(), &[]).stderr(stderr).spawn().unwrap();
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = daemon.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > Duration::from_secs(60) {
            daemon.kill().unwrap();
            panic!("it does not end: {:?}", daemon.wait());
        }
        thread::park_timeout(Duration::from_millis(10));
    };
    assert_eq!(status.code(), Some(1));
    // A second is for the log; so stderr was full indeed.
    assert!(begun.elapsed() > Duration::from_millis(900), "{:?}", begun.elapsed());
}

#[test]
fn a_store_in_use_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let _open = Store::open(directory.path()).unwrap();
    let file = directory.path().join(FILE);
    let expected = format!(
        "spillwayd: {}: in use by another spillwayd\n\
         hint: stop the other daemon (process {}), or give each its own --state-dir\n",
        file.display(),
        process::id()
    );
    assert_eq!(refusal(&balancer(directory.path(), &[])), (Some(1), expected));
}

#[test]
fn a_damaged_store_is_refused_in_one_sentence_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    drop(Store::open(directory.path()).unwrap());
    let file = directory.path().join(FILE);
    let good = fs::read(&file).unwrap();
    // The header stands for itself; then come the pages, of which some are in use.
    let used: Vec<usize> = (4096..good.len()).filter(|at| good[*at] != 0).collect();
    let mut refused = 0;
    for at in used.iter().step_by(used.len() / 12) {
        let mut bad = good.clone();
        bad[*at] ^= 0xff;
        fs::write(&file, &bad).unwrap();
        let (code, text) = refusal(&balancer(directory.path(), &[]));
        assert_eq!(code, Some(1), "byte {at}: {text}");
        if text.contains("is damaged: ") {
            let lines: Vec<_> = text.lines().collect();
            assert!(lines[0].starts_with(&format!("spillwayd: {}: ", file.display())), "{text}");
            assert!(lines[1].starts_with("hint: restore a good copy, or move"), "{text}");
            assert_eq!(lines.len(), 2, "{text}");
            refused += 1;
        } else {
            assert!(text.contains("not a BPF file system"), "harmless, so it went on: {text}");
        }
    }
    assert_ne!(refused, 0);

    fs::write(&file, "something else").unwrap();
    let (code, text) = refusal(&balancer(directory.path(), &[]));
    assert_eq!(code, Some(1));
    assert!(text.contains("spillway.redb: is not a store of spillwayd: "), "{text}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "something else");
}

#[test]
fn a_socket_in_use_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s.sock");
    let _other = UnixListener::bind(&socket).unwrap();
    let expected = format!(
        "spillwayd: {}: another spillwayd listens there\n\
         hint: stop the other daemon (process {}), or give each its own --socket\n",
        socket.display(),
        process::id()
    );
    assert_eq!(refusal(&balancer(directory.path(), &[])), (Some(1), expected));
}

#[test]
fn a_wrong_command_line_ends_with_status_2_and_names_the_argument() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("s.sock");
    for (arguments, expected) in [
        (&["--region", "EU"][..], "invalid value 'EU' for '--region <NAME>': may hold only a-z"),
        (&["--source", "10.0.0.256"], "invalid value '10.0.0.256' for '--source <ADDRESS>'"),
        (
            &["--source", "10.0.0.1,10.0.0.2"],
            "--source: 10.0.0.1 and 10.0.0.2 are of the same family",
        ),
        (&["--interface", ""], "must be the name of an interface"),
        (&["--xdp-mode", "fast"], "invalid value 'fast' for '--xdp-mode <MODE>'"),
        (&["--hook", "tc"], "only the receiver has a program for tc, the balancer's is for XDP"),
        (&["--socket-mode", "888"], "must be permission bits in octal, such as 660"),
        (&["--socket-owner", "no-such-user"], "no such user"),
        (
            &["--tls-client", "a=root"],
            "\"root\" is not a role; give viewer, plan, operator or admin",
        ),
        (&["--tls-client", "a=operator:Web"], "\"Web\" is not a pattern of pools"),
        (
            &["--read-only-socket", socket.to_str().unwrap()],
            "s.sock: is the --socket, which may change everything",
        ),
        (&["--vip", "192.0.2.1"], "unexpected argument '--vip' found"),
    ] {
        let (code, text) = refusal(&balancer(directory.path(), arguments));
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(expected), "{text}");
    }
    for (arguments, expected) in [
        (&["balancer"][..], "--interface <NAME>"),
        (&["receiver", "--interface", "x", "--vip", "192.0.2.1"], "--allow-source <PREFIX>"),
        (
            &[
                "receiver",
                "--interface",
                "x",
                "--vip",
                "192.0.2.1",
                "--allow-source",
                "10.0.0.0/33",
            ],
            "10.0.0.0/33: prefix length: at most 32",
        ),
        (&["router"], "unrecognized subcommand 'router'"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spillwayd"));
        let (code, text) = refusal(&command.args(arguments).output().unwrap());
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(expected), "{text}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn tcp_without_certificates_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let expected = "spillwayd: --listen 127.0.0.1:7443: --tls-cert is missing\n\
        hint: the API over TCP always uses TLS with certificates on both ends: give --tls-cert, --tls-key \
        and --tls-ca\n";
    let output = balancer(directory.path(), &["--listen", "127.0.0.1:7443"]);
    assert_eq!(refusal(&output), (Some(2), expected.into()));

    let missing = directory.path().join("nothing").display().to_string();
    let files = ["--tls-cert", &missing, "--tls-key", &missing, "--tls-ca", &missing];
    let more = [&["--listen", "127.0.0.1:0"][..], &files].concat();
    let (code, text) = refusal(&balancer(directory.path(), &more));
    assert_eq!(code, Some(1));
    let sentence = format!("spillwayd: {missing}: No such file or directory\nhint: ");
    assert!(text.starts_with(&sentence), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn an_audit_file_that_cannot_be_written_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display().to_string();
    let expected = format!(
        "spillwayd: {path}: Is a directory\n\
         hint: give --audit-file a writable path\n"
    );
    let output = balancer(directory.path(), &["--audit-file", &path]);
    assert_eq!(refusal(&output), (Some(1), expected));
}

#[test]
fn a_wrong_settings_file_is_refused_with_its_line_and_status_2() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("balancer.toml");
    fs::write(&file, "# ours\nregoin = \"eu\"\n").unwrap();
    let expected = format!(
        "spillwayd: {}: line 2, column 1: regoin: no such setting of the balancer\n\
         hint: did you mean `region`?\n",
        file.display()
    );
    let more = ["--config", file.to_str().unwrap()];
    assert_eq!(refusal(&balancer(directory.path(), &more)), (Some(2), expected));
}

/// Runs the balancer with its standard input handed over as a service manager does, and others.
fn handed_over(directory: &Path, socket: OwnedFd, number: u32) -> Output {
    let script = format!(
        "exec 3<&0 4<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS={number}; exec \"$0\" \"$@\""
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_spillwayd")]);
    command.args(["balancer", "--interface", "lo", "--bpffs"]).arg(directory);
    command.arg("--state-dir").arg(directory);
    command.stdin(socket).env("RUST_LOG", "off").output().unwrap()
}

#[test]
fn what_a_service_manager_hands_over_must_be_one_listening_unix_socket() {
    let directory = tempfile::tempdir().unwrap();
    let hint =
        "hint: the socket unit needs a single ListenStream= with the path of a unix socket\n";
    let unix = UnixListener::bind(directory.path().join("s.sock")).unwrap();
    let output = handed_over(directory.path(), unix.into(), 2);
    let sentence = "spillwayd: socket activation: got 2 sockets instead of one\n";
    assert_eq!(refusal(&output), (Some(1), format!("{sentence}{hint}")));

    let tcp = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let output = handed_over(directory.path(), tcp.into(), 1);
    let (code, text) = refusal(&output);
    assert_eq!(code, Some(1));
    let sentence = "spillwayd: socket activation: got something else than a listening unix socket";
    assert!(text.starts_with(sentence) && text.ends_with(hint), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
}
