use lb_maps::{AttachedMode, Hold, Occupant};
use lb_net::{device::XdpFeatures, survey::Device};
use spillway_proto::v1::ConditionReason;

use super::{
    RESTART, Row,
    drops::PASSING,
    fixture::{ETH0, backend, balancer, card, device, offload},
    run_all,
};
use crate::{
    facts::{Condition, DaemonState, Facts},
    finding::Level::{Ok, Problem, Warning},
};

pub(super) const MODE: &[Row] = &[
    (
        balancer,
        |f| f.components[0].links[0].mode = Some(AttachedMode::Generic),
        "mode",
        Warning,
        "eth0",
        "kill 7; tail --pid=7 -f /dev/null; setsid -f /d balancer --xdp-mode native",
    ),
    (balancer, generic_only, "mode", Warning, "eth0", ""),
    (balancer, |f| veth(f, false), "mode", Problem, "eth0", PASSING),
    (balancer, |f| veth(f, true), "mode", Ok, "eth0", ""),
    (
        balancer,
        |f| f.components[0].links[0].index = None,
        "mode",
        Problem,
        "eth0",
        "ip -brief link  # where is eth0, under which name?",
    ),
    (balancer, |f| f.components[0].links[0].mode = None, "mode", Problem, "eth0", RESTART),
    (
        balancer,
        |f| taken(f, Hold::Interface),
        "mode",
        Problem,
        "eth0",
        "ip link set dev eth0 xdp off",
    ),
    (
        balancer,
        |f| taken(f, Hold::Links(vec![3])),
        "mode",
        Problem,
        "eth0",
        "bpftool link detach id 3  # since a link holds it",
    ),
    (balancer, |f| grown(f, 3_506), "mode", Ok, "eth0", ""),
    (balancer, |f| grown(f, 3_507), "mode", Problem, "eth0", "ip link set dev eth0 mtu 3506"),
    (backend, taken_off_at_tc, "mode", Problem, "eth0", RESTART_RECEIVER),
];

fn reports(facts: &mut Facts, cause: &str) {
    let Some(DaemonState::Answers { conditions, .. }) = &mut facts.daemon else {
        panic!("it answers")
    };
    conditions.push(Condition {
        reason: ConditionReason::Interface,
        subject: "interface eth0".into(),
        cause: cause.into(),
    });
}

/// A daemon that could not attach its program again has taken the link's pin away, and tries again by itself. A new one
/// would refuse to start.
#[test]
fn no_restart_is_offered_while_the_daemon_attaches_its_program_by_itself() {
    let cause = "the packet program is not attached, tried again twice a second";
    let look = "ip -details link show  # what is there; the daemon attaches its program by itself";
    let other = || Some(Occupant { program: "other (id 7)".into(), hold: Hold::Interface });
    let off = "ip link set dev eth0 xdp off";
    for (is_pinned, occupant, check, subject, mend) in [
        (false, other(), "daemon", "interface eth0", off),
        (false, None, "daemon", "interface eth0", look),
        (true, other(), "mode", "eth0", off),
        (true, None, "mode", "eth0", look),
    ] {
        let mut facts = balancer();
        card(&mut facts).occupant = occupant.clone();
        match is_pinned {
            true => facts.components[0].links[0].mode = None,
            false => facts.components[0].links.clear(),
        }
        reports(&mut facts, cause);
        let wrong: Vec<_> = run_all(&facts).into_iter().filter(|it| it.level != Ok).collect();
        assert_eq!(wrong.len(), 1, "{wrong:#?}");
        assert_eq!((wrong[0].check, &*wrong[0].subject), (check, subject));
        assert_eq!((&wrong[0].mend[..], &wrong[0].or), (&[mend.to_owned()][..], &None), "{check}");
        let text = format!("{}: {}", wrong[0].found, wrong[0].why);
        assert!(occupant.is_none() || is_pinned == text.contains("other (id 7)"), "{text}");
    }
    // Without its condition the daemon does not know of it.
    let mut facts = balancer();
    facts.components[0].links.clear();
    let wrong: Vec<_> = run_all(&facts).into_iter().filter(|it| it.level != Ok).collect();
    assert_eq!(
        (wrong.len(), wrong[0].check, &*wrong[0].mend[0]),
        (1, "pins", RESTART),
        "{wrong:#?}"
    );
}

