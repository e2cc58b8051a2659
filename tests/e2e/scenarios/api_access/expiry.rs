//! A certificate that expires soon is a condition and in the metrics, until its file has a new one.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};
use lb_tests::{
    daemon::{
        HTTP_ADDRESS,
        printed::{self, Condition, Status},
        scrape,
    },
    process::{PATIENCE, until},
    sandbox::Sandbox,
    topology::Fabric,
};
use nix::sys::signal::Signal;

use super::tls::{authority, certificate_with, cli};
use crate::host::Host;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Seconds of the Unix epoch, without their fraction, which certificates do not have.
fn seconds(time: SystemTime) -> Result<f64> {
    Ok(time.duration_since(UNIX_EPOCH)?.as_secs() as f64)
}

pub(super) fn until_it_is_renewed(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "expiry")?;
    let files = host.fabric.balancer.directory();
    let ours = authority(files, "ours")?;
    let now = SystemTime::now();
    let issue = |file: &str, from: SystemTime, to: SystemTime| {
        certificate_with(files, &ours, file, &format!("{file}.example"), |params| {
            (params.not_before, params.not_after) = (from.into(), to.into());
        })
    };
    let (from, soon, later) = (now - 80 * DAY, now + 3 * DAY, now + 90 * DAY);
    issue("eye", from, later)?;
    issue("daemon", from, soon)?;
    let settings = host.settings(&format!(
        "http = \"{HTTP_ADDRESS}\"\nlisten = \"{}:7443\"\ntls-cert = {:?}\ntls-key = {:?}\ntls-ca = {:?}\n\
         [tls-client]\n\"eye.example\" = \"viewer\"\n",
        Fabric::BALANCER_V4,
        host.path("daemon.cert"),
        host.path("daemon.key"),
        host.path("ours.ca"),
    ));
    host.write("settings.toml", &settings)?;
    let config = host.path("settings.toml").display().to_string();
    let mut running = host.start(&mut host.daemon(&["balancer", "--config", &config]))?;
    ensure!(host.told()? == "READY=1", "{}", running.output());

    let conditions = || -> Result<Vec<Condition>> {
        let status = cli(&host, "eye", &["--output", "json", "status"])?;
        ensure!(status.status.success(), "{status:?}");
        Ok(printed::read::<Status>(&status.stdout)?.conditions)
    };
    let shown = |certificate: &str| -> Result<[Option<f64>; 2]> {
        let (now, labels) = (scrape(&host.fabric.balancer)?, [("certificate", certificate)]);
        let times = ["not_before", "expiration"].map(|time| {
            let name = format!("spillway_tls_certificate_{time}_timestamp_seconds");
            now.value(&name, &labels)
        });
        Ok(times)
    };
    let begun = conditions()?;
    ensure!(begun.len() == 1 && begun[0].subject == "TLS certificate", "{begun:?}");
    let cause = &begun[0].text;
    let file = host.path("daemon.cert").display().to_string();
    ensure!(cause.starts_with(&format!("{file}: expires at 2")), "{cause}");
    let expected = [Some(seconds(from)?), Some(seconds(soon)?)];
    ensure!(shown("server")? == expected, "{:?}, not {expected:?}", shown("server")?);
    // That of the authority is of the library's default, centuries away.
    ensure!(shown("authority")?[1] > Some(seconds(now + 100 * 365 * DAY)?));

    issue("daemon", now - DAY, later)?;
    let expected = [Some(seconds(now - DAY)?), Some(seconds(later)?)];
    let renewed = || Ok((shown("server")? == expected && conditions()?.is_empty()).then_some(()));
    until("the renewed certificate", PATIENCE, renewed)?;
    running.signal(Signal::SIGTERM)?;
    ensure!(running.wait()?.success(), "{}", running.output());
    Ok(())
}
