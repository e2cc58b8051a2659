//! The built binary, as a shell sees it: exit status, stdout, stderr.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{
    collections::BTreeSet,
    io::Write,
    os::unix::net::UnixListener,
    path::Path,
    process::{Command, Output, Stdio},
};

/// Runs `spillway` without the environment variables of the caller.
fn spillway(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spillway"));
    command.args(arguments);
    // No contexts of the user.
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    for name in [
        "OUTPUT",
        "CONTEXT",
        "SOCKET",
        "SERVER",
        "TLS_CERT",
        "TLS_KEY",
        "TLS_CA",
        "BPFFS",
        "STATE_DIR",
    ] {
        command.env_remove(format!("SPILLWAY_{name}"));
    }
    command
}

/// Exit status and stderr; asserts that stdout is empty.
fn failed(output: &Output) -> (i32, String) {
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    (output.status.code().unwrap(), String::from_utf8(output.stderr.clone()).unwrap())
}

fn path(directory: &tempfile::TempDir, name: &str) -> String {
    directory.path().join(name).to_str().unwrap().to_owned()
}

/// A file with every mistake at once, as a pipeline has it: no daemon, a line for each, exit status 6.
#[test]
fn all_mistakes_of_a_file_are_printed_without_a_daemon() {
    let directory = tempfile::tempdir().unwrap();
    let file = path(&directory, "web.toml");
    let text = "[[region]]\nname = \"EU\"\n[[pool]]\nname = \"web\"\nslots = 4\n[[service]]\nname = \"web\"\n\
                address = \"0.0.0.0\"\nport = 80\nprotocol = \"tcp\"\npool = \"shop\"\n";
    std::fs::write(&file, text).unwrap();
    let (status, stderr) = failed(&spillway(&["validate", "-f", &file]));
    let lines: Vec<_> = stderr.lines().collect();
    assert_eq!((status, lines.len()), (6, 5), "{stderr}");
    for (line, place) in lines.iter().zip([
        "2, column 1: regions[0]",
        "5, column 1: pools[0]",
        "8, column 1: services[0]",
        "11, column 1: services[0]",
    ]) {
        assert!(line.starts_with(&format!("error: {file}: line {place} ")), "{line}");
    }
    assert!(lines[4].starts_with("hint: "), "{stderr}");

    let (status, stderr) = failed(&spillway(&["validate", "-f", &path(&directory, "none.toml")]));
    assert_eq!((status, stderr.lines().count()), (5, 2), "{stderr}");
    let valid = text
        .replace("EU", "eu")
        .replace("slots = 4\n", "")
        .replace("0.0.0.0", "192.0.2.1")
        .replace("shop", "web");
    std::fs::write(&file, valid).unwrap();
    let output = spillway(&["validate", "-f", &file, "-o", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (json["services"].as_u64(), json["backends"].as_u64()),
        (Some(1), Some(0)),
        "{json}"
    );
}

/// Mistakes that only a file can have, and those that a daemon would find, in the order of the file.
#[test]
fn mistakes_of_form_and_of_meaning_are_printed_together() {
    let directory = tempfile::tempdir().unwrap();
    let (file, socket) = (path(&directory, "web.toml"), path(&directory, "none.sock"));
    let text = r#"
[[region]]
name = "EU"

[[health_check]]
name = "page"
port = 70000
http = { path = "healthz" }
interval = "1"

[[pool]]
name = "web"
slots = 4
wieght = 1

[[service]]
name = "web"
address = 192.0.2.1
port = "80"
protocol = "http"
pool = "shop"
"#;
    std::fs::write(&file, text).unwrap();
    for command in ["apply", "validate", "diff"] {
        let (status, stderr) = failed(&spillway(&[command, "-f", &file, "--socket", &socket]));
        let lines: Vec<_> = stderr.lines().collect();
        let expected = [
            "3, column 1: regions[0] \"EU\": name: ",
            "7, column 1: health_checks[0] \"page\": port: 70000 is not a port",
            "8, column 10: health_checks[0] \"page\": http.path: ",
            "9, column 12: health_checks[0] \"page\": interval: \"1\": give a unit: ms, s, m, h or d, as in 30s",
            "13, column 1: pools[0] \"web\": slots: ",
            "14, column 1: pools[0] \"web\": unknown field `wieght`",
            "18, column 11: services[0] \"web\": address: 192.0.2.1 is not a number; put text in quotes",
            "19, column 8: services[0] \"web\": port: invalid type: string \"80\"",
            "20, column 12: services[0] \"web\": protocol: unknown variant `http`",
            "21, column 1: services[0] \"web\": pool: \"shop\" is not among the pools",
        ];
        assert_eq!((status, lines.len()), (6, expected.len() + 1), "{command}: {stderr}");
        for (line, expected) in lines.iter().zip(expected) {
            let expected = format!("error: {file}: line {expected}");
            assert!(line.starts_with(&expected), "{command}: {line}");
        }
        assert!(lines[expected.len()].starts_with("hint: "), "{command}: {stderr}");
    }
}

/// One grammar for all of them.
#[test]
fn every_duration_needs_its_units() {
    for line in [
        "backend drain 10.0.0.1 --for DURATION",
        "backend drain 10.0.0.1 --wait=DURATION",
        "apply -f x --wait=DURATION",
        "health create x --port 80 --interval DURATION",
        "pool update web --slow-start DURATION",
        "service update web --idle-timeout DURATION",
        "capture -w x --duration DURATION",
        "drops --duration DURATION",
        "regions --interval DURATION",
        "top --interval DURATION",
        "reload --timeout DURATION",
    ] {
        let run = |duration: &str| {
            let line = line.replace("DURATION", duration);
            let words: Vec<_> = line.split(' ').collect();
            failed(&spillway(&[&words[..], &["--socket", "/nonexistent"]].concat()))
        };
        let (status, stderr) = run("2");
        assert_eq!(status, 2, "{line}: {stderr}");
        let expected = "give a unit: ms, s, m, h or d, as in 30s\n";
        assert!(stderr.lines().next().unwrap().ends_with(expected.trim_end()), "{line}: {stderr}");
        let (_, stderr) = run("1m30s");
        assert!(!stderr.contains("invalid value"), "{line}: {stderr}");
    }
}

#[test]
fn a_missing_daemon_is_reported_with_a_hint() {
    let directory = tempfile::tempdir().unwrap();
    let socket = path(&directory, "none.sock");
    for verb in ["export", "status", "watch"] {
        assert_eq!(
            failed(&spillway(&[verb, "--socket", &socket])),
            (
                3,
                format!(
                    "error: spillwayd at {socket}: no such socket\n\
                     hint: start the daemon (`systemctl start spillway-balancer`), or name its \
                     socket with --socket\n"
                )
            )
        );
    }
}

#[test]
fn a_socket_without_a_listener_is_reported_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let socket = path(&directory, "old.sock");
    drop(UnixListener::bind(&socket).unwrap());
    let (status, text) =
        failed(&command(&["status"]).env("SPILLWAY_SOCKET", &socket).output().unwrap());
    assert_eq!(status, 3);
    assert_eq!(
        text,
        format!(
            "error: spillwayd at {socket}: nothing listens on this socket\n\
             hint: the daemon is not running: start it (`systemctl start spillway-balancer`), or name \
             its socket with --socket\n"
        )
    );
}

