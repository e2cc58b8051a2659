//! Interfaces: where the programs run, and offloads that change frames before a program sees them.

use std::collections::BTreeSet;

use lb_maps::{AttachedMode, Component, Linked};

use super::{conditions, drops};
use crate::{
    facts::{Facts, InstalledComponent},
    finding::Finding,
    start_command::start_command,
};

pub(super) fn modes(facts: &Facts) -> Vec<Finding> {
    let all = facts.components.iter();
    all.flat_map(|installed| installed.links.iter().map(|link| mode(facts, installed, link)))
        .collect()
}

fn mode(facts: &Facts, installed: &InstalledComponent, link: &Linked) -> Finding {
    let card = link.index.and_then(|index| facts.network.cards.get(&index));
    let driver = match card.and_then(|card| card.driver.as_ref()) {
        Some(driver) => format!("driver {driver}"),
        None => "its driver".into(),
    };
    let native = card.and_then(|card| card.xdp).map(|xdp| xdp.native);
    let (component, name) = (installed.component, link.name.clone());
    let start = |change| start_command(facts, component, change);
    let why = conditions::why_not_attached(facts, component, &name);
    match (link.index, link.mode) {
        (None, _) if installed.owner.is_some() => {
            Finding::problem("mode", name.clone(), "the interface no longer exists")
                .why("its packets are lost; the daemon attaches its program as soon as it is back")
                .mend(format!("ip -brief link  # where is {name}, under which name?"))
        }
        (None, _) => Finding::problem("mode", name, "the interface no longer exists")
            .why(format!("the {component}'s program was on it"))
            .mend("ip -brief link  # then start the daemon with an existing interface"),
        // The tc hook allows other programs.
        (Some(_), None) if !link.at_tc && card.is_some_and(|card| card.occupant.is_some()) => {
            let occupant = card.and_then(|card| card.occupant.as_ref());
            let (by, removal) = occupant
                .map(|by| (by.to_string(), conditions::removal_command(by, &name)))
                .unwrap_or_default();
            let finding = Finding::problem("mode", name, format!("the {component} is not attached: another XDP program is ({by})"))
                .why("an interface takes one XDP program, and packets bypass ours")
                .mend(removal);
            if why.is_some() { finding } else { finding.mend(start(None)) }
        }
        (Some(_), None) if let Some(why) = why => {
            Finding::problem("mode", name, format!("the {component} is not attached"))
                .why(why)
                .mend(conditions::LOOK)
        }
        (Some(_), None) => Finding::problem("mode", name, format!("the {component} is not attached"))
            .why("the program was detached, and packets bypass it")
            .mend(start(None)),
        (Some(index), Some(AttachedMode::Native)) if let Some((mtu, most)) = excess_mtu(facts, index) => {
            Finding::problem("mode", name.clone(), format!("native, but the MTU is {mtu} and {driver} supports {most}"))
                .why("the MTU was raised after the program was attached; larger packets are lost before the program sees them")
                .mend(format!("ip link set dev {name} mtu {most}"))
                .or(start(Some(("xdp-mode", "generic"))))
        }
        (Some(_), Some(AttachedMode::Native)) => {
            let is_veth = card.and_then(|card| card.driver.as_deref()) == Some("veth");
            if !is_veth || component != Component::Balancer {
                return Finding::ok("mode", name, format!("native, in {driver}"));
            }
            // Linux sets the feature at this end while the other one has GRO or an XDP program.
            if card.and_then(|card| card.xdp).is_some_and(|xdp| !xdp.transmits) {
                return Finding::problem("mode", name, format!("native, in {driver}, but the other end of the pair has no XDP program"))
                    .why("every packet that the program sends back is lost")
                    .mend(drops::pass_at_other_end(facts));
            }
            Finding::ok("mode", name, format!("native, in {driver}; the other end of the pair needs an XDP program too, GRO is not enough"))
        }
        (Some(_), Some(AttachedMode::Generic)) => match native {
            Some(false) => Finding::warning("mode", name, format!("generic; {driver} does not support native"))
                .why("the kernel builds an skb for each packet, at several times the cost; use another network card"),
            able => {
                let can = if able.is_some() { "supports" } else { "may support" };
                Finding::warning("mode", name, format!("generic, but {driver} {can} native"))
                    .why("the kernel builds an skb for each packet, at several times the cost")
                    .mend(start(Some(("xdp-mode", "native"))))
            }
        },
        (Some(_), Some(AttachedMode::Tc)) => {
            let note = match native {
                Some(true) => format!("; {driver} supports native XDP, which costs less"),
                _ => String::new(),
            };
            Finding::ok("mode", name, format!("tc{note}"))
        }
        (Some(_), Some(AttachedMode::Other)) => {
            Finding::warning("mode", name, "offloaded, or several programs")
                .why("spillwayd does not attach like that")
                .mend(start(None))
        }
    }
}

