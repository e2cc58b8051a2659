//! Queries of the maps answer the same over TLS, by the socket alone, and from another network namespace, as on the
//! balancer's host.

use std::process::{Command, Output};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, HTTP, Health, Tunnel, configuration};
use lb_tests::{
    daemon::Binaries,
    process::{PATIENCE, until},
    random::Random,
    sandbox::Sandbox,
    topology::{Fabric, Node},
    traffic::name_over_http,
};

use crate::api_access::tls;

/// Verbs that read the maps, with what they ask for; each in both forms.
fn questions() -> Vec<Vec<String>> {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (vip, dns) = (Tunnel::Ipip.endpoint(HTTP), Tunnel::Ipip.endpoint(ECHO));
    let vip6 = Tunnel::Ip6Ip6.endpoint(HTTP);
    let mut questions: Vec<_> =
        ["stats", "table", "table v4", "regions --totals"].map(words).into();
    questions.extend([
        words(&format!("explain 198.51.100.7:40000 {vip}")),
        words(&format!("explain 198.51.100.7:40000 {vip} --open")),
        words(&format!("explain 198.51.100.7:40000 {dns} --protocol udp")),
        words(&format!("explain [2001:db8::7]:40000 {vip6}")),
        words("explain 198.51.100.7:40000 203.0.113.1:81"),
    ]);
    let json =
        questions.iter().map(|one| ["-o", "json"].map(String::from).into_iter().chain(one.clone()));
    let json: Vec<_> = json.map(Iterator::collect).collect();
    questions.into_iter().chain(json).collect()
}

/// The configuration of a fixture without health checks, whose packets would be counted between two looks.
fn rest(fixture: &Fixture) -> Result<()> {
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    let lines = text.lines().filter(|line| !line.starts_with("health_checks = "));
    fixture.balancer.apply(&lines.collect::<Vec<_>>().join("\n"))?;
    fixture.wait_up(&[])
}

/// An answer whose numbers are left out, with the blanks before them. Of other blanks one stays, because the widest number
/// of a column decides how many there are.
fn without_numbers(answer: &str) -> String {
    let mut text = String::new();
    for letter in answer.chars() {
        if !letter.is_ascii_digit() {
            let is_more = letter == ' ' && text.ends_with(' ');
            text.extend((!is_more).then_some(letter));
        } else if !text.ends_with('#') {
            text.truncate(text.trim_end_matches(' ').len());
            text.push('#');
        }
    }
    text
}

/// Both commands say the same, byte for byte. Some counters go on meanwhile, so it is asked until the host
/// itself says the same before and after.
fn same(
    question: &[String],
    here: impl Fn() -> Command,
    there: impl Fn() -> Command,
) -> Result<()> {
    let run = |mut command: Command| -> Result<String> {
        let output = command.args(question).output().context("spillway")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success() && said.is_empty(), "{question:?}: {output:?}");
        Ok(String::from_utf8(output.stdout)?)
    };
    until("two equal answers of the host itself", PATIENCE, || {
        let (before, asked, after) = (run(here())?, run(there())?, run(here())?);
        if before != after {
            return Ok(None);
        }
        ensure!(asked == before, "{question:?}:\n{asked}\nthe host itself says:\n{before}");
        Ok(Some(()))
    })
}

fn ended(output: &Output, code: i32, error: &str) -> Result<()> {
    let said = String::from_utf8_lossy(&output.stderr);
    let is_said = said.starts_with("error: ") && said.contains(error) && output.stdout.is_empty();
    ensure!(output.status.code() == Some(code) && is_said, "{output:?}");
    Ok(())
}

