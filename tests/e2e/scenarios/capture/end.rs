//! A capture ends with its caller, its count, its reader or the daemon; none goes on unattended.

use std::net::{SocketAddr, UdpSocket};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_tests::process::{PATIENCE, eventually, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;
use lb_tests::traffic::name_over_udp;
use nix::sys::signal::Signal;

use crate::capture::command::{RunningCapture, word};

const LONG: [&str; 2] = ["--duration", "1h"];

/// What such a capture comes to.
const ONE: &str = "1 matched, 1 written, 0 left out, 0 lost ";

/// A capture that has one packet and goes on.
fn long(fixture: &Fixture, name: &str) -> Result<RunningCapture> {
    let vip = Tunnel::Ipip.vip().to_string();
    let mut running =
        RunningCapture::start(fixture, name, &[&LONG[..], &["--vip", &vip]].concat())?;
    ask(fixture, 42_100)?;
    running.has_some()?;
    Ok(running)
}

/// What the daemon noted.
fn log(fixture: &Fixture) -> Result<String> {
    let file = fixture.fabric.balancer.directory().join("spillwayd.log");
    std::fs::read_to_string(file).context("the daemon's log")
}

fn ask(fixture: &Fixture, port: u16) -> Result<String> {
    let from = SocketAddr::new(Fabric::CLIENT_V4.into(), port);
    name_over_udp(&fixture.fabric.client, from, Tunnel::Ipip.endpoint(ECHO))
}

/// One datagram is taken down, so that captures work.
fn works(fixture: &Fixture, name: &str) -> Result<()> {
    let vip = Tunnel::Ipip.vip().to_string();
    let running = RunningCapture::start(fixture, name, &["--vip", &vip, "--count", "1"])?;
    ask(fixture, 42_000)?;
    let (frames, _) = running.end()?;
    ensure!(frames.count("udp")? == 2, "a packet as it came, and as it left");
    eventually_off(fixture)
}

/// Nobody captures, and whoever wants to may.
fn eventually_off(fixture: &Fixture) -> Result<()> {
    until("nobody captures", PATIENCE, || Ok((word(fixture)? == 0).then_some(())))?;
    until("it is the next one's turn", PATIENCE, || {
        let arguments = ["capture", "-w", "-", "--duration", "1ms"];
        Ok(fixture.balancer.try_cli(&arguments, None)?.status.success().then_some(()))
    })
}

pub(crate) fn with_its_asker(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "asker", Health::QUICK)?;
    ensure!(word(&fixture)? == 0, "nobody captures");
    for (number, signal) in
        [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGINT].into_iter().enumerate()
    {
        let mut running = long(&fixture, &format!("ends{number}"))?;
        ensure!(word(&fixture)? != 0, "it is on");
        // One at a time, which the other is told.
        let other = fixture.balancer.try_cli(&["capture", "-w", "/dev/null"], None)?;
        let said = String::from_utf8_lossy(&other.stderr).into_owned();
        ensure!(other.status.code() == Some(7), "{}: {said}", other.status);
        let expected = "error: another capture is running, started by uid 0 (root)\n\
             hint: only one capture can run at a time: wait until it ends, or stop it where it was started\n";
        ensure!(said == expected, "{said}");
        running.running.signal(signal)?;
        let status = running.running.wait()?;
        ensure!(status.success() == (signal == Signal::SIGINT), "{signal}: {status}");
        eventually_off(&fixture).with_context(|| signal.to_string())?;
        let ended = format!("capture ended: the caller disconnected; {ONE}");
        let noted = log(&fixture)?;
        ensure!(noted.matches(&ended).count() == number + 1, "{signal}: {noted}");
    }
    // A refusal takes nobody's turn, nor does one who is refused for another reason.
    for (arguments, expected) in REFUSED {
        let wrong = fixture.balancer.try_cli(arguments, None)?;
        let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
        ensure!(said == expected && wrong.stdout.is_empty(), "{said}");
        ensure!(wrong.status.code() == Some(2), "{}", wrong.status);
    }
    works(&fixture, "works")
}

/// What no packet can be, and what is said of it.
const REFUSED: [(&[&str], &str); 3] = [
    (
        &["capture", "-w", "-", "--client", "10.0.0.0/33"],
        "error: client: \"10.0.0.0/33\" is not a prefix; its length is 0 to 32\n\
         hint: `spillway capture --help` lists the valid values\n",
    ),
    (
        &["drops", "--verdict", "transmitted"],
        "error: verdicts: transmitted drops nothing, but only dropped packets were requested; \
         `spillway capture --verdict transmitted` without --dropped captures such packets\n\
         hint: `spillway drops --help` lists the valid values\n",
    ),
    (
        &["capture", "-w", "-", "--verdict", "decapsulated"],
        "error: verdicts: decapsulated is a verdict of receivers, which this balancer cannot capture; on the \
         receiver's host `spillway stats` counts such packets, and tcpdump shows them\n\
         hint: `spillway capture --help` lists the valid values\n",
    ),
];