/// Bytes of a page that virtio_net needs besides the packet: headroom, skb_shared_info and the Ethernet header.
const PAGE_OVERHEAD: u32 = 256 + 320 + 14;

/// The MTU of an interface and the largest one for a native program, if the MTU is too large. Most drivers refuse
/// that; virtio_net checks it when a program is attached, but not when the MTU is raised later.
fn excess_mtu(facts: &Facts, index: u32) -> Option<(u32, u32)> {
    let driver = facts.network.cards.get(&index)?.driver.as_deref();
    let most =
        facts.host.page.checked_sub(PAGE_OVERHEAD).filter(|_| driver == Some("virtio_net"))?;
    let mtu = facts.network.device(index)?.interface.mtu;
    (mtu > most).then_some((mtu, most))
}

/// An offload that does harm: the kernel's name, the option of `ethtool -K`, and the reason.
struct HarmfulOffload {
    feature: &'static str,
    option: &'static str,
    why: &'static str,
}

const LRO: HarmfulOffload = HarmfulOffload {
    feature: "rx-lro",
    option: "lro",
    why: "the card merges segments into frames that are too large for the tunnel",
};

/// Harmless at the tc hook: the stack can split the frames again.
const GRO: HarmfulOffload = HarmfulOffload { feature: "rx-gro-hw", option: "rx-gro-hw", ..LRO };

const VLAN: HarmfulOffload = HarmfulOffload {
    feature: "rx-vlan-hw-parse",
    option: "rxvlan",
    why: "the card removes the tag first: a frame of any VLAN looks untagged",
};

/// 802.1ad; ethtool has no short name for it.
const PROVIDERS: HarmfulOffload =
    HarmfulOffload { feature: "rx-vlan-stag-hw-parse", option: "rx-vlan-stag-hw-parse", ..VLAN };

const CHECKSUMS: HarmfulOffload = HarmfulOffload {
    feature: "tx-checksum-ip-generic",
    option: "tx",
    why: "veth leaves checksums unfinished: packets of this host, health checks included, reach a packet program at the other end with wrong checksums",
};

pub(super) fn offloads(facts: &Facts) -> Vec<Finding> {
    let links = facts.components.iter().flat_map(|installed| &installed.links);
    links.flat_map(|link| link_offloads(facts, link)).collect()
}

/// A bond receives frames by its ports.
fn link_offloads(facts: &Facts, link: &Linked) -> Vec<Finding> {
    let Some(index) = link.index else { return Vec::new() };
    let interfaces = facts.network.ports(index).map(|port| &port.interface);
    let ports: Vec<_> = interfaces.map(|port| (port.index, &port.name)).collect();
    let cards = if ports.is_empty() { vec![(index, &link.name)] } else { ports };
    cards.into_iter().flat_map(|card| card_offloads(facts, link, card)).collect()
}

fn card_offloads(facts: &Facts, link: &Linked, (index, name): (u32, &String)) -> Vec<Finding> {
    let card = facts.network.cards.get(&index);
    let Some(on) = card.and_then(|card| card.offloads.as_ref()) else {
        let unknown = Finding::warning("offloads", name, "unknown which are on")
            .why("LRO and hardware GRO must be off")
            .mend(format!("ethtool -K {name} lro off rx-gro-hw off"));
        return vec![unknown];
    };
    let trunk = facts
        .network
        .devices()
        .any(|device| device.kind.as_deref() == Some("vlan") && device.lower == link.index);
    let is_veth = card.and_then(|card| card.driver.as_deref()) == Some("veth");
    // The kernel passes a removed tag on to tc.
    let tags = [&VLAN, &PROVIDERS].map(|harm| (harm, "is on, and the interface has VLANs"));
    let vlan = tags.into_iter().filter(|_| trunk && !link.at_tc);
    let gro = (!link.at_tc).then_some((&GRO, "is on"));
    let checksums = is_veth.then_some((&CHECKSUMS, "is on"));
    let harms = [(&LRO, "is on")].into_iter().chain(gro).chain(vlan).chain(checksums);
    let found: Vec<_> =
        harms.filter_map(|(harm, how)| judge_offload(name, on, harm, how)).collect();
    if found.is_empty() {
        return vec![Finding::ok("offloads", name, "no harmful offload is on")];
    }
    found
}

fn judge_offload(
    name: &str,
    on: &BTreeSet<String>,
    offload: &HarmfulOffload,
    how: &str,
) -> Option<Finding> {
    on.contains(offload.feature).then(|| {
        Finding::problem("offloads", name, format!("{} {how}", offload.feature))
            .why(offload.why)
            .mend(format!("ethtool -K {name} {} off", offload.option))
    })
}
