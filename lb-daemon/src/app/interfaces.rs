//! What has to be known of the interfaces before a program goes on them, and what follows from them.

use std::{
    fs,
    net::IpAddr,
    path::Path,
    time::{Duration, Instant},
};

use nix::net::if_::if_nametoindex;
use tokio::time::sleep;

use super::Failure;
use crate::watchdog::Manager;
use lb_base::error_chain;
use lb_maps::{Hook, Options, Pins, XdpMode};
use lb_model::plan::Sources;
use lb_net::{self, Interface};

/// How long a host may be up for interfaces to be on their way: those of slow drivers, bonds and VLANs come
/// after the units that order themselves after the network.
const BOOT: Duration = Duration::from_secs(120);

/// Time between two looks.
const LOOK: Duration = Duration::from_millis(250);

/// How much longer the service manager is to wait for the start, said again at each look.
const LONGER: Duration = Duration::from_secs(30);

/// Most interfaces that an error names.
const NAMED: usize = 12;

/// Interfaces that the settings name.
#[derive(Clone, Debug)]
pub(super) struct Awaited<'a> {
    /// The setting that names each, and its name.
    pub(super) names: Vec<(String, &'a str)>,
    /// How long they are waited for; `None`: as long as the host boots.
    pub(super) patience: Option<Duration>,
    /// The settings file.
    pub(super) file: Option<&'a Path>,
}

/// Waits until each interface is there.
///
/// # Errors
/// One does not come. That is a fault of the settings, unless the interface was there before, as its pin
/// says: then it may come back, and the start may be tried again.
pub(super) async fn wait_for(
    awaited: Awaited<'_>,
    pins: &Pins,
    manager: &Manager,
) -> Result<(), Failure> {
    let begun = Instant::now();
    let patience = awaited.patience.unwrap_or_else(|| BOOT.saturating_sub(uptime()));
    let mut said = None;
    loop {
        // By another of its names (altname) an interface is there as well.
        let missing = |(_, name): &&(String, &str)| if_nametoindex(*name).is_err();
        let Some((setting, name)) = awaited.names.iter().find(missing) else { return Ok(()) };
        let there = those_there(all().await?.iter().map(|known| known.name.as_str()));
        let was_there = pins.has(name);
        if was_there || begun.elapsed() >= patience {
            let subject = match setting.as_str() {
                "interface" => (*name).to_owned(),
                setting => format!("{setting}: {name}"),
            };
            let what = if was_there { "the interface is gone" } else { "no such interface" };
            let flag = setting.split(' ').next().unwrap_or_default();
            let failure = Failure::new(format!("{subject}: {what}: {there}")).hint(
                match (was_there, awaited.file) {
                    (true, _) => "the daemon can start when the interface is back".to_owned(),
                    (_, Some(file)) => {
                        format!("name one of them as `{flag}` in {}", file.display())
                    }
                    (_, None) => format!("name one of them with --{flag}"),
                },
            );
            return Err(if was_there { failure } else { failure.of_settings() });
        }
        if said != Some(*name) {
            said = Some(*name);
            let left = patience.saturating_sub(begun.elapsed()).as_secs();
            tracing::warn!(
                interface = name,
                left,
                "interface {name}: is not there yet, and the daemon waits for it, {left} s at most: {there}"
            );
            manager.status(&format!("waiting for interface {name}"));
        }
        manager.extend_start(LONGER);
        sleep(LOOK).await;
    }
}

/// How long the host has been up. Unknown: as if for ever.
fn uptime() -> Duration {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = text.split(' ').next().and_then(|seconds| seconds.parse().ok());
    seconds.and_then(|it| Duration::try_from_secs_f64(it).ok()).unwrap_or(Duration::MAX)
}

/// `this host has eth0, eth1 and lo`
fn those_there<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<_> = names.map(str::to_owned).collect();
    names.sort();
    let more = names.len().saturating_sub(NAMED);
    if more > 0 {
        names.truncate(NAMED);
        names.push(format!("{more} more"));
    }
    match names.split_last() {
        None => "this host has none".into(),
        Some((only, [])) => format!("this host has {only}"),
        Some((last, before)) => format!("this host has {} and {last}", before.join(", ")),
    }
}