#[test]
fn a_file_that_is_not_a_socket_is_reported_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let file = path(&directory, "passwd");
    std::fs::write(&file, "root").unwrap();
    assert_eq!(
        failed(&spillway(&["status", "--socket", &file])),
        (
            3,
            format!(
                "error: spillwayd at {file}: not a socket\n\
                 hint: name the daemon's socket with --socket or SPILLWAY_SOCKET\n"
            )
        )
    );
}

#[test]
fn a_listener_with_another_protocol_is_not_taken_for_the_daemon() {
    let directory = tempfile::tempdir().unwrap();
    let socket = path(&directory, "other.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let other = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.write_all(b"220 mail.example ready\r\n");
    });
    let (status, text) = failed(&spillway(&["status", "--socket", &socket]));
    other.join().unwrap();
    assert_eq!(status, 3, "{text}");
    assert!(text.starts_with(&format!("error: spillwayd at {socket}: ")), "{text}");
    assert!(text.contains("\nhint: "), "{text}");
    assert_eq!(text.lines().count(), 2, "{text}");
}

#[test]
fn an_unreadable_file_is_reported_before_the_daemon_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let (missing, socket) = (path(&directory, "none.toml"), path(&directory, "none.sock"));
    let hint = "hint: name a readable file with -f, or - for standard input\n";
    assert_eq!(
        failed(&spillway(&["apply", "-f", &missing, "--socket", &socket])),
        (5, format!("error: {missing}: no such file or directory\n{hint}"))
    );
    let folder = directory.path().to_str().unwrap();
    assert_eq!(
        failed(&spillway(&["apply", "-f", folder, "--socket", &socket])),
        (1, format!("error: {folder}: is a directory\n{hint}"))
    );
}

