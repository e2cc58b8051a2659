//! What comes of packets through the tunnels: whether VIPs answer on their backends, and whether large packets
//! get there.

mod heard;
mod narrow;
mod silent;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use super::{Facts, Finding};
use crate::{
    output::count,
    verbs::doctor::facts::{Outcome, Tunnels, Way},
};

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let (ways, left_out) = match &facts.tunnels {
        None => return Vec::new(),
        Some(Tunnels::Untried(why)) => {
            return vec![Finding::ok("tunnels", "backends", format!("were not probed: {why}"))];
        }
        Some(Tunnels::Tried { ways, left_out }) => {
            (ways.iter().map(|way| heard::heard(facts, way)).collect::<Vec<_>>(), *left_out)
        }
    };
    let mut findings = silent::silent(facts, &ways);
    findings.extend(narrow::narrow(facts, &ways));
    findings.extend(untold(&ways));
    findings.extend(well(facts, &ways));
    if left_out > 0 {
        let subject = format!("{} more", count(left_out.into(), "way"));
        findings.push(Finding::ok("tunnels", subject, "were not probed, for there are so many"));
    }
    findings
}

/// What cannot be told from here, and hosts that are away, which health checks look after.
fn untold(ways: &[Way]) -> Vec<Finding> {
    let (mut away, mut barred) = (BTreeMap::new(), BTreeMap::new());
    let mut unsized_ = BTreeMap::new();
    for way in ways {
        match &way.outcome {
            Outcome::Silent { is_there: false, .. } => {
                away.entry(way.is_tunnel()).or_insert_with(BTreeSet::new).insert(way.backend);
            }
            Outcome::Barred(why) => {
                barred.entry(way.vip).or_insert((why, BTreeSet::new())).1.insert(way.backend);
            }
            Outcome::Unsized(why) => {
                let same = unsized_.entry((why, way.is_tunnel()));
                same.or_insert_with(BTreeSet::new).insert(way.backend);
            }
            Outcome::Well | Outcome::Narrow { .. } | Outcome::Silent { .. } => {}
        }
    }
    let list = |of: BTreeSet<IpAddr>| some(&of.into_iter().collect::<Vec<_>>());
    let mut findings = Vec::new();
    for (vip, (why, backends)) in barred {
        let found = format!("{} cannot be probed for it: {why}", list(backends));
        findings.push(Finding::ok("tunnels", vip.to_string(), found));
    }
    for ((why, is_tunnel), backends) in unsized_ {
        let through = through(is_tunnel);
        let found = format!("VIPs answer{through}; whether large packets do is not known: {why}");
        findings.push(Finding::ok("tunnels", list(backends), found));
    }
    for (is_tunnel, backends) in away {
        let outside = if is_tunnel { ", in the tunnel or outside" } else { "" };
        let found = format!("no sign of the host{outside}; `spillway status` says since when");
        findings.push(Finding::ok("tunnels", list(backends), found));
    }
    findings
}

/// Backends of which there is nothing to say.
fn well(facts: &Facts, ways: &[Way]) -> Vec<Finding> {
    let of = |is: &dyn Fn(&Way) -> bool| -> BTreeSet<IpAddr> {
        ways.iter().filter(|way| is(way)).map(|way| way.backend).collect()
    };
    let is_narrow = |way: &Way| matches!(way.outcome, Outcome::Narrow { .. });
    let other = of(&|way| way.outcome != Outcome::Well && !is_narrow(way));
    let (narrow, unknown) = (of(&is_narrow), of(&|way| narrow::is_unknown(facts, way)));
    let mut findings = Vec::new();
    for is_tunnel in [true, false] {
        let through = through(is_tunnel);
        let alike = of(&|way| way.is_tunnel() == is_tunnel);
        let told = |it: &&IpAddr| narrow.contains(it) && !unknown.contains(it);
        let told = alike.iter().filter(told).filter(|it| !other.contains(it)).count() as u64;
        if told > 0 {
            let come = if is_tunnel { "come through the tunnel" } else { "get there" };
            let found = format!("small packets {come}; what fits is said under `mtu`");
            findings.push(Finding::ok("tunnels", count(told, "backend"), found));
        }
        let well = |it: &&IpAddr| !other.contains(it) && !narrow.contains(it);
        let well = alike.iter().filter(well).count() as u64;
        if well > 0 {
            let client = facts.places.client_mtu;
            let found = format!("VIPs answer{through}, packets of {client} bytes come too");
            findings.push(Finding::ok("tunnels", count(well, "backend"), found));
        }
    }
    findings
}

/// By what.
const fn through(is_tunnel: bool) -> &'static str {
    if is_tunnel { " through the tunnel" } else { "" }
}

/// The first, and how many more.
pub(super) fn some(addresses: &[IpAddr]) -> String {
    match addresses {
        [] => String::new(),
        [one] => one.to_string(),
        [first, more @ ..] => format!("{first} and {} more", more.len()),
    }
}