/// Refuses to run in the driver of what has none: a VLAN's interface.
///
/// # Errors
/// One of them is a VLAN of another interface, or netlink fails. What is not there is for others to refuse.
pub(super) async fn refuse_vlans(options: &Options) -> Result<(), Failure> {
    if options.hook != Hook::Xdp(XdpMode::Native) {
        return Ok(());
    }
    let all = all().await?;
    for name in &options.interfaces {
        let vlan = all.iter().find(|known| known.name == *name).and_then(|known| known.vlan);
        let beneath = vlan.and_then(|vlan| all.iter().find(|known| known.index == vlan.beneath));
        if let Some(Interface { name: beneath, .. }) = beneath {
            let sentence = format!(
                "{name}: a VLAN of {beneath} has no native XDP: give {beneath}, which sees its frames"
            );
            return Err(Failure::new(sentence)
                .hint(format!("--interface {beneath}; or --xdp-mode generic, slower"))
                .of_settings());
        }
    }
    Ok(())
}

/// The sources given, or else those of the interfaces, or else those of their VLANs.
pub(super) async fn sources(
    mut sources: Sources,
    interfaces: &[String],
) -> Result<Sources, Failure> {
    let all = all().await?;
    let is_named = |known: &&Interface| interfaces.contains(&known.name);
    let named: Vec<_> =
        interfaces.iter().filter_map(|name| all.iter().find(|i| i.name == *name)).collect();
    let is_above = |known: &&Interface| {
        known.vlan.is_some_and(|vlan| named.iter().any(|under| under.index == vlan.beneath))
    };
    for interface in &named {
        let found = of(interface).await?;
        sources.v4 = sources.v4.or(found.v4);
        sources.v6 = sources.v6.or(found.v6);
    }
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for interface in all.iter().filter(is_above).filter(|known| !is_named(known)) {
        let found = of(interface).await?;
        v4.extend(found.v4);
        v6.extend(found.v6);
    }
    sources.v4 = sources.v4.or_else(|| only(&v4));
    sources.v6 = sources.v6.or_else(|| only(&v6));
    let spell = |address: Option<IpAddr>| address.map_or("none".into(), |a| a.to_string());
    let (v4, v6) = (spell(sources.v4.map(IpAddr::V4)), spell(sources.v6.map(IpAddr::V6)));
    tracing::info!(v4, v6, "source addresses of tunnels: IPv4 {v4}, IPv6 {v6}");
    Ok(sources)
}

/// Of the addresses of several VLANs nobody knows which backends are told of.
fn only<T: Copy + std::fmt::Debug>(addresses: &[T]) -> Option<T> {
    match addresses {
        [] => None,
        [address] => Some(*address),
        several => {
            tracing::warn!(addresses = ?several, "source address of tunnels: VLANs have several, set `source`");
            None
        }
    }
}

async fn of(interface: &Interface) -> Result<Sources, Failure> {
    let found = lb_net::source_addresses(interface.index).await;
    found.map_err(|error| Failure::new(error_chain::message(&error)))
}

async fn all() -> Result<Vec<Interface>, Failure> {
    lb_net::all_interfaces().await.map_err(|error| Failure::new(error_chain::message(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interfaces_of_a_host_are_named_as_long_as_they_are_few() {
        let few = |names: &[&str]| those_there(names.iter().copied());
        assert_eq!(few(&[]), "this host has none");
        assert_eq!(few(&["lo"]), "this host has lo");
        assert_eq!(few(&["lo", "eth1", "eth0"]), "this host has eth0, eth1 and lo");
        let many: Vec<_> = (0..40).map(|number| format!("veth{number:02}")).collect();
        let said = those_there(many.iter().map(String::as_str));
        assert!(
            said.starts_with("this host has veth00, ") && said.ends_with(", veth11 and 28 more")
        );
    }

    #[test]
    fn the_host_has_been_up_for_a_while() {
        assert!(uptime() > Duration::ZERO && uptime() < Duration::MAX);
    }
}
