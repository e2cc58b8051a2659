//! `spillway reload`, which `systemctl reload` runs, fails where the daemon refuses.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::{
        fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
        net::UnixStream,
    },
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use lb_tests::{
    daemon::printed::{self, Diagnosis},
    process::{PATIENCE, Running, until},
    sandbox::Sandbox,
};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::{host::Host, startup_reload::settings_files::WEB};

/// More than the daemon lets wait at once.
const AT_ONCE: usize = 12;

/// Ends with this status, and says so in one sentence with these words and a hint.
fn failed(output: &Output, status: i32, words: &[&str]) -> Result<()> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(status), "{output:?}");
    ensure!(output.stdout.is_empty(), "{output:?}");
    let lines: Vec<_> = said.lines().collect();
    let [errors @ .., hint] = &*lines else { anyhow::bail!("{said}") };
    ensure!(!errors.is_empty() && hint.starts_with("hint: "), "{said}");
    ensure!(errors.iter().all(|line| line.starts_with("error: ")), "{said}");
    for word in words {
        ensure!(said.contains(word), "{word}: {said}");
    }
    Ok(())
}

fn done(output: &Output) -> Result<String> {
    ensure!(output.status.success(), "{output:?}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(crate) fn balancer(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "reload")?;
    let audit = host.path("audit.log");
    let apply =
        format!("apply = {:?}\nregion = \"eu\"\naudit-file = {audit:?}\n", host.path("web.toml"));
    host.write("settings.toml", &host.settings(&apply))?;
    host.write("web.toml", WEB)?;
    let config = host.path("settings.toml").display().to_string();
    let web = host.path("web.toml").display().to_string();
    let reload = || host.cli(&["reload"]);
    failed(&reload()?, 3, &["no such socket"])?;
    let mut running = host.start(&mut host.daemon(&["balancer", "--config", &config]))?;
    ensure!(host.told()? == "READY=1");

    host.write("web.toml", &WEB.replace("10.1.0.11", "10.1.0.12"))?;
    let said = done(&reload()?)?;
    ensure!(said == "reloaded: generation 2 is in force\n", "{said}");
    ensure!(host.told()?.starts_with("RELOADING=1"));
    ensure!(host.told()? == "READY=1");
    ensure!(host.status()?.generation == 2);

    // Wrong settings: nothing of the reload is in force, the configuration is not read either.
    host.write("settings.toml", &format!("{}regoin = \"eu\"\n", host.settings(&apply)))?;
    host.write("web.toml", WEB)?;
    let cause = format!("{config}: line 8, column 1: regoin: no such setting of the balancer");
    failed(&reload()?, 6, &[&format!("error: settings: {cause}"), "what was in force stays"])?;
    let status = host.status()?;
    ensure!(status.generation == 2 && status.conditions[0].text == cause, "{status:?}");

    // Who asked, and what came of it.
    let noted = fs::read_to_string(&audit)?;
    let noted: Vec<Value> = noted.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let by_root = |line: &&Value| line["what"] == "reload" && line["who"] == json!({"uid": 0});
    ensure!(noted.iter().filter(by_root).count() == 2, "{noted:?}");
    let settings = noted.iter().filter(|line| line["what"] == "settings");
    let outcomes: Vec<_> = settings.map(|line| (&line["outcome"], &line["cause"])).collect();
    let expected = [(&json!("read"), &Value::Null), (&json!("refused"), &json!(cause))];
    ensure!(outcomes == expected, "{noted:?}");

    // A wrong configuration.
    host.write("settings.toml", &host.settings(&apply))?;
    host.write("web.toml", "\n[[pools]]\n")?;
    failed(&reload()?, 6, &[&format!("error: {web}: line 2, column 3: unknown field `pools`")])?;
    ensure!(host.status()?.generation == 2);

    // Several mistakes: each is named, and the status has the first.
    host.write("web.toml", WEB)?;
    done(&reload()?)?;
    host.write("settings.toml", &format!("{}regoin = 1\nhttp = 1\n", host.settings(&apply)))?;
    let settings = |line: usize| format!("error: settings: {config}: line {line}, column 1: ");
    failed(&reload()?, 6, &[&settings(8), &settings(9)])?;
    let first = &host.status()?.conditions[0].text;
    ensure!(first.ends_with(": no such setting of the balancer (and 1 more mistake)"), "{first}");
    host.write("settings.toml", &host.settings(&apply))?;
    host.write("web.toml", "[[pools]]\n[[region]]\nname = \"EU\"\nx = 1\n")?;
    let mistakes = [
        &format!("error: {web}: line 1, column 3: unknown field `pools`"),
        &format!("error: {web}: line 3, column 1: regions[0] \"EU\": name: "),
        &format!("error: {web}: line 4, column 1: regions[0] \"EU\": unknown field `x`"),
    ];
    failed(&reload()?, 6, &mistakes.map(String::as_str))?;

    // Settings that wait: done, and said.
    host.write("web.toml", WEB)?;
    let more = format!("{apply}icmp-errors = 7\n").replace("\"eu\"", "\"us\"");
    host.write("settings.toml", &host.settings(&more))?;
    let output = host.cli(&["--output", "json", "reload"])?;
    let answer: Value = serde_json::from_slice(&output.stdout).context(format!("{output:?}"))?;
    let waiting = json!(["icmp-errors", "region"]);
    ensure!(answer == json!({"generation": 3, "waiting_settings": waiting}), "{answer}");
    let warning = String::from_utf8_lossy(&output.stderr);
    let expected = "warning: icmp-errors and region take effect when the daemon restarts\n";
    ensure!(warning == expected, "{warning}");
    let status = host.status()?;
    ensure!(status.waiting_settings == ["icmp-errors", "region"], "{status:?}");
    let table = done(&host.cli(&["status"])?)?;
    ensure!(table.contains("\nwaiting     icmp-errors, region: "), "{table}");
    host.status_line("; waiting for the next start: icmp-errors, region")?;
    host.write("settings.toml", &host.settings(&apply))?;
    done(&reload()?)?;
    ensure!(host.status()?.waiting_settings.is_empty());

    // As the unit asks, which has no option for the socket that the settings name.
    let mut by_pins = host.fabric.balancer.command(&host.binaries.spillway);
    done(&by_pins.arg("--bpffs").arg(&host.bpffs).arg("reload").output()?)?;

    // At once: each is answered, and what it found in the file is in force.
    several(&|| command(&host, &[]))?;

    // A daemon that hangs, and one that goes on.
    running.signal(Signal::SIGSTOP)?;
    let hung = host.cli(&["reload", "--timeout", "1s"])?;
    running.signal(Signal::SIGCONT)?;
    failed(&hung, 3, &["does not answer within 1 s"])?;
    done(&reload()?)?;
    for wrong in [&["reload", "--timeout", "0s"][..], &["reload", "--component", "router"]] {
        ensure!(host.cli(wrong)?.status.code() == Some(2), "{wrong:?}");
    }
    host.stop(&mut running)?;
    failed(&reload()?, 3, &["no such socket"])
}

/// `spillway reload` with these arguments, to be run.
fn command(host: &Host, arguments: &[&str]) -> Command {
    let mut command = host.fabric.balancer.command(&host.binaries.spillway);
    command.arg("--socket").arg(host.path("s.sock")).arg("reload").args(arguments);
    command
}

/// Many that ask at once.
fn several(command: &dyn Fn() -> Command) -> Result<()> {
    let started: Vec<_> =
        (0..AT_ONCE).map(|_| command().stdout(std::process::Stdio::piped()).spawn()).collect();
    for child in started {
        let output = child.context("spillway reload")?.wait_with_output()?;
        ensure!(output.status.success(), "{output:?}");
    }
    Ok(())
}

/// Settings of a receiver with its files here.
fn settings(host: &Host, rest: &str) -> String {
    let socket = host.path("s.sock");
    format!("interface = \"eth0\"\nbpffs = {:?}\nsocket = {socket:?}\n{rest}", host.bpffs)
}

const LISTS: &str = "allow-source = [\"10.0.0.2\"]\nvip = \"203.0.113.1\"\n";

fn started(host: &Host) -> Result<Running> {
    let config = host.path("settings.toml").display().to_string();
    let running = host.start(&mut host.daemon(&["receiver", "--config", &config]))?;
    ensure!(host.told()? == "READY=1", "{}", running.output());
    Ok(running)
}

pub(crate) fn receiver(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "reload-r")?;
    host.write("settings.toml", &settings(&host, LISTS))?;
    let config = host.path("settings.toml").display().to_string();
    let reload = |more: &[&str]| host.cli(&[&["reload", "--component", "receiver"], more].concat());
    failed(&reload(&[])?, 3, &["no such socket", "systemctl start spillway-receiver"])?;
    let mut running = started(&host)?;
    let socket = fs::symlink_metadata(host.path("s.sock"))?;
    let mode = socket.permissions().mode() & 0o777;
    ensure!(socket.file_type().is_socket() && (socket.uid(), mode) == (0, 0o600), "{socket:?}");

    ensure!(done(&reload(&[])?)? == "reloaded\n");
    host.told()?;
    ensure!(host.told()? == "READY=1");
    // Its pins say which receiver is meant, and its settings where it listens.
    let found = || {
        let mut command = host.fabric.balancer.command(&host.binaries.spillway);
        command.arg("--bpffs").arg(&host.bpffs).args(["reload", "--component", "receiver"]);
        command
    };
    done(&found().output()?)?;

    host.write("settings.toml", &settings(&host, "allow-source = \"10.0.0.0/33\"\nvip = []\n"))?;
    let cause = format!("settings: {config}: line 4, column 1: allow-source: \"10.0.0.0/33\"");
    failed(&reload(&[])?, 6, &[&cause, "what was in force stays"])?;
    let doctor = |level: &str, words: &[&str]| -> Result<()> {
        let mut doctor = host.fabric.balancer.command(&host.binaries.spillway);
        doctor.arg("--bpffs").arg(&host.bpffs).args(["--output", "json", "doctor"]);
        let output = doctor.output()?;
        let answer: Diagnosis = printed::read(&output.stdout)?;
        let found = answer.of_check("daemon").filter(|it| it.level == level);
        let found: Vec<_> = found.map(|it| format!("{it:?}")).collect();
        for word in words {
            ensure!(found.concat().contains(word), "{word}: {answer:#?}");
        }
        Ok(())
    };
    let reload_it = format!("kill -HUP {}  # after correcting it", running.id());
    doctor("warning", &["allow-source: ", "10.0.0.0/33", "its next start would fail", &reload_it])?;

    let more = "gue-port = 0\nxdp-mode = \"generic\"\n";
    host.write("settings.toml", &settings(&host, &format!("{LISTS}{more}")))?;
    let output = reload(&[])?;
    let warning = String::from_utf8_lossy(&output.stderr);
    ensure!(warning == "warning: xdp-mode takes effect when the daemon restarts\n", "{output:?}");
    doctor("ok", &["runs (process "])?;
    doctor("warning", &["xdp-mode", "need a restart"])?;
    host.write("settings.toml", &settings(&host, LISTS))?;
    several(&|| {
        let mut command = command(&host, &["--component", "receiver"]);
        command.stderr(std::process::Stdio::null());
        command
    })?;

    hostile(&host)?;
    done(&reload(&[])?)?;
    let mut stranger = host.fabric.balancer.command("setpriv");
    stranger.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    stranger.arg(&host.binaries.spillway).arg("--socket").arg(host.path("s.sock"));
    let denied = stranger.args(["reload", "--component", "receiver"]).output()?;
    failed(&denied, 4, &["permission denied", "run this command as root"])?;
    let server = ["--server", "https://10.0.0.2:7443", "reload", "--component", "receiver"];
    failed(&host.cli(&server)?, 2, &["works on this host only", "--server"])?;

    running.signal(Signal::SIGSTOP)?;
    let hung = reload(&["--timeout", "1s"])?;
    running.signal(Signal::SIGCONT)?;
    failed(&hung, 3, &["does not answer within 1 s"])?;
    host.stop(&mut running)?;
    ensure!(!host.path("s.sock").exists(), "the socket is left");

    // What a killed one leaves is taken away by the next.
    let mut killed = started(&host)?;
    killed.kill()?;
    failed(&reload(&[])?, 3, &["nothing listens on this socket"])?;
    let mut running = started(&host)?;
    done(&reload(&[])?)?;
    host.stop(&mut running)?;
    Ok(())
}