#[test]
fn an_invalid_configuration_is_reported_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let (file, socket) = (path(&directory, "web.toml"), path(&directory, "none.sock"));
    std::fs::write(&file, "[[region]]\nname = \"eu\"\noverflow = []\n").unwrap();
    let (status, text) = failed(&spillway(&["apply", "-f", &file, "--socket", &socket]));
    assert_eq!(status, 6);
    let start =
        format!("error: {file}: line 3, column 1: regions[0] \"eu\": unknown field `overflow`");
    assert!(text.starts_with(&start), "{text}");
    assert!(text.ends_with(
        "\nhint: nothing was sent; /usr/share/doc/spillway/docs/configuration.md lists the \
         fields\n"
    ));

    std::fs::write(&file, b"a = \"\xff\"").unwrap();
    let (status, text) = failed(&spillway(&["apply", "-f", &file, "--socket", &socket]));
    assert_eq!(status, 6);
    assert!(text.starts_with(&format!("error: {file}: byte 5 is not UTF-8\n")), "{text}");
}

#[test]
fn standard_input_is_a_file_too() {
    let directory = tempfile::tempdir().unwrap();
    let socket = path(&directory, "none.sock");
    let mut child = command(&["apply", "-f", "-", "--socket", &socket])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"[[region").unwrap();
    let (status, text) = failed(&child.wait_with_output().unwrap());
    assert_eq!(status, 6);
    assert!(text.starts_with("error: standard input: line 1, column 9: "), "{text}");
}

#[test]
fn an_invalid_endpoint_is_reported_with_an_example() {
    for (tuple, cause, hint) in [
        (["198.51.100.7", "192.0.2.1:80"], "the port is missing", "write 198.51.100.7:PORT"),
        (["198.51.100.7:1", "web:80"], "'web' is not an IPv4 or IPv6 address", "names are not"),
        (
            ["198.51.100.7:1", "[2001:db8::1]:80"],
            "different IP versions",
            "give both as IPv4 or both",
        ),
    ] {
        let (status, text) = failed(&spillway(&["explain", tuple[0], tuple[1]]));
        assert_eq!(status, 2, "{text}");
        let (error, advice) = text.split_once("\nhint: ").unwrap();
        assert!(error.starts_with("error: ") && error.contains(cause), "{text}");
        assert!(advice.contains(hint) && advice.lines().count() == 1, "{text}");
    }
}

