//! Whose tunnels a receiver opens.

use lb_daemon::dataplane::Role;

use super::{Facts, Finding, commands};

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let Some(receiver) = &facts.receiver else { return Vec::new() };
    let mut findings = Vec::new();
    for (what, empty, flag, all) in [
        ("sources", receiver.sources.is_empty(), "allow-source", receiver.sources.join(", ")),
        (
            "vips",
            receiver.vips.is_empty(),
            "vip",
            receiver.vips.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        ),
    ] {
        findings.push(if empty {
            let value = if what == "vips" { "VIP" } else { "BALANCER_ADDRESS" };
            Finding::problem("allow_lists", what, "none is allowed")
                .why("no packet is taken out of its tunnel")
                .mend(commands::start(facts, Role::Receiver, Some((flag, value))))
        } else {
            Finding::ok("allow_lists", what, all)
        });
    }
    for source in receiver.sources.iter().filter(|source| source.ends_with("/0")) {
        findings.push(
            Finding::warning("allow_lists", source, "anybody may send tunnels")
                .why("who can reach this host can then send packets to the VIP from any address")
                .mend(commands::start(
                    facts,
                    Role::Receiver,
                    Some(("allow-source", "BALANCER_ADDRESS")),
                )),
        );
    }
    findings
}
