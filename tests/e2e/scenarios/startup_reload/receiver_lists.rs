//! A receiver takes its allow-lists from its file again after SIGHUP.

use std::{collections::BTreeSet, net::IpAddr, num::NonZeroU16};

use anyhow::{Result, ensure};
use lb_maps::{AllowLists, ReceiverMaps};
use lb_tests::{
    process::{PATIENCE, until},
    sandbox::Sandbox,
    topology::Fabric,
};
use nix::sys::signal::Signal;

use crate::{host::Host, startup_reload::settings_files::hang_up};

/// With this host's own addresses and these as endpoints.
fn lists(sources: &[&str], vips: &[&str], listed: &[&str], gue_port: u16) -> Result<AllowLists> {
    let sources: Result<BTreeSet<_>, _> = sources.iter().map(|s| s.parse()).collect();
    let vips: Result<BTreeSet<_>, _> = vips.iter().map(|v| v.parse()).collect();
    let mut endpoints: BTreeSet<_> = listed.iter().map(|l| l.parse()).collect::<Result<_, _>>()?;
    endpoints.extend([IpAddr::from(Fabric::BALANCER_V4), Fabric::BALANCER_V6.into()]);
    let gue_port = NonZeroU16::new(gue_port);
    Ok(AllowLists { sources: sources?, vips: vips?, endpoints, gue_port })
}

pub(crate) fn lists_again(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "receiver")?;
    let settings = |rest: &str| format!("interface = \"eth0\"\nbpffs = {:?}\n{rest}", host.bpffs);
    let first = "allow-source = [\"10.0.0.2\", \"fd00::/64\"]\nvip = \"203.0.113.1\"\n";
    host.write("receiver.toml", &settings(first))?;
    let config = host.path("receiver.toml").display().to_string();
    let mut running = host.start(&mut host.daemon(&["receiver", "--config", &config]))?;
    ensure!(host.told()? == "READY=1");
    let allowed = || anyhow::Ok(ReceiverMaps::open(&host.bpffs)?.allowed()?);
    let was = lists(&["10.0.0.2/32", "fd00::/64"], &["203.0.113.1"], &[], 6_080)?;
    ensure!(allowed()? == was);

    let second = "allow-source = [\"10.0.0.0/24\"]\nvip = [\"203.0.113.1\", \"2001:db8:f::1\"]\n\
                  gue-port = 0\ntunnel-endpoint = \"10.9.0.1\"\n";
    host.write("receiver.toml", &settings(second))?;
    hang_up(&host, &running)?;
    let now = lists(&["10.0.0.0/24"], &["203.0.113.1", "2001:db8:f::1"], &["10.9.0.1"], 0)?;
    ensure!(allowed()? == now);

    host.write("receiver.toml", &settings("allow-source = \"10.0.0.0/33\"\nvip = []\n"))?;
    hang_up(&host, &running)?;
    ensure!(allowed()? == now, "a broken file changes nothing");
    let said =
        "line 3, column 1: allow-source: \"10.0.0.0/33\": 10.0.0.0/33: prefix length: at most 32";
    until("the log says so", PATIENCE, || Ok(running.output().contains(said).then_some(())))?;
    running.signal(Signal::SIGTERM)?;
    ensure!(running.wait()?.success(), "{}", running.output());
    Ok(())
}
