//! Backends that are there, and do not answer for VIPs.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use super::{
    super::{Facts, Finding},
    some, through,
};
use crate::verbs::doctor::facts::{Outcome, Way};

/// Commands of one kind that are printed.
const MOST: usize = 3;

/// VIPs that some backends do not answer for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Silence {
    vips: BTreeSet<IpAddr>,
    /// Whether the backends' addresses are IPv4: the tunnels' source is of the same version.
    is_ipv4: bool,
    /// Whether there is a tunnel.
    is_tunnel: bool,
    /// Whether a tunnel is GUE.
    is_gue: bool,
    /// Whether those backends answer for other VIPs.
    is_partial: bool,
    /// Whether connections were tried as well.
    is_sure: bool,
}

pub(super) fn silent(facts: &Facts, ways: &[Way]) -> Vec<Finding> {
    let mut missing: BTreeMap<(IpAddr, bool), Silence> = BTreeMap::new();
    for way in ways {
        if let Outcome::Silent { is_there: true, by_tcp } = way.outcome {
            let is_tunnel = way.is_tunnel();
            let silence = missing.entry((way.backend, is_tunnel)).or_insert_with(|| Silence {
                vips: BTreeSet::new(),
                is_ipv4: way.backend.is_ipv4(),
                is_tunnel,
                is_gue: false,
                is_partial: false,
                is_sure: true,
            });
            silence.vips.insert(way.vip);
            silence.is_gue |= way.is_gue();
            silence.is_sure &= by_tcp;
        }
    }
    let mut groups: BTreeMap<Silence, Vec<IpAddr>> = BTreeMap::new();
    for ((backend, is_tunnel), mut silence) in missing {
        // Where tunnels of one kind end, those of another need not.
        let answers = |way: &Way| {
            let is_silent = matches!(way.outcome, Outcome::Silent { .. } | Outcome::Barred(_));
            let is_alike = way.is_tunnel() == is_tunnel && (way.is_gue() || !silence.is_gue);
            way.backend == backend && is_alike && !is_silent
        };
        silence.is_partial = ways.iter().any(answers);
        groups.entry(silence).or_default().push(backend);
    }
    groups.iter().map(|(silence, backends)| no_answer(facts, silence, backends)).collect()
}

fn no_answer(facts: &Facts, silence: &Silence, backends: &[IpAddr]) -> Finding {
    let Silence { vips, is_ipv4, is_tunnel, is_gue, is_partial, is_sure } = silence;
    let through = through(*is_tunnel);
    let found = format!("no answer{through} from {}, though the host is there", some(backends));
    let mut sources = facts.balancer.iter().flat_map(|balancer| &balancer.sources);
    let source = sources.find(|source| source.is_ipv4() == *is_ipv4);
    let source = source.map_or_else(|| "BALANCER_ADDRESS".into(), ToString::to_string);
    let why = match (is_tunnel, is_partial) {
        (false, _) => "the VIP is not on the backend".to_owned(),
        (true, true) => {
            "the VIP is not on the backend, or its receiver does not let it in".to_owned()
        }
        (true, false) => format!(
            "nothing takes packets out of tunnels there, it does not let this balancer ({source}) in, or the \
             VIP is not on the backend"
        ),
    };
    let subject = some(&vips.iter().copied().collect::<Vec<_>>());
    let finding = if *is_sure {
        Finding::problem("tunnels", subject, found).why(why)
    } else {
        let why = format!(
            "{why}; or it only drops echo requests, for it has no TCP service of one port to ask"
        );
        Finding::warning("tunnels", subject, found).why(why)
    };
    let others = if backends.len() > 1 { "and so on the others" } else { "" };
    let at = |command: &str, note: &str| {
        let notes = [others, note].into_iter().filter(|note| !note.is_empty());
        match notes.collect::<Vec<_>>().join("; ") {
            notes if notes.is_empty() => there(backends[0], command),
            notes => format!("{}  # {notes}", there(backends[0], command)),
        }
    };
    let add = at(&adding(vips, *is_tunnel), "");
    let doctor = at("spillway doctor", "it says what is missing");
    match (is_tunnel, is_partial) {
        (false, _) => finding.mend(add),
        (true, true) => finding.mend(doctor).mend(add),
        (true, false) => {
            let all = vips.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            let (port, note) = match is_gue {
                true => (" --gue-port PORT", "where none runs; the pool's port, or 6080"),
                false => ("", "where none runs"),
            };
            let receiver = format!(
                "setsid -f spillwayd receiver --interface INTERFACE --allow-source {source} --vip {all}{port}"
            );
            finding.mend(doctor).mend(add).or(at(&receiver, note))
        }
    }
}

/// What gives a backend its VIPs. Without a tunnel it is on the link where the balancer or a router answers ARP
/// for them, and has to be silent about them first.
fn adding(vips: &BTreeSet<IpAddr>, is_tunnel: bool) -> String {
    let quiet = "sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2";
    let add = vips.iter().take(MOST).map(|vip| {
        let bits = if vip.is_ipv4() { 32 } else { 128 };
        format!("ip address add {vip}/{bits} dev lo")
    });
    let add = add.collect::<Vec<_>>();
    match add.as_slice() {
        _ if is_tunnel || !vips.iter().any(IpAddr::is_ipv4) => add.join("; "),
        [one] => format!("{quiet} && {one}"),
        all => format!("{quiet} && {{ {}; }}", all.join("; ")),
    }
}

/// A command that has one done on another host: what is meant for a backend would be wrong here.
fn there(host: IpAddr, command: &str) -> String {
    if command.contains([';', '&']) {
        return format!("ssh {host} '{command}'");
    }
    format!("ssh {host} {command}")
}