#[test]
fn without_pins_commands_that_read_them_name_what_to_start() {
    let directory = tempfile::tempdir().unwrap();
    let bpffs = directory.path().to_str().unwrap();
    for verb in [&["stats"][..], &["table"], &["explain", "198.51.100.7:1", "192.0.2.1:80"]] {
        let (status, text) = failed(&spillway(&[verb, &["--bpffs", bpffs]].concat()));
        assert_eq!(
            (status, text),
            (
                3,
                format!(
                    "error: {bpffs}/spillway/balancer-v7: no balancer is pinned there\n\
                     hint: start it (`systemctl start spillway-balancer`), or name its BPF file \
                     system with --bpffs\n"
                )
            )
        );
    }
}

#[test]
fn detach_without_pins_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    let bpffs = directory.path().to_str().unwrap();
    for component in ["balancer", "receiver"] {
        let output = spillway(&["detach", "--component", component, "--bpffs", bpffs]);
        assert_eq!(output.status.code(), Some(0));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text, format!("{component}: nothing was pinned\n"));
    }
}

#[test]
fn wrong_words_on_the_command_line_exit_with_two() {
    for arguments in [&["aply"][..], &["status", "--output", "xml"], &["apply"], &[]] {
        let (status, text) = failed(&spillway(arguments));
        assert_eq!(status, 2, "{arguments:?}: {text}");
        assert!(!text.contains('\u{1b}'), "no colour without a terminal: {text:?}");
    }
}

