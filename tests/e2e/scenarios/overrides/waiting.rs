//! `spillway backend drain --wait`.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_tests::{
    process::{PATIENCE, until},
    sandbox::Sandbox,
    traffic::Stream,
};
use spillway_proto::v1::BackendState;

use super::address;

/// It ends once the last stream has ended and its backend was silent for half a minute; and with a failure once somebody
/// ends the drain.
pub(super) fn waits(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "waited", Health::QUICK)?;
    let (quiet, busy) = (address(&fixture, "eu1")?, address(&fixture, "eu2")?);
    let client = fixture.fabric.client.clone();
    let open = |seed| Stream::open(&client, Tunnel::Ipip.endpoint(ECHO), seed);
    let streams = (0..24).map(open).collect::<Result<Vec<_>>>()?;
    let (there, others): (Vec<_>, Vec<_>) =
        streams.into_iter().partition(|stream| stream.backend() == "eu1");
    ensure!(!there.is_empty() && others.iter().any(|it| it.backend() == "eu2"));

    // At most this long; and no longer than the drain itself lasts.
    for (more, status, expected) in [
        (
            &["--wait", "2s"][..],
            1,
            format!("after 2 s, there were packets in the last 2 s for {busy}\n"),
        ),
        (
            &["--for", "20s", "--wait"],
            2,
            "the drain would end after 20 s, before --wait has seen 30 s without packets\n".into(),
        ),
    ] {
        let drain = [&["backend", "drain", &*busy, "--pool", "v4"], more].concat();
        let output = fixture.balancer.command(&drain).output()?;
        let stderr = String::from_utf8(output.stderr)?;
        ensure!(output.status.code() == Some(status), "{more:?}: {stderr}");
        ensure!(stderr.contains(&expected), "{more:?}: {stderr}");
    }

    let start = |address: &str| -> Result<_> {
        let mut command =
            fixture.balancer.command(&["backend", "drain", address, "--pool", "v4", "--wait"]);
        Ok(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    };
    let (mut waits, mut is_ended) = (start(&quiet)?, start(&busy)?);
    let is_drained = |address: &str| -> Result<bool> {
        Ok(super::status_of(&fixture, address)?.state() == BackendState::Draining)
    };
    for address in [&quiet, &busy] {
        until("it drains", PATIENCE, || Ok(is_drained(address)?.then_some(())))?;
    }
    // It prints what is left, or ends.
    let mut said = String::new();
    let mut stderr = BufReader::new(is_ended.stderr.take().context("no stderr")?);
    while !said.contains(" packets in the last 5 s\n") {
        ensure!(stderr.read_line(&mut said)? > 0, "it does not wait for open connections: {said}");
    }
    ensure!(waits.try_wait()?.is_none(), "it does not wait for open connections");
    fixture.balancer.cli(&["backend", "undrain", &busy, "--pool", "v4"])?;
    stderr.read_to_string(&mut said)?;
    let status = is_ended.wait()?;
    ensure!(status.code() == Some(1), "{said}");
    ensure!(said.contains("ended before the backends were without packets"), "{said}");

    Stream::finish_all(there)?;
    let silent = Instant::now();
    let output = waits.wait_with_output()?;
    let (out, err) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    ensure!(output.status.success(), "{err}");
    ensure!(out.ends_with(&format!("backend {quiet} has had no packet for 30 s\n")), "{out}");
    ensure!(silent.elapsed() >= Duration::from_secs(28), "after {:?}", silent.elapsed());
    ensure!(err.contains("no packets for "), "{err}");
    Stream::finish_all(others)
}