/// A viewer with a certificate, on a host that has no pins, sees what root sees on the balancer.
pub(crate) fn over_tls(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "elsewhere", Health::QUICK)?;
    // Both lives have to be through with the tracepoints, lest more of them are there from one look to the next.
    fixture.balancer.traces_drops()?;
    let server = Fabric::BALANCER_V4;
    let spillway = tls::over_tls(&mut fixture, &server.to_string(), "viewer")?;
    fixture.balancer.traces_drops()?;
    rest(&fixture)?;
    let vip = Tunnel::Ipip.endpoint(HTTP);
    name_over_http(&fixture.fabric.client, Random::new(5).client(vip.ip()), vip)?;

    let there = || spillway(server.into());
    for question in questions() {
        if !question.contains(&"stats".into()) {
            same(&question, || fixture.balancer.command(&[]), there)?;
            continue;
        }
        // The question itself comes in by the interface, and is counted: all but the counts is equal.
        let run = |mut command: Command| -> Result<String> {
            let output = command.args(&question).output()?;
            ensure!(output.status.success() && output.stderr.is_empty(), "{output:?}");
            Ok(without_numbers(&String::from_utf8(output.stdout)?))
        };
        let (here, asked) = (run(fixture.balancer.command(&[]))?, run(there())?);
        ensure!(here == asked, "{asked}\nthe host itself says:\n{here}");
    }
    // The whole table was counted.
    let table = fixture.balancer.client()?.table("v4")?;
    ensure!(table.pools[0].groups[0].slots == 1_009, "{table:?}");

    let nowhere = there().args(["table", "nowhere"]).output()?;
    ended(&nowhere, 5, "pool \"nowhere\" does not exist\nhint: the pools are: v4, v6\n")?;
    let nowhere = there().args(["regions", "nowhere"]).output()?;
    ended(&nowhere, 5, "pool \"nowhere\" does not exist")?;
    let mixed = there().args(["explain", "[2001:db8::7]:1", &vip.to_string()]).output()?;
    ended(&mixed, 2, "different IP versions")?;
    fixture.balancer.kill()?;
    ended(&there().arg("stats").output()?, 3, "spillwayd at https://")
}

fn by_its_socket(fixture: &Fixture, node: &Node, bpffs: &std::path::Path) -> Result<Command> {
    let mut command = node.command(&Binaries::find()?.spillway);
    command.arg("--socket").arg(&fixture.balancer.socket).arg("--bpffs").arg(bpffs);
    Ok(command)
}

/// The daemon behind a socket knows the names, wherever its state directory is; once it is dead, the maps are
/// read and say what they can.
pub(crate) fn by_socket(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "socket", Health::QUICK)?;
    rest(&fixture)?;
    let at = |node: &Node, bpffs: &std::path::Path| {
        by_its_socket(&fixture, node, bpffs).unwrap_or_else(|_| Command::new("false"))
    };
    for question in questions() {
        same(
            &question,
            || fixture.balancer.command(&[]),
            || at(&fixture.fabric.balancer, "/nowhere".as_ref()),
        )?;
    }
    // The socket is of the daemon's namespace from anywhere on the host.
    let vip = Tunnel::Ipip.endpoint(HTTP).to_string();
    let explain = ["explain", "198.51.100.7:40000", &vip].map(String::from);
    same(
        &explain,
        || fixture.balancer.command(&[]),
        || at(&fixture.fabric.client, "/nowhere".as_ref()),
    )?;

    fixture.balancer.kill()?;
    let output = by_its_socket(&fixture, &fixture.fabric.balancer, &fixture.balancer.bpffs)?
        .args(&explain)
        .output()?;
    let (out, said) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    ensure!(output.status.success() && out.contains("verdict   forwarded\n"), "{out}{said}");
    ensure!(out.contains("region #"), "its names are in another directory: {out}");
    let socket = fixture.balancer.socket.display();
    let warned = format!(
        "warning: spillwayd at {socket}: nothing listens on this socket; reading the pinned maps instead\n"
    );
    ensure!(said.starts_with(&warned), "{said}");
    ensure!(
        said.contains("showing numbers instead of names\nhint: name the daemon's state"),
        "{said}"
    );
    Ok(())
}

/// Indices of interfaces mean others in another namespace, which is said instead of naming those.
pub(crate) fn another_namespace(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "namespace", Health::QUICK)?;
    let vip = Tunnel::Ipip.endpoint(HTTP).to_string();
    let run = |fixture: &Fixture, node: &Node, arguments: &[&str]| -> Result<(String, String)> {
        let mut command = node.command(&Binaries::find()?.spillway);
        command.arg("--bpffs").arg(&fixture.balancer.bpffs);
        command.arg("--state-dir").arg(&fixture.balancer.state).args(arguments);
        let output = command.output()?;
        ensure!(output.status.success(), "{output:?}");
        Ok((String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?))
    };
    for is_dead in [false, true] {
        if is_dead {
            fixture.balancer.kill()?;
        }
        for arguments in [&["explain", "198.51.100.7:40000", &vip][..], &["table", "v4"]] {
            let (out, said) = run(&fixture, &fixture.fabric.balancer, arguments)?;
            ensure!(out.contains(" on eth0") && said.is_empty(), "{out}{said}");
            let (out, said) = run(&fixture, &fixture.fabric.client, arguments)?;
            ensure!(out.contains(" on interface ") && !out.contains("eth0"), "{out}");
            let warned = "warning: the daemon runs in another network namespace; interfaces are shown by \
                          number\nhint: ";
            ensure!(said.starts_with(warned), "{said}");
        }
    }
    Ok(())
}