/// A datagram or more; the socket stays, so that nobody is told that it is gone.
fn send(fixture: &Fixture, port: u16, number: usize) -> Result<UdpSocket> {
    fixture.fabric.client.enter(|| {
        let socket = UdpSocket::bind((Fabric::CLIENT_V4, port))?;
        for _ in 0..number {
            socket.send_to(b"?", Tunnel::Ipip.endpoint(ECHO))?;
        }
        Ok(socket)
    })?
}

/// What came between the last packet that was wanted and the end is told of, too.
pub(crate) fn with_its_count(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "count", Health::QUICK)?;
    let vip = Tunnel::Ipip.vip().to_string();
    let mut names = 0..;
    until("some came beyond the count", PATIENCE, || {
        let name = format!("count{}", names.next().context("a name")?);
        let running = RunningCapture::start(&fixture, &name, &["--vip", &vip, "--count", "1"])?;
        let _socket = send(&fixture, 43_900, 2_000)?;
        let (frames, said) = running.end()?;
        let numbers: Vec<u64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
        ensure!(frames.count("udp")? == 2 && numbers[0] == 1, "{said}");
        let words = format!("; {} matched, {} lost", numbers[1], numbers[2]);
        let (_, beyond) = said.split_once(&words).with_context(|| said.clone())?;
        let Some(rest) = numbers.get(3) else {
            ensure!(numbers[1] == 1 + numbers[2] && beyond == "\n", "{said}");
            return Ok(None);
        };
        ensure!(numbers[1] == 1 + numbers[2] + rest, "{said}");
        ensure!(beyond == format!(", {rest} over the count\n"), "{said}");
        Ok(Some(()))
    })
}

/// Who has read enough closes the pipe: that is no error.
pub(crate) fn with_its_reader(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "reader", Health::QUICK)?;
    let script = "{ spillway capture -w - --duration 1h 2>said; echo $? >code; } | head -c 8 >head";
    let mut piped = fixture.balancer.shell(script).spawn().context("start a shell")?;
    let mut port = 43_000;
    until("the capture ends", PATIENCE, || {
        // It finds the pipe closed when it has something to write.
        port += 1;
        ask(&fixture, port)?;
        Ok(piped.try_wait()?.map(drop))
    })?;
    let kept = |name: &str| std::fs::read_to_string(fixture.fabric.balancer.directory().join(name));
    let (code, said) = (kept("code")?, kept("said")?);
    ensure!(code.trim() == "0" && !said.contains("error"), "{code}{said}");
    eventually_off(&fixture)
}

pub(crate) fn with_the_daemon(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "daemon", Health::QUICK)?;
    // Told to stop it turns the capture off, and says why it ends.
    let mut running = long(&fixture, "stopped")?;
    fixture.balancer.stop()?;
    let ended = format!("capture ended: aborted: the daemon is stopping; {ONE}");
    ensure!(log(&fixture)?.contains(&ended), "{}", log(&fixture)?);
    ensure!(word(&fixture)? == 0, "nobody captures");
    let status = running.running.wait()?;
    let said = running.running.output();
    ensure!(
        status.code() == Some(3) && said.contains("the daemon is stopping"),
        "{status}: {said}"
    );
    fixture.balancer.start()?;

    // Killed it cannot: the next daemon does.
    let _taking = RunningCapture::start(&fixture, "restarted", &LONG)?;
    fixture.balancer.kill()?;
    ensure!(word(&fixture)? != 0, "there was nobody to turn it off");
    fixture.balancer.start()?;
    ensure!(word(&fixture)? == 0, "a new daemon leaves none on");
    fixture.wait_up(&[])?;
    works(&fixture, "again")?;

    // And without another daemon the packet path itself, a few seconds later.
    let _taking = RunningCapture::start(&fixture, "killed", &LONG)?;
    fixture.balancer.kill()?;
    let to = Tunnel::Ipip.endpoint(ECHO);
    let socket = fixture.fabric.client.enter(|| UdpSocket::bind((Fabric::CLIENT_V4, 42_001)))??;
    eventually("the packet path ends it", PATIENCE, || {
        socket.send_to(b"?", to).is_ok() && word(&fixture).is_ok_and(|word| word == 0)
    })?;
    ask(&fixture, 42_002).map(drop)
}
