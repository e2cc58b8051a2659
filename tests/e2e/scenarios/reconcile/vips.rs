//! The words of VIPs are those that follow from the configuration in force and the host, whichever of the two changes.

use std::net::IpAddr;

use anyhow::{Result, ensure};
use lb_base::Prefix;
use lb_common::abi::service::{VipKey, VipWord};
use lb_model::{Unserved, unserved::LocalHost};
use lb_publish::reconcile::ApplySummary;
use lb_tests::sandbox::Sandbox;

use crate::reconcile::{bulk::many, fake_daemon::FakeDaemon, model, random::name};

/// The address of all services of [`many`].
const VIP: [u8; 4] = [192, 0, 2, 1];

/// Whether packets for the VIP that no service takes are dropped; `None`: it is no VIP.
fn drops(daemon: &FakeDaemon) -> Result<Option<bool>> {
    model::check(daemon)?;
    let word = daemon.read()?.vip(&VipKey::of(VIP.into()))?;
    Ok(word.map(VipWord::drops_unserved))
}

fn set(daemon: &mut FakeDaemon, prefix: &str, unserved: Unserved) -> Result<ApplySummary> {
    let prefix: Prefix = prefix.parse()?;
    daemon.configuration.vips.insert(prefix, unserved);
    daemon.apply()
}

pub(crate) fn words_follow(sandbox: &Sandbox) -> Result<()> {
    let mut daemon = FakeDaemon::new(sandbox, "vips")?;
    daemon.configuration = many(2, 3, 7, 0);
    daemon.apply()?;
    ensure!(drops(&daemon)? == Some(false), "nothing is known of the host");
    let one_word = ApplySummary { vips: 1, ..ApplySummary::default() };

    let host = LocalHost { addresses: [].into(), forwards_v4: false, forwards_v6: false };
    daemon.local_host = host.clone();
    daemon.follow_host()?;
    ensure!(drops(&daemon)? == Some(true), "the host has nothing to do with it");
    ensure!(daemon.apply()? == ApplySummary::default(), "the word was right");

    ensure!(set(&mut daemon, "192.0.2.0/24", Unserved::Pass)? == one_word);
    ensure!(drops(&daemon)? == Some(false));
    ensure!(set(&mut daemon, "192.0.2.1/32", Unserved::Drop)? == one_word);
    ensure!(drops(&daemon)? == Some(true), "the longest prefix counts");
    daemon.local_host.forwards_v4 = true;
    daemon.follow_host()?;
    ensure!(drops(&daemon)? == Some(true), "the configuration says so");
    daemon.configuration.vips.clear();
    ensure!(daemon.apply()? == one_word);
    ensure!(drops(&daemon)? == Some(false), "the host forwards");
    daemon.local_host = LocalHost { addresses: [IpAddr::from(VIP)].into(), ..host.clone() };
    daemon.follow_host()?;
    ensure!(drops(&daemon)? == Some(false), "it is an address of the host");

    // The host changes while the daemon is down.
    daemon.local_host = host;
    let restarted = daemon.restart();
    ensure!(restarted.is_err_and(|error| format!("{error:#}").contains("vips: 1")));
    ensure!(drops(&daemon)? == Some(true));
    daemon.restart()?;
    ensure!(drops(&daemon)? == Some(true), "a restart finds the words that it wrote");

    let service = daemon.configuration.services.remove(&name("service0"));
    let one = service.clone().map(|service| service.address);
    ensure!(one == Some(VIP.into()));
    daemon.apply()?;
    ensure!(drops(&daemon)? == Some(true), "another service has the VIP");
    let services = std::mem::take(&mut daemon.configuration.services);
    daemon.apply()?;
    ensure!(drops(&daemon)?.is_none(), "no service has it");
    daemon.local_host.forwards_v4 = true;
    daemon.follow_host()?;
    ensure!(drops(&daemon)?.is_none(), "a change of the host brings back no VIP");
    daemon.configuration.services = services;
    daemon.apply()?;
    ensure!(drops(&daemon)? == Some(false));
    Ok(())
}