const RESTART_RECEIVER: &str = "kill 7; tail --pid=7 -f /dev/null; setsid -f /d receiver";

/// virtio_net of Linux 6.1 and 6.12 takes 3506 bytes in the driver, with pages of 4096.
fn grown(facts: &mut Facts, mtu: u32) {
    card(facts).driver = Some("virtio_net".into());
    facts.network.survey.devices[1].interface.mtu = mtu;
}

/// Whether the other end has GRO or a program.
fn veth(facts: &mut Facts, transmits: bool) {
    card(facts).driver = Some("veth".into());
    card(facts).xdp = Some(XdpFeatures { native: true, transmits });
}

fn generic_only(facts: &mut Facts) {
    facts.components[0].links[0].mode = Some(AttachedMode::Generic);
    card(facts).xdp = Some(XdpFeatures { native: false, transmits: false });
}

/// Another's XDP program has nothing to do with it.
fn taken_off_at_tc(facts: &mut Facts) {
    taken(facts, Hold::Interface);
    facts.components[0].links[0].at_tc = true;
}

fn taken(facts: &mut Facts, hold: Hold) {
    facts.components[0].links[0].mode = None;
    card(facts).occupant = Some(Occupant { program: "other (id 7)".into(), hold });
}

pub(super) const OFFLOADS: &[Row] = &[
    (balancer, |f| offload(f, "rx-lro"), "offloads", Problem, "eth0", "ethtool -K eth0 lro off"),
    (
        balancer,
        |f| offload(f, "rx-gro-hw"),
        "offloads",
        Problem,
        "eth0",
        "ethtool -K eth0 rx-gro-hw off",
    ),
    (balancer, trunk, "offloads", Problem, "eth0", "ethtool -K eth0 rxvlan off"),
    (balancer, bond, "offloads", Problem, "port0", "ethtool -K port0 rxvlan off"),
    (balancer, bond_in_order, "offloads", Ok, "port0", ""),
    (balancer, providers, "offloads", Problem, "eth0", "ethtool -K eth0 rx-vlan-stag-hw-parse off"),
    (backend, trunk_at_tc, "offloads", Ok, "eth0", ""),
    (balancer, unfinished, "offloads", Problem, "eth0", "ethtool -K eth0 tx off"),
];

fn trunk(facts: &mut Facts) {
    trunk_with(facts, "rx-vlan-hw-parse");
}

/// A bond with VLANs whose port removes tags.
fn bond(facts: &mut Facts) {
    bond_in_order(facts);
    let port = facts.network.cards.get_mut(&4).unwrap();
    port.offloads.as_mut().unwrap().insert("rx-vlan-hw-parse".into());
}

/// Offloads of the bond itself do not affect received frames.
fn bond_in_order(facts: &mut Facts) {
    let plain = card(facts).clone();
    trunk(facts);
    let mut port = device(4, "port0", 1540);
    port.interface.bond = Some(ETH0);
    facts.network.survey.devices.push(port);
    facts.network.cards.insert(4, plain);
}

/// A tag of 802.1ad is an offload of its own.
fn providers(facts: &mut Facts) {
    trunk_with(facts, "rx-vlan-stag-hw-parse");
}

fn trunk_with(facts: &mut Facts, feature: &str) {
    offload(facts, feature);
    let vlan = Device { kind: Some("vlan".into()), lower: Some(ETH0), ..device(3, "eth0.5", 1540) };
    facts.network.survey.devices.push(vlan);
}

/// tc has the tag that the card took off, and the stack what the card merged.
fn trunk_at_tc(facts: &mut Facts) {
    trunk(facts);
    offload(facts, "rx-vlan-stag-hw-parse");
    offload(facts, "rx-gro-hw");
    facts.components[0].links[0].at_tc = true;
    facts.components[0].links[0].mode = Some(AttachedMode::Tc);
}

fn unfinished(facts: &mut Facts) {
    offload(facts, "tx-checksum-ip-generic");
    card(facts).driver = Some("veth".into());
}