/// What is no question is refused, and whoever says nothing keeps nobody out.
fn hostile(host: &Host) -> Result<()> {
    let connect = || UnixStream::connect(host.path("s.sock")).context("connect");
    let idle: Vec<_> = (0..64).map(|_| connect()).collect::<Result<_>>()?;
    let long = vec![b'r'; 1 << 20];
    for bytes in [&b"\n"[..], b"reloa\n", b"reload more\n", b"\xff\xfe\0\n", b"RELOAD\r\n", &long] {
        let mut stream = connect()?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // It may close before it has read all of it.
        let _cut_off = stream.write_all(bytes);
        let _cut_off = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _cut_off = stream.read_to_end(&mut answer);
        ensure!(answer.is_empty(), "{:?}", String::from_utf8_lossy(&answer));
    }
    let mut asked = 0;
    until("an answer beside those that say nothing", PATIENCE, || {
        asked += 1;
        let output = host.cli(&["reload", "--component", "receiver", "--timeout", "10s"])?;
        Ok(output.status.success().then_some(()))
    })?;
    ensure!(asked == 1, "asked {asked} times");
    drop(idle);
    Ok(())
}

/// Two receivers without a socket of their own: the second goes on without, and is not confused with
/// the first.
pub(crate) fn without_a_socket(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "two")?;
    let start = |name: &str, node: &lb_tests::topology::Node, more: &[&str]| -> Result<_> {
        let bpffs = sandbox.bpffs(node.namespace())?;
        let mut command = node.command(&host.binaries.spillwayd);
        command.args(["receiver", "--interface", "eth0", "--allow-source", "10.0.0.2"]);
        command.args(["--vip", "203.0.113.1", "--bpffs"]).arg(&bpffs).args(more);
        command.env("NOTIFY_SOCKET", host.path("notify"));
        let running = Running::start("spillwayd", &mut command, &host.path(name))?;
        Ok((running, bpffs))
    };
    let (first, second) = (&host.fabric.backends[0].node, &host.fabric.backends[1].node);
    let (mut one, _) = start("one.log", first, &[])?;
    ensure!(host.told()? == "READY=1", "{}", one.output());
    let taken = ["--socket", "/run/spillway-receiver/receiver.sock"];
    let (mut refused, _) = start("refused.log", second, &taken)?;
    ensure!(refused.wait()?.code() == Some(1), "{}", refused.output());
    ensure!(refused.output().contains("another spillwayd listens there"), "{}", refused.output());
    let (mut two, bpffs) = start("two.log", second, &[])?;
    ensure!(host.told()? == "READY=1", "{}", two.output());
    ensure!(two.output().contains("another spillwayd listens there"), "{}", two.output());
    let mut command = second.command(&host.binaries.spillway);
    command.arg("--bpffs").arg(&bpffs).args(["reload", "--component", "receiver"]);
    let processes = [format!("process {}", one.id()), format!("process {}", two.id())];
    failed(&command.output()?, 3, &[&*processes[0], &*processes[1], "--socket"])?;
    for running in [&mut one, &mut two] {
        running.signal(Signal::SIGTERM)?;
        ensure!(running.wait()?.success(), "{}", running.output());
    }
    Ok(())
}
