//! Interfaces: waiting for those that the settings name, and their VLANs.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::Path,
    str::FromStr,
    time::{Duration, Instant},
};

use lb_common::wire::vlan::MAX_ID;
use tokio::time::sleep;

use super::Failure;
use crate::watchdog::ServiceManager;
use lb_base::error_chain;
use lb_maps::{Hook, Options, Pins, XdpMode, links};
use lb_net::{self, Interface};

/// How long after the boot interfaces may still appear: those of slow drivers, bonds and VLANs come after the units
/// that are ordered after the network.
const BOOT: Duration = Duration::from_secs(120);

const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// By how much each poll extends the service manager's start timeout.
const START_EXTENSION: Duration = Duration::from_secs(30);

/// Most interfaces that a message lists.
const MAX_LISTED: usize = 12;

/// Interfaces that must exist before the daemon starts.
#[derive(Clone, Debug)]
pub(super) struct NamedInterfaces<'a> {
    /// The setting that names each, and one of its names.
    pub(super) names: Vec<(String, &'a str)>,
    /// How long to wait for them; `None`: until [`BOOT`] is over.
    pub(super) timeout: Option<Duration>,
    /// The settings file.
    pub(super) file: Option<&'a Path>,
}

/// Waits until all named interfaces exist, and returns the kernel's own name of each, by the name that was given: the
/// other names (`altname`) are known to netlink only.
///
/// # Errors
/// One does not appear. The settings are the cause, unless a pin shows that an interface existed before: then it may
/// come back, and another start may succeed.
pub(super) async fn wait_for(
    named: NamedInterfaces<'_>,
    pins: &Pins,
    manager: &ServiceManager,
) -> Result<OwnNames, Failure> {
    let begun = Instant::now();
    let timeout = named.timeout.unwrap_or_else(|| BOOT.saturating_sub(uptime()));
    let mut reported = None;
    loop {
        let all = all_interfaces().await?;
        let mut own = OwnNames::default();
        own.0.extend(named.names.iter().filter_map(|(_, name)| {
            Some(((*name).to_owned(), named_interface(&all, name)?.name.clone()))
        }));
        let missing = |(_, name): &&(String, &str)| !own.0.contains_key(*name);
        let Some((setting, name)) = named.names.iter().find(missing) else { return Ok(own) };
        let existing = list_interfaces(all.iter().map(|known| known.name.as_str()));
        // Pins have the kernel's names. Which other names an interface had is not known once it is gone.
        let was_there = links(pins).unwrap_or_default().iter().any(|it| it.index.is_none());
        if was_there || begun.elapsed() >= timeout {
            let subject = match setting.as_str() {
                "interface" => (*name).to_owned(),
                setting => format!("{setting}: {name}"),
            };
            let what = if was_there { "the interface is gone" } else { "no such interface" };
            let flag = setting.split(' ').next().unwrap_or_default();
            let failure = Failure::new(format!("{subject}: {what}: {existing}")).hint(
                match (was_there, named.file) {
                    (true, _) => "the daemon can start when the interface is back".to_owned(),
                    (_, Some(file)) => {
                        format!("name one of them as `{flag}` in {}", file.display())
                    }
                    (_, None) => format!("name one of them with --{flag}"),
                },
            );
            return Err(if was_there { failure } else { failure.caused_by_settings() });
        }
        if reported != Some(*name) {
            reported = Some(*name);
            let left = timeout.saturating_sub(begun.elapsed()).as_secs();
            tracing::warn!(
                interface = name,
                left,
                "interface {name}: does not exist yet; waiting for it up to {left} s: {existing}"
            );
            manager.status(&format!("waiting for interface {name}"));
        }
        manager.extend_start(START_EXTENSION);
        sleep(POLL_INTERVAL).await;
    }
}

/// The interface of a name: its own comes before the other names of others.
pub(super) fn named_interface<'a>(all: &'a [Interface], name: &str) -> Option<&'a Interface> {
    let own = all.iter().find(|known| known.name == name);
    own.or_else(|| all.iter().find(|known| known.is_called(name)))
}

/// Names of interfaces as the settings have them, with the kernel's own name of each.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnNames(BTreeMap<String, String>);

impl OwnNames {
    /// The interfaces of the settings, each once: as the settings name them, and by the kernel's names.
    pub(super) fn of(&self, interfaces: &[String]) -> (Vec<String>, Vec<String>) {
        let (mut as_given, mut names) = (Vec::new(), Vec::new());
        for given in interfaces {
            let own = self.0.get(given).unwrap_or(given);
            if !names.contains(own) {
                names.push(own.clone());
                as_given.push(given.clone());
            }
        }
        (as_given, names)
    }
}

/// Time since the boot; if unknown, [`Duration::MAX`].
fn uptime() -> Duration {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = text.split(' ').next().and_then(|seconds| seconds.parse().ok());
    seconds.and_then(|it| Duration::try_from_secs_f64(it).ok()).unwrap_or(Duration::MAX)
}

/// `this host has eth0, eth1 and lo`
fn list_interfaces<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<_> = names.map(str::to_owned).collect();
    names.sort();
    let more = names.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        names.truncate(MAX_LISTED);
        names.push(format!("{more} more"));
    }
    match names.split_last() {
        None => "this host has none".into(),
        Some((only, [])) => format!("this host has {only}"),
        Some((last, before)) => format!("this host has {} and {last}", before.join(", ")),
    }
}

