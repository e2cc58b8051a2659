use lb_inspect::stats::{DriverDrops, DropStage, InterfaceStats, TracepointDrops};
use lb_maps::LinkStatistics;
use lb_net::device::XdpFeatures;

use super::{
    Row,
    fixture::{balancer, device},
};
use crate::{
    checks::run_all,
    facts::{Facts, NetworkCard, SendingInterface},
    finding::Level::{Ok, Problem, Warning},
};

const RING: &str = "ethtool -g eth0  # then: ethtool -G eth0 tx MAXIMUM";
pub(super) const PASSING: &str = "setsid -f ip netns exec NAMESPACE sh -c 'mount -t bpf bpf /sys/fs/bpf && exec spillwayd receiver --interface PEER --allow-source 192.0.2.1/32 --vip 192.0.2.2'";
const PEER: &str = "ethtool -K PEER gro on  # at the other end of the pair, in its namespace";

pub(super) const ROWS: &[Row] = &[
    (
        balancer,
        |f| eth0(f, "mlx5_core", DropStage::Transmit, 12, true),
        "driver_drops",
        Problem,
        "eth0",
        RING,
    ),
    (
        balancer,
        |f| eth0(f, "virtio_net", DropStage::Send, 12, false),
        "driver_drops",
        Warning,
        "eth0",
        RING,
    ),
    (
        balancer,
        |f| eth0(f, "veth", DropStage::Transmit, 300, false),
        "driver_drops",
        Warning,
        "eth0",
        PASSING,
    ),
    (
        balancer,
        |f| eth0(f, "veth", DropStage::Redirect, 300, true),
        "driver_drops",
        Problem,
        "eth0",
        "ip -details link show dev eth0  # compare the MTU with that of the other end",
    ),
    // One frame of more than a thousand, some time ago.
    (balancer, |f| eth0(f, "mlx5_core", DropStage::Transmit, 9, false), "nothing", Ok, "", ""),
    // What the program itself drops it counts itself.
    (balancer, |f| eth0(f, "veth", DropStage::Program, 5_000, false), "nothing", Ok, "", ""),
    (balancer, |f| eth0(f, "virtio_net", DropStage::Mixed, 5_000, false), "nothing", Ok, "", ""),
    (
        balancer,
        |f| eth0(f, "i40e", DropStage::Mixed, 0, true),
        "driver_drops",
        Warning,
        "eth0",
        RING,
    ),
    (
        balancer,
        |f| eth0(f, "veth", DropStage::Redirect, 0, true),
        "driver_drops",
        Warning,
        "eth0",
        PEER,
    ),
    (balancer, |f| untold(f, 12, true), "driver_drops", Problem, "eth0", RING),
    (balancer, |f| untold(f, 12, false), "driver_drops", Warning, "eth0", RING),
    (balancer, |f| untold(f, 9, false), "nothing", Ok, "", ""),
    (
        balancer,
        |f| eth1(f, "veth", false),
        "driver_drops",
        Problem,
        "eth1",
        "ethtool -K PEER gro off && ethtool -K PEER gro on  # at the other end of the pair, in its namespace",
    ),
    (
        balancer,
        |f| eth1(f, "virtio_net", false),
        "driver_drops",
        Problem,
        "eth1",
        "kill 7; tail --pid=7 -f /dev/null; setsid -f /d balancer --xdp-mode generic",
    ),
    (balancer, |f| eth1(f, "mlx5_core", true), "nothing", Ok, "", ""),
];

fn stats(name: &str, driver: &str, attached: bool, drops: Vec<DriverDrops>) -> InterfaceStats {
    InterfaceStats {
        interface: name.into(),
        driver: driver.into(),
        attached,
        redirect_target: !attached,
        link: LinkStatistics { tx_dropped: 300, ..LinkStatistics::default() },
        driver_drops: drops,
        traced_drops: Vec::new(),
    }
}

/// A balancer that has sent 10,000 packets, with a counter of the driver of its interface.
fn eth0(facts: &mut Facts, driver: &str, stage: DropStage, frames: u64, is_growing: bool) {
    let drops = DriverDrops {
        counter: "rx_queue_N_drops".into(),
        stage: stage.name().into(),
        after_program: stage.is_after_program(),
        frames,
    };
    let balancer = facts.balancer.as_mut().unwrap();
    balancer.sent = 10_000;
    let stats = stats("eth0", driver, true, vec![drops]);
    balancer.interfaces = vec![SendingInterface { stats, is_growing }];
}

/// An interface whose driver counts nothing, but the kernel has tracepoints.
fn untold(facts: &mut Facts, frames: u64, is_growing: bool) {
    eth0(facts, "i40e", DropStage::Mixed, 0, is_growing);
    let stats = &mut facts.balancer.as_mut().unwrap().interfaces[0].stats;
    stats.driver_drops.clear();
    stats.traced_drops = traced(frames);
}

/// `xdp_devmap_xmit` has reported nothing.
fn traced(frames: u64) -> Vec<TracepointDrops> {
    let of = |tracepoint: &'static str, frames| TracepointDrops {
        tracepoint: tracepoint.into(),
        after_program: true,
        frames,
    };
    vec![of("xdp_exception", frames), of("xdp_devmap_xmit", 0)]
}

/// A second interface, which only sends.
fn eth1(facts: &mut Facts, driver: &str, transmits: bool) {
    let stats = stats("eth1", driver, false, Vec::new());
    facts.balancer.as_mut().unwrap().interfaces =
        vec![SendingInterface { stats, is_growing: false }];
    facts.network.survey.devices.push(device(3, "eth1", 1540));
    let xdp = Some(XdpFeatures { native: true, transmits });
    facts.network.cards.insert(3, NetworkCard { xdp, ..NetworkCard::default() });
}

#[test]
fn the_finding_has_both_counts() {
    let mut facts = balancer();
    eth0(&mut facts, "mlx5_core", DropStage::Transmit, 12, true);
    let found = run_all(&facts).into_iter().find(|finding| finding.check == "driver_drops");
    assert_eq!(
        found.unwrap().found,
        "12 frames dropped after the program, which has counted 10000 packets as sent \
         (rx_queue_N_drops: 12)"
    );
}

/// Most frames are in both, so the numbers are not added up.
#[test]
fn tracepoints_are_counted_beside_the_driver() {
    let mut facts = balancer();
    eth0(&mut facts, "mlx5_core", DropStage::Transmit, 12, true);
    facts.balancer.as_mut().unwrap().interfaces[0].stats.traced_drops = traced(20);
    let found = run_all(&facts).into_iter().find(|finding| finding.check == "driver_drops");
    assert_eq!(
        found.unwrap().found,
        "20 frames dropped after the program, which has counted 10000 packets as sent \
         (rx_queue_N_drops: 12, xdp_exception: 20)"
    );
}