#[test]
fn a_reader_that_stops_reading_is_no_error() {
    let mut child =
        command(&["verdicts"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn both_forms_of_an_answer_say_the_same() {
    let table = String::from_utf8(spillway(&["verdicts"]).stdout).unwrap();
    let json = command(&["verdicts"]).env("SPILLWAY_OUTPUT", "json").output().unwrap().stdout;
    let json: Vec<serde_json::Value> = serde_json::from_slice(&json).unwrap();
    for verdict in &json {
        let (number, name) = (&verdict["number"], verdict["name"].as_str().unwrap());
        assert!(
            table.lines().any(|l| l.trim_start().starts_with(&format!("{number}  {name} "))),
            "{verdict}"
        );
    }
    assert_eq!(json[7]["name"], "fragment");
}

#[test]
fn the_help_fits_eighty_columns() {
    for arguments in [&["--help"][..], &["apply", "--help"]] {
        let output = spillway(arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0));
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
    assert!(Path::new(env!("CARGO_BIN_EXE_spillway")).ends_with("spillway"));
}

#[test]
fn every_command_that_help_shows_has_a_page_and_completions() {
    let directory = tempfile::tempdir().unwrap();
    let program = || Command::new(env!("CARGO_BIN_EXE_spillway"));
    assert!(program().arg("man").arg(directory.path()).status().unwrap().success());
    let help = program().arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let verbs = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let verbs = verbs.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("    "));
    let verbs: Vec<_> = verbs.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(verbs.contains(&"apply") && verbs.len() > 5, "{help}");
    let bash = program().args(["completions", "bash"]).output().unwrap();
    let bash = String::from_utf8(bash.stdout).unwrap();
    for verb in verbs.iter().filter(|verb| **verb != "help") {
        let page = directory.path().join(format!("spillway-{verb}.1"));
        let text = std::fs::read_to_string(&page).unwrap_or_else(|e| panic!("{verb}: {e}"));
        assert!(text.contains(&format!("spillway\\-{verb}")), "{verb}: {text}");
        assert!(bash.contains(&format!("spillway__subcmd__{verb})")), "{verb} is not completed");
    }
    // Hidden commands have no page.
    assert!(!directory.path().join("spillway-man.1").exists());
}

#[test]
fn wrong_generations_and_reasons_are_refused_before_the_daemon_is_asked() {
    let long = "x".repeat(257);
    let number = "not the number of a generation; `spillway history` lists them";
    for (arguments, expected) in [
        (&["rollback"][..], "required arguments were not provided"),
        (&["rollback", "0", "--yes"], "generations are numbered from 1"),
        (&["rollback", "latest", "--yes"], number),
        (&["rollback", "-1", "--yes"], "unexpected argument '-1'"),
        (&["rollback", "18446744073709551616", "--yes"], number),
        (&["rollback", "1", "2"], "unexpected argument '2'"),
        (&["rollback", "1", "--yes", "--dry-run"], "cannot be used with"),
        (&["rollback", "1", "--yes", "-m", "a\nb"], "must not contain line breaks"),
        (&["rollback", "1", "--yes", "-m", " "], "the reason is empty"),
        (&["rollback", "1", "--yes", "--reason", &long], "257 bytes are more than 256"),
        (&["diff"], "required arguments were not provided"),
        (&["diff", "web.toml"], "not the number of a generation; a file is named with -f"),
        (&["diff", "1", "./2"], "not the number of a generation; a file is named with -f"),
        (&["diff", "1", "-f", "web.toml"], "cannot be used with"),
        (&["diff", "1", "2", "3"], "unexpected argument '3'"),
        (&["history", "3"], "unexpected argument '3'"),
        (&["apply", "-f", "x", "-m", &long], "257 bytes are more than 256"),
        (&["backend", "drain", "10.0.0.1", "-m", "\u{1b}[2J"], "must not contain line breaks"),
    ] {
        let (status, stderr) = failed(&spillway(arguments));
        assert_eq!(status, 2, "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}

/// A script must say that it means it.
#[test]
fn a_rollback_without_a_terminal_needs_yes() {
    let mut rollback = command(&["rollback", "3"]);
    let (status, stderr) = failed(&rollback.stdin(Stdio::null()).output().unwrap());
    let expected = "\
error: rollback asks before it changes anything, and standard input is not a terminal
hint: nothing was changed; see `spillway rollback 3 --dry-run`, then add --yes
";
    assert_eq!((status, &*stderr), (2, expected));
}

/// What a command does if a server is given.
#[derive(Clone, Copy, Debug)]
enum Server {
    /// It asks the server.
    Asks,
    /// It refuses: it works on this host only.
    Refuses,
    /// It needs neither a daemon nor a host.
    NeedsNone,
    /// It writes down where the server is.
    Takes,
}

/// Every command with valid arguments; FILE is a configuration.
const COMMANDS: &[(&str, Server)] = &[
    ("apply -f FILE", Server::Asks),
    ("backend create --pool web --address 10.0.0.1 --region eu", Server::Asks),
    ("backend delete 10.0.0.1", Server::Asks),
    ("backend disable 10.0.0.1", Server::Asks),
    ("backend drain 10.0.0.1", Server::Asks),
    ("backend enable 10.0.0.1", Server::Asks),
    ("backend undrain 10.0.0.1", Server::Asks),
    ("backend weight 10.0.0.1 --percent 30", Server::Asks),
    ("backend get 10.0.0.1", Server::Asks),
    ("backend history web", Server::Asks),
    ("backend list", Server::Asks),
    ("backend update 10.0.0.1 --weight 2", Server::Asks),
    ("capture -w FILE", Server::Asks),
    ("completions bash", Server::NeedsNone),
    ("context clear", Server::NeedsNone),
    ("context delete home", Server::NeedsNone),
    ("context list", Server::NeedsNone),
    ("context set other", Server::Takes),
    ("context use home", Server::NeedsNone),
    ("detach", Server::Refuses),
    ("diff -f FILE", Server::Asks),
    ("diff 3", Server::Asks),
    ("diff 3 5", Server::Asks),
    ("doctor", Server::Refuses),
    ("drops", Server::Asks),
    ("edit", Server::Asks),
    ("explain 198.51.100.7:1 192.0.2.1:80", Server::Asks),
    ("export", Server::Asks),
    ("fleet join --yes", Server::Asks),
    ("fleet leave --yes", Server::Asks),
    ("fleet remove lb-2 --yes", Server::Asks),
    ("fleet restore --from etcd --yes", Server::Asks),
    ("fleet status", Server::Asks),
    ("health create page --port 80", Server::Asks),
    ("health delete page", Server::Asks),
    ("health get page", Server::Asks),
    ("health list", Server::Asks),
    ("health update page --port 81", Server::Asks),
    ("history", Server::Asks),
    ("pool create web", Server::Asks),
    ("pool delete web", Server::Asks),
    ("pool drain web", Server::Asks),
    ("pool scale web --percent 30", Server::Asks),
    ("pool undrain web", Server::Asks),
    ("pool get web", Server::Asks),
    ("pool list", Server::Asks),
    ("pool update web --slots 31", Server::Asks),
    ("region create eu", Server::Asks),
    ("region delete eu", Server::Asks),
    ("region drain eu", Server::Asks),
    ("region scale eu --percent 30", Server::Asks),
    ("region undrain eu", Server::Asks),
    ("override list", Server::Asks),
    ("override remove regions/eu/drain", Server::Asks),
    ("region get eu", Server::Asks),
    ("region list", Server::Asks),
    ("region update eu --overflow-to us", Server::Asks),
    ("regions", Server::Asks),
    ("reload", Server::Asks),
    ("reload --component receiver", Server::Refuses),
    ("rollback 3 --yes", Server::Asks),
    ("service create web --address 192.0.2.1 --port 80 --protocol tcp --pool web", Server::Asks),
    ("service delete web", Server::Asks),
    ("service get web", Server::Asks),
    ("service list", Server::Asks),
    ("service update web --port 81", Server::Asks),
    ("stats", Server::Asks),
    ("stats --component receiver", Server::Refuses),
    ("status", Server::Asks),
    ("table", Server::Asks),
    ("top", Server::Asks),
    ("validate -f FILE", Server::NeedsNone),
    ("verdicts", Server::NeedsNone),
    ("watch", Server::Asks),
];

/// Every command that has a page and no subcommands.
fn commands_of_the_manual() -> BTreeSet<String> {
    let directory = tempfile::tempdir().unwrap();
    assert!(spillway(&["man", directory.path().to_str().unwrap()]).status.success());
    let pages = std::fs::read_dir(directory.path()).unwrap();
    let pages: BTreeSet<_> =
        pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    let names: Vec<_> = pages.iter().map(|page| page.strip_suffix(".1").unwrap()).collect();
    let has_verbs = |name: &str| names.iter().any(|n| n.starts_with(&format!("{name}-")));
    let leaves = names.iter().filter(|name| !has_verbs(name));
    leaves.map(|name| name.strip_prefix("spillway-").unwrap().replace('-', " ")).collect()
}

/// Runs a command with a terminal for standard input and output, which `top` needs.
fn on_a_terminal(command: &mut Command) -> Output {
    let terminal = nix::pty::openpty(None, None).unwrap();
    let slave = || terminal.slave.try_clone().unwrap();
    command.stdin(slave()).stdout(slave()).stderr(Stdio::piped());
    command.spawn().unwrap().wait_with_output().unwrap()
}

/// A context is where commands ask, until another one is named or in use.
#[test]
fn a_context_says_where_to_ask() {
    let directory = tempfile::tempdir().unwrap();
    let ask = |words: &[&str]| {
        let mut command = command(words);
        command.env("XDG_CONFIG_HOME", directory.path()).output().unwrap()
    };
    let done = |words: &[&str]| {
        let output = ask(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(done(&["context", "list"]), "no contexts\n");
    let (here, there) = (path(&directory, "here.sock"), path(&directory, "there.sock"));
    done(&["context", "set", "here", "--socket", &here]);
    done(&["context", "set", "there", "--socket", &there]);
    done(&["context", "use", "here"]);
    let listed = done(&["context", "list", "-o", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["contexts"][0]["current"], true, "{listed}");
    assert_eq!(listed["contexts"][1]["socket"], *there, "{listed}");

    let asks = |words: &[&str], socket: &str| {
        let (status, stderr) = failed(&ask(words));
        assert_eq!(status, 3, "{words:?}: {stderr}");
        assert!(stderr.contains(&format!("spillwayd at {socket}: ")), "{words:?}: {stderr}");
    };
    asks(&["status"], &here);
    asks(&["status", "--context", "there"], &there);
    asks(&["status", "--socket", &there], &there);
    done(&["context", "use", "there"]);
    asks(&["status"], &there);
    done(&["context", "delete", "there"]);
    asks(&["status"], "/run/spillway/spillwayd.sock");

    for (words, status, said) in [
        (&["status", "--context", "rome"][..], 5, "context \"rome\" does not exist"),
        (&["context", "use", "rome"], 5, "the contexts are: here"),
        (&["context", "set", "rome"], 2, "has neither a server nor a socket"),
        (&["context", "set", "a b", "--socket", "/x"], 2, "is not a name"),
        (&["context", "set", "x", "--server", "lb1:7443"], 2, "does not begin with https://"),
        (
            &["context", "set", "x", "--server", "https://lb1:7443", "--tls-ca", "/none"],
            5,
            "/none: no such file",
        ),
    ] {
        let (code, stderr) = failed(&ask(words));
        assert_eq!(code, status, "{words:?}: {stderr}");
        assert!(stderr.contains(said) && stderr.contains("\nhint: "), "{words:?}: {stderr}");
    }
    // A broken file fails what asks a daemon, and nothing else.
    std::fs::write(directory.path().join("spillway/contexts.toml"), "context = 3").unwrap();
    assert!(failed(&ask(&["status"])).1.contains("contexts.toml: invalid type"));
    asks(&["status", "--socket", &here], &here);
    done(&["verdicts"]);
}

/// Every command asks a given server or refuses it: none looks at this host instead.
#[test]
fn no_command_ignores_a_server() {
    let listed = COMMANDS.iter().map(|(line, _)| *line);
    for verb in commands_of_the_manual() {
        let is_it = |line: &str| line == verb || line.starts_with(&format!("{verb} "));
        assert!(listed.clone().any(is_it), "{verb}: add what it does with a server");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = path(&directory, "web.toml");
    std::fs::write(&file, "[[region]]\nname = \"eu\"\n").unwrap();
    let nowhere = path(&directory, "nowhere");
    for (line, server) in COMMANDS {
        let words: Vec<_> =
            line.split(' ').map(|word| if word == "FILE" { &*file } else { word }).collect();
        for by_environment in [false, true] {
            let mut command = command(&words);
            command.args(["--bpffs", &nowhere, "--state-dir", &nowhere, "--socket", &nowhere]);
            std::fs::create_dir_all(directory.path().join("spillway")).unwrap();
            let contexts = directory.path().join("spillway/contexts.toml");
            std::fs::write(contexts, "[context.home]\nsocket = \"/run/home.sock\"\n").unwrap();
            command.env("XDG_CONFIG_HOME", directory.path());
            // No certificate is given: a command that asks the server fails.
            match by_environment {
                true => command.env("SPILLWAY_SERVER", "https://192.0.2.1:7443"),
                false => command.args(["--server", "https://192.0.2.1:7443"]),
            };
            let output = match *line {
                "top" => on_a_terminal(&mut command),
                _ => command.output().unwrap(),
            };
            let stderr = String::from_utf8(output.stderr).unwrap();
            let (status, expected) = match server {
                Server::Asks => (2, "error: --server: --tls-ca is missing\n"),
                Server::Refuses => {
                    (2, "works on this host only, not on the server \"https://192.0.2.1:7443\"\n")
                }
                Server::NeedsNone => (0, ""),
                Server::Takes => (2, "context \"other\": has a server and a socket\n"),
            };
            assert_eq!(output.status.code(), Some(status), "{line}: {stderr}");
            assert!(stderr.contains(expected), "{line}: {stderr}");
            assert!(
                stderr.is_empty() || stderr.lines().count() == 2 && stderr.contains("\nhint: "),
                "{stderr}"
            );
        }
    }
}