/// Refuses native XDP on VLAN interfaces, which have no driver of their own. Does not look for missing interfaces.
///
/// # Errors
/// An interface is a VLAN of another one, or netlink fails.
pub(super) async fn refuse_native_vlans(options: &Options) -> Result<(), Failure> {
    if options.hook != Hook::Xdp(XdpMode::Native) {
        return Ok(());
    }
    let all = all_interfaces().await?;
    for name in &options.interfaces {
        let vlan = all.iter().find(|known| known.name == *name).and_then(|known| known.vlan);
        let beneath = vlan.and_then(|vlan| all.iter().find(|known| known.index == vlan.beneath));
        if let Some(Interface { name: beneath, .. }) = beneath {
            let sentence = format!(
                "{name}: a VLAN of {beneath} has no native XDP: give {beneath}, which sees its frames"
            );
            return Err(Failure::new(sentence)
                .hint(format!("--interface {beneath}; or --xdp-mode generic, slower"))
                .caused_by_settings());
        }
    }
    Ok(())
}

async fn all_interfaces() -> Result<Vec<Interface>, Failure> {
    lb_net::all_interfaces().await.map_err(|error| Failure::from_chain(&error))
}

/// An interface and the VLAN tag of what is sent to backends from it: `eth1=100`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Vlan {
    interface: String,
    id: u16,
}

impl Vlan {
    pub(super) fn interface(&self) -> &str {
        &self.interface
    }
}

impl fmt::Display for Vlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.interface, self.id)
    }
}

impl FromStr for Vlan {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form = "must be NAME=ID, an interface and the id of a VLAN";
        let (interface, id) = text.rsplit_once('=').ok_or(form)?;
        if interface.is_empty() {
            return Err(form.into());
        }
        let id = id.parse().ok().filter(|id| (1..=MAX_ID).contains(id));
        let id = id.ok_or_else(|| format!("the id of a VLAN is a number from 1 to {MAX_ID}"))?;
        Ok(Self { interface: interface.into(), id })
    }
}

/// VLAN ids by index of their interfaces.
///
/// # Errors
/// An interface does not exist, or has two ids.
pub(super) async fn vlan_ids(vlans: &[Vlan]) -> Result<BTreeMap<u32, u16>, Failure> {
    let mut ids = BTreeMap::new();
    for Vlan { interface, id } in vlans {
        let found = lb_net::interface_by_name(interface).await.map_err(|error| {
            Failure::new(format!("--vlan {interface}={id}: {}", error_chain::message(&error)))
                .hint("name the interface of this host by which packets leave for backends")
        })?;
        if let Some(other) = ids.insert(found.index, *id).filter(|other| other != id) {
            let sentence = format!("--vlan: {interface} has two VLANs, {other} and {id}");
            return Err(Failure::new(sentence).hint("give each interface one VLAN"));
        }
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interfaces_of_a_host_are_named_as_long_as_they_are_few() {
        let few = |names: &[&str]| list_interfaces(names.iter().copied());
        assert_eq!(few(&[]), "this host has none");
        assert_eq!(few(&["lo"]), "this host has lo");
        assert_eq!(few(&["lo", "eth1", "eth0"]), "this host has eth0, eth1 and lo");
        let many: Vec<_> = (0..40).map(|number| format!("veth{number:02}")).collect();
        let said = list_interfaces(many.iter().map(String::as_str));
        assert!(
            said.starts_with("this host has veth00, ") && said.ends_with(", veth11 and 28 more")
        );
    }

    #[test]
    fn an_interface_with_two_names_is_taken_once() {
        let names = [("enp129s0f0np0alternative", "eth0"), ("eth0", "eth0"), ("wan", "eth1")];
        let own = OwnNames(names.map(|(given, own)| (given.into(), own.into())).into());
        let of = |given: &[&str]| own.of(&given.iter().map(|it| (*it).into()).collect::<Vec<_>>());
        assert_eq!(of(&["enp129s0f0np0alternative", "wan"]).1, ["eth0", "eth1"]);
        let (given, own) = of(&["wan", "eth0", "enp129s0f0np0alternative"]);
        assert_eq!(own, ["eth1", "eth0"]);
        assert_eq!(given, ["wan", "eth0"]);
    }

    #[test]
    fn the_host_has_been_up_for_a_while() {
        assert!(uptime() > Duration::ZERO && uptime() < Duration::MAX);
    }

    #[test]
    fn a_vlan_is_an_interface_and_an_id() {
        let vlan = |text: &str| text.parse::<Vlan>();
        assert_eq!(vlan("eth1=100"), Ok(Vlan { interface: "eth1".into(), id: 100 }));
        assert_eq!(vlan("eth1=4094").unwrap().id, 4094);
        for text in ["eth1", "=100"] {
            assert_eq!(
                vlan(text),
                Err("must be NAME=ID, an interface and the id of a VLAN".into())
            );
        }
        for text in ["eth1=0", "eth1=4095", "eth1=-1", "eth1=", "eth1=70000", "eth1=1.2"] {
            assert_eq!(vlan(text), Err("the id of a VLAN is a number from 1 to 4094".into()));
        }
    }
}
