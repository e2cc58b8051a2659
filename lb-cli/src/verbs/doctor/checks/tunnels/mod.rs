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
    verbs::doctor::{
        facts::{Daemon, Outcome, Tunnels, Way},
        finding::Level,
    },
};

/// The kernel parameter that says which groups may send echo requests; the daemon names it where it may not.
const PING_GROUPS: &str = "net.ipv4.ping_group_range";

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
    findings.extend(away(facts, &ways));
    findings.extend(narrow::narrow(facts, &ways));
    findings.extend(untold(&ways));
    findings.extend(well(facts, &ways));
    if left_out > 0 {
        let subject = format!("{} more", count(left_out.into(), "way"));
        findings.push(Finding::ok("tunnels", subject, "were not probed, for there are so many"));
    }
    findings
}

/// What cannot be told from here.
fn untold(ways: &[Way]) -> Vec<Finding> {
    let mut barred = BTreeMap::new();
    let mut unsized_ = BTreeMap::new();
    for way in ways {
        match &way.outcome {
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
    let mut findings = Vec::new();
    for (vip, (why, backends)) in barred {
        let found = format!("{} cannot be probed for it: {why}", list(&backends));
        findings.push(unasked(vip.to_string(), found, why));
    }
    for ((why, is_tunnel), backends) in unsized_ {
        let through = through(is_tunnel);
        let found = format!("VIPs answer{through}; whether large packets do is not known: {why}");
        findings.push(unasked(list(&backends), found, why));
    }
    findings
}

/// What was not asked, and why: no fault, unless the daemon may send no echo requests.
fn unasked(subject: String, found: String, why: &str) -> Finding {
    if !why.contains(PING_GROUPS) {
        return Finding::ok("tunnels", subject, found);
    }
    Finding::warning("tunnels", subject, found)
        .why(
            "the kernel lets the daemon's group send no echo requests, so packets that are too large for the \
             way to a backend are not found",
        )
        .mend(format!("sysctl -w {PING_GROUPS}='0 2147483647'"))
}

/// Hosts that show no sign of themselves, by what the daemon makes of them.
fn away(facts: &Facts, ways: &[Way]) -> Vec<Finding> {
    let mut away: BTreeMap<(Level, bool), BTreeSet<IpAddr>> = BTreeMap::new();
    for way in ways {
        if matches!(way.outcome, Outcome::Silent { is_there: false, .. }) {
            let level = gravity(facts, way.backend);
            away.entry((level, way.is_tunnel())).or_default().insert(way.backend);
        }
    }
    let finding = |((level, is_tunnel), backends): ((Level, bool), BTreeSet<IpAddr>)| {
        let outside = if is_tunnel { ", in the tunnel or outside" } else { "" };
        let (subject, found) = (list(&backends), format!("no sign of the host{outside}"));
        let ping = || {
            let first = backends.first().map(ToString::to_string).unwrap_or_default();
            format!("ping -c 3 {first}  # is the host up, and the way to it?")
        };
        match level {
            Level::Ok => {
                let found = format!("{found}; the configuration wants no new connections there");
                Finding::ok("tunnels", subject, found)
            }
            Level::Warning => Finding::warning("tunnels", subject, found)
                .why("it takes no new connections until it is back; `spillway status` says since when it is down")
                .mend(ping()),
            Level::Problem => {
                let found = format!("{found}, though it is given new connections");
                Finding::problem("tunnels", subject, found)
                    .why("clients that come to it get no answer: no health check looks at it, or none has found it yet")
                    .mend(ping())
            }
        }
    };
    away.into_iter().rev().map(finding).collect()
}

/// How bad it is that a backend's host is away: as bad as it is in the worst of its pools.
fn gravity(facts: &Facts, backend: IpAddr) -> Level {
    let Some(Daemon::Answers { told, .. }) = &facts.daemon else { return Level::Warning };
    let address = backend.to_string();
    let members = told.served.iter().flat_map(|served| &served.backends);
    let levels =
        members.filter(|member| member.address == address).map(|member| match &member.idle {
            None => Level::Problem,
            Some(why) if why.is_wanted() => Level::Ok,
            Some(_) => Level::Warning,
        });
    levels.max().unwrap_or(Level::Warning)
}

fn list(of: &BTreeSet<IpAddr>) -> String {
    some(&of.iter().copied().collect::<Vec<_>>())
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
