//! What becomes of frames after the program has counted them: drops that only kernel and drivers count.

use lb_base::count;
use lb_inspect::stats::InterfaceStats;
use lb_maps::{AttachedMode, Component};

use crate::{
    facts::{BalancerFacts, Facts, SendingInterface},
    finding::Finding,
    start_command::start_command,
};

/// Drops that have ended are a warning if they are at least one frame of so many that the program sent.
const FEW: u64 = 1_000;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let Some(balancer) = &facts.balancer else { return Vec::new() };
    balancer.interfaces.iter().map(|sending| judge(facts, balancer, sending)).collect()
}

fn judge(facts: &Facts, balancer: &BalancerFacts, sending: &SendingInterface) -> Finding {
    let SendingInterface { stats, is_growing } = sending;
    if cannot_send(facts, stats) {
        return unable(facts, stats);
    }
    let name = &stats.interface;
    let Some(dropped) = stats.dropped_after_program() else {
        return match is_growing {
            true => link_drops(stats),
            false => {
                let driver = if stats.driver.is_empty() { "its driver" } else { &stats.driver };
                let found = format!("{driver} does not count what it drops after the program");
                Finding::ok("driver_drops", name, found)
            }
        };
    };
    let sent = balancer.sent;
    let found = format!(
        "{} dropped after the program, which has counted {} as sent ({})",
        count(dropped, "frame"),
        count(sent, "packet"),
        list(stats)
    );
    match (dropped, is_growing) {
        (0, true) => link_drops(stats),
        (0, false) => Finding::ok("driver_drops", name, "no frame dropped after the program"),
        (_, true) => mended(facts, stats, Finding::problem("driver_drops", name, found)),
        _ if dropped.saturating_mul(FEW) < sent => {
            Finding::ok("driver_drops", name, format!("{found}, and none now"))
        }
        _ => {
            let found = format!("{found}, and none now");
            mended(facts, stats, Finding::warning("driver_drops", name, found))
        }
    }
}

/// Whether the kernel refuses redirected frames for an interface that the program is not attached to.
fn cannot_send(facts: &Facts, stats: &InterfaceStats) -> bool {
    let links = facts.components.iter().filter(|it| it.component == Component::Balancer);
    let mut modes = links.flat_map(|it| &it.links).map(|link| link.mode);
    let card = facts.network.card(&stats.interface);
    // Generic XDP sends by the stack, which every driver can.
    stats.redirect_target
        && !stats.attached
        && modes.any(|mode| mode == Some(AttachedMode::Native))
        && card.and_then(|card| card.xdp).is_some_and(|xdp| !xdp.transmits)
}

fn unable(facts: &Facts, stats: &InterfaceStats) -> Finding {
    let (name, driver) = (&stats.interface, &stats.driver);
    let found = format!("the driver ({driver}) cannot send redirected frames");
    let finding = Finding::problem("driver_drops", name, found);
    let generic = start_command(facts, Component::Balancer, Some(("xdp-mode", "generic")));
    if driver == "veth" {
        return finding
            .why("the kernel drops every packet for this interface, after the program counted it as redirected; the other end of the pair needs GRO, switched on while it is up, or a packet program")
            .mend("ethtool -K PEER gro off && ethtool -K PEER gro on  # at the other end of the pair, in its namespace");
    }
    finding
        .why("the kernel drops every packet for this interface, after the program counted it as redirected; some drivers can send once the balancer's program is on this interface too")
        .mend(generic)
}

/// Drops that the kernel's statistics alone show.
fn link_drops(stats: &InterfaceStats) -> Finding {
    let dropped = count(stats.link.tx_dropped, "packet");
    let found = format!("{dropped} dropped instead of sent (tx_dropped), and more all the time");
    let finding = Finding::warning("driver_drops", &stats.interface, found);
    let name = &stats.interface;
    match stats.driver.as_str() {
        "veth" => finding
            .why("redirected packets are lost if the other end of the pair is down, or has neither GRO nor a packet program; packets of this host are counted too")
            .mend("ethtool -K PEER gro on  # at the other end of the pair, in its namespace"),
        _ => finding
            .why("the device drops what is to leave by it, packets of this host included")
            .mend(format!("ethtool -g {name}  # then: ethtool -G {name} tx MAXIMUM")),
    }
}

fn mended(facts: &Facts, stats: &InterfaceStats, finding: Finding) -> Finding {
    let name = &stats.interface;
    let is = |stage: &str| stats.driver_drops.iter().any(|it| it.frames > 0 && it.stage == stage);
    if stats.driver == "veth" && is("transmit") {
        return finding
            .why("the other end of the pair takes what the program sends back only with a packet program of its own, such as a receiver that allows nothing")
            .mend(pass_at_other_end(facts));
    }
    if stats.driver == "veth" {
        return finding
            .why("the other end of the pair does not take packets fast enough, or its MTU is smaller")
            .mend(format!("ip -details link show dev {name}  # compare the MTU with that of the other end"));
    }
    finding
        .why("they were to go to backends, and are lost; the queue for sending was full, or the card refused them")
        .mend(format!("ethtool -g {name}  # then: ethtool -G {name} tx MAXIMUM"))
}

/// Gives the other end of a veth pair a packet program, which passes all packets on.
pub(super) fn pass_at_other_end(facts: &Facts) -> String {
    let spillwayd = &facts.environment.spillwayd;
    format!(
        "setsid -f ip netns exec NAMESPACE sh -c 'mount -t bpf bpf /sys/fs/bpf && exec {spillwayd} receiver --interface PEER --allow-source 192.0.2.1/32 --vip 192.0.2.2'"
    )
}

/// `rx_queue_N_xdp_tx_errors: 12`, for each counter and tracepoint that is not zero.
fn list(stats: &InterfaceStats) -> String {
    let by_driver =
        stats.driver_drops.iter().map(|it| (it.after_program, &it.counter[..], it.frames));
    let traced = stats.traced_drops.iter().map(|it| (it.after_program, &*it.tracepoint, it.frames));
    let some = by_driver.chain(traced).filter(|(after, _, frames)| *after && *frames > 0);
    some.map(|(_, name, frames)| format!("{name}: {frames}")).collect::<Vec<_>>().join(", ")
}
