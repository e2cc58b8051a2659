//! A packet path that takes nothing from the daemon, and one that is not there any more.

use anyhow::{Result, ensure};
use lb_common::abi::names;
use lb_daemon::dataplane::{Pins, Role};

use super::watch::Watch;

/// A frozen map takes no writes from the daemon: the generation is in force, the packet path behind.
pub(super) fn refused(watch: &mut Watch<'_>) -> Result<()> {
    let farm = watch.farm;
    let pins = Pins::new(&farm.balancer.bpffs, Role::Balancer);
    let map = pins.map(names::SERVICES_V4).display().to_string();
    farm.fabric.balancer.run("bpftool", ["map", "freeze", "pinned", &map])?;
    let more = "[[service]]\nname = \"late\"\naddress = \"203.0.113.2\"\nport = 7005\n\
                protocol = \"tcp\"\npool = \"even\"\n";
    let text = farm.configuration(true) + more;
    ensure!(farm.balancer.apply(&text).is_err(), "a frozen map takes a service");
    let failures = "spillway_publish_failures_total";
    watch.until("the kernel refuses a write", |now| {
        now.value("spillway_packet_path_behind", &[]) == Some(1.0)
            && now.value(failures, &[]) >= Some(2.0)
    })?;
    ensure!(watch.before.value("spillway_generation", &[]) == Some(3.0), "it is in force");
    Ok(())
}

pub(super) fn taken_off(watch: &mut Watch<'_>) -> Result<()> {
    let pins = Pins::new(&watch.farm.balancer.bpffs, Role::Balancer);
    let link = pins.link("eth0").display().to_string();
    watch.farm.fabric.balancer.run("bpftool", ["link", "detach", "pinned", &link])?;
    let attached = [("role", "balancer"), ("interface", "eth0")];
    watch.until("the program is taken off", |now| {
        now.value("spillway_interface_attached", &attached) == Some(0.0)
    })
}
