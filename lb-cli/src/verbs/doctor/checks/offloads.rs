//! Offloads that change frames before the program sees them, or leave them unfinished.

use std::collections::BTreeSet;

use lb_daemon::dataplane::Linked;

use super::{Facts, Finding};

/// `features.rs` of ethtool: the kernel's name, the option of `ethtool -K`, and why it hurts.
struct Harm {
    feature: &'static str,
    option: &'static str,
    why: &'static str,
}

const LRO: Harm = Harm {
    feature: "rx-lro",
    option: "lro",
    why: "the card merges segments: the program sees frames that nobody sent, too large for any tunnel",
};

/// What the stack knows how to take apart again: no harm at tc's hook.
const GRO: Harm = Harm { feature: "rx-gro-hw", option: "rx-gro-hw", ..LRO };

const VLAN: Harm = Harm {
    feature: "rx-vlan-hw-parse",
    option: "rxvlan",
    why: "the card takes the tag off first: a frame of any VLAN looks like one of the interface's own",
};

/// The same of 802.1ad, which ethtool has no short word for.
const PROVIDERS: Harm =
    Harm { feature: "rx-vlan-stag-hw-parse", option: "rx-vlan-stag-hw-parse", ..VLAN };

const CHECKSUMS: Harm = Harm {
    feature: "tx-checksum-ip-generic",
    option: "tx",
    why: "no hardware follows: what this host sends enters a packet program at the other end with unfinished checksums, health checks too",
};

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let links = facts.roles.iter().flat_map(|installed| &installed.links);
    links.flat_map(|link| of_link(facts, link)).collect()
}

/// Of the cards that frames come by: of a bond, its ports.
fn of_link(facts: &Facts, link: &Linked) -> Vec<Finding> {
    let Some(index) = link.index else { return Vec::new() };
    let interfaces = facts.network.ports(index).map(|port| &port.interface);
    let ports: Vec<_> = interfaces.map(|port| (port.index, &port.name)).collect();
    let cards = if ports.is_empty() { vec![(index, &link.name)] } else { ports };
    cards.into_iter().flat_map(|card| of(facts, link, card)).collect()
}

fn of(facts: &Facts, link: &Linked, (index, name): (u32, &String)) -> Vec<Finding> {
    let card = facts.network.cards.get(&index);
    let Some(on) = card.and_then(|card| card.offloads.as_ref()) else {
        let unknown = Finding::warning("offloads", name, "the kernel does not say which are on")
            .why("LRO and hardware GRO must be off")
            .mend(format!("ethtool -K {name} lro off rx-gro-hw off"));
        return vec![unknown];
    };
    let trunk = facts
        .network
        .devices()
        .any(|device| device.kind.as_deref() == Some("vlan") && device.lower == link.index);
    let is_veth = card.and_then(|card| card.driver.as_deref()) == Some("veth");
    // tc has the tag that the card took off.
    let tags = [&VLAN, &PROVIDERS].map(|harm| (harm, "is on, and this is a trunk"));
    let vlan = tags.into_iter().filter(|_| trunk && !link.at_tc);
    let gro = (!link.at_tc).then_some((&GRO, "is on"));
    let checksums = is_veth.then_some((&CHECKSUMS, "is on"));
    let harms = [(&LRO, "is on")].into_iter().chain(gro).chain(vlan).chain(checksums);
    let found: Vec<_> = harms.filter_map(|(harm, how)| hurts(name, on, harm, how)).collect();
    if found.is_empty() {
        return vec![Finding::ok("offloads", name, "none that hurts is on")];
    }
    found
}

fn hurts(name: &str, on: &BTreeSet<String>, harm: &Harm, how: &str) -> Option<Finding> {
    on.contains(harm.feature).then(|| {
        Finding::problem("offloads", name, format!("{} {how}", harm.feature))
            .why(harm.why)
            .mend(format!("ethtool -K {name} {} off", harm.option))
    })
}
