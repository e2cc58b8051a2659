//! What comes of packets through the tunnels: whether VIPs answer on their backends, and whether large packets
//! get there.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use lb_daemon::net::Unresolved;

use super::{Facts, Finding, mtu};
use crate::{
    output::count,
    verbs::doctor::facts::{Daemon, Outcome, Tunnels, Way},
};

/// Least that may be said to be what a way takes (`backend update --mtu`), bytes.
const LEAST: u32 = 1_280;
/// Commands of one kind that are printed.
const MOST: usize = 3;

/// VIPs that some backends do not answer for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Silence {
    vips: BTreeSet<IpAddr>,
    /// Whether there is a tunnel.
    is_tunnel: bool,
    /// Whether those backends answer for other VIPs.
    is_partial: bool,
    /// Whether connections were tried as well.
    is_sure: bool,
}

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    let (ways, left_out) = match &facts.tunnels {
        None => return Vec::new(),
        Some(Tunnels::Untried(why)) => {
            return vec![Finding::ok("tunnels", "backends", format!("were not probed: {why}"))];
        }
        Some(Tunnels::Tried { ways, left_out }) => {
            (ways.iter().map(|way| heard(facts, way)).collect::<Vec<_>>(), *left_out)
        }
    };
    let mut findings = silent(facts, &ways);
    findings.extend(narrow(facts, &ways));
    findings.extend(untold(&ways));
    findings.extend(well(facts, &ways));
    if left_out > 0 {
        let subject = format!("{} more", count(left_out.into(), "way"));
        findings.push(Finding::ok("tunnels", subject, "were not probed, for there are so many"));
    }
    findings
}

/// A way, where this host would hear an answer: from whom no route leads to it takes nothing.
fn heard(facts: &Facts, way: &Way) -> Way {
    match (&way.outcome, facts.network.survey.ways.get(&way.vip)) {
        (
            Outcome::Silent { is_there: true, .. },
            Some(Err(why @ (Unresolved::NoRoute | Unresolved::Refused(_)))),
        ) => {
            let outcome = Outcome::Barred(format!("this host takes no answer from it: {why}"));
            Way { outcome, ..way.clone() }
        }
        _ => way.clone(),
    }
}

/// Backends that are there, and do not answer for VIPs.
fn silent(facts: &Facts, ways: &[Way]) -> Vec<Finding> {
    let mut missing: BTreeMap<(IpAddr, bool), (BTreeSet<IpAddr>, bool)> = BTreeMap::new();
    for way in ways {
        if let Outcome::Silent { is_there: true, by_tcp } = way.outcome {
            let (vips, is_sure) =
                missing.entry((way.backend, way.overhead > 0)).or_insert((BTreeSet::new(), true));
            vips.insert(way.vip);
            *is_sure &= by_tcp;
        }
    }
    let mut groups: BTreeMap<Silence, Vec<IpAddr>> = BTreeMap::new();
    for ((backend, is_tunnel), (vips, is_sure)) in missing {
        let answers = |way: &Way| {
            let is_silent = matches!(way.outcome, Outcome::Silent { .. } | Outcome::Barred(_));
            way.backend == backend && (way.overhead > 0) == is_tunnel && !is_silent
        };
        let is_partial = ways.iter().any(answers);
        groups.entry(Silence { vips, is_tunnel, is_partial, is_sure }).or_default().push(backend);
    }
    groups.iter().map(|(silence, backends)| no_answer(facts, silence, backends)).collect()
}

fn no_answer(facts: &Facts, silence: &Silence, backends: &[IpAddr]) -> Finding {
    let Silence { vips, is_tunnel, is_partial, is_sure } = silence;
    let through = if *is_tunnel { " through the tunnel" } else { "" };
    let found = format!("no answer{through} from {}, though the host is there", some(backends));
    let sources = facts.balancer.iter().flat_map(|balancer| &balancer.sources);
    let of_version =
        |source: &&IpAddr| backends.first().is_some_and(|b| b.is_ipv4() == source.is_ipv4());
    let source = sources.filter(of_version).map(ToString::to_string).next();
    let source = source.unwrap_or_else(|| "BALANCER_ADDRESS".into());
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
        let why =
            format!("{why}; or it only drops echo requests, for it has no TCP service to ask");
        Finding::warning("tunnels", subject, found).why(why)
    };
    let there = match backends {
        [one] => format!("on {one}"),
        _ => format!("on {}, and so on the others", backends[0]),
    };
    let add = vips.iter().take(MOST).map(|vip| {
        let bits = if vip.is_ipv4() { 32 } else { 128 };
        format!("ip address add {vip}/{bits} dev lo")
    });
    let add = format!("{}  # {there}", add.collect::<Vec<_>>().join("; "));
    let doctor = format!("spillway doctor  # {there}: it says what is missing");
    let all = vips.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    match (is_tunnel, is_partial) {
        (false, _) => finding.mend(add),
        (true, true) => finding.mend(doctor).mend(add),
        (true, false) => finding.mend(doctor).mend(add).or(format!(
            "setsid -f spillwayd receiver --interface INTERFACE --allow-source {source} --vip {all}  # {there}, \
             where none runs"
        )),
    }
}

/// Backends that large packets do not get to, where nobody has said so.
fn narrow(facts: &Facts, ways: &[Way]) -> Vec<Finding> {
    let mut takes: BTreeMap<IpAddr, Option<u32>> = BTreeMap::new();
    for way in ways {
        if let Outcome::Narrow { fits } = way.outcome
            && !is_known(facts, way.backend)
        {
            let mtu = fits.map(|fits| fits + way.overhead).filter(|mtu| *mtu >= LEAST);
            // What the narrowest of its ways takes, as far as it is known.
            let known = takes.entry(way.backend).or_insert(mtu);
            *known = [*known, mtu].into_iter().flatten().min();
        }
    }
    let mut groups: BTreeMap<Option<u32>, Vec<IpAddr>> = BTreeMap::new();
    takes.into_iter().for_each(|(backend, mtu)| groups.entry(mtu).or_default().push(backend));
    groups.into_iter().map(|(mtu, backends)| too_large(facts, mtu, &backends)).collect()
}

fn too_large(facts: &Facts, mtu: Option<u32>, backends: &[IpAddr]) -> Finding {
    let client = facts.places.client_mtu;
    let most = mtu.map(|mtu| format!(" (the way takes {mtu} with the tunnel)")).unwrap_or_default();
    let found =
        format!("packets of {client} bytes do not come through the tunnel, small ones do{most}");
    let finding = Finding::problem("tunnels", some(backends), found).why(
        "a switch, a router or the backend's interface takes less than this host does, and what is too large \
         vanishes without a word: large uploads hang. Widen it, or say what the way takes, and clients are told",
    );
    let bytes = mtu.map_or_else(|| "BYTES".into(), |mtu| mtu.to_string());
    let update = |backend: String| format!("spillway backend update {backend} --mtu {bytes}");
    match backends {
        _ if backends.len() <= MOST => {
            backends.iter().fold(finding, |finding, one| finding.mend(update(one.to_string())))
        }
        _ => finding.mend(format!("{}  # each of them", update("ADDRESS".into()))),
    }
}

/// Whether somebody has said what fits, or another check has found it on this host.
fn is_known(facts: &Facts, backend: IpAddr) -> bool {
    let is_said = matches!(&facts.daemon, Some(Daemon::Answers { told, .. }) if told.sized.contains(&backend));
    is_said || mtu::is_narrow(facts, backend)
}

/// What cannot be told from here, and hosts that are away, which health checks look after.
fn untold(ways: &[Way]) -> Vec<Finding> {
    let (mut away, mut barred) = (BTreeSet::new(), BTreeMap::new());
    let mut unsized_ = BTreeMap::new();
    for way in ways {
        match &way.outcome {
            Outcome::Silent { is_there: false, .. } => {
                away.insert(way.backend);
            }
            Outcome::Barred(why) => {
                barred.entry(way.vip).or_insert((why, BTreeSet::new())).1.insert(way.backend);
            }
            Outcome::Unsized(why) => {
                unsized_.entry(why).or_insert_with(BTreeSet::new).insert(way.backend);
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
    for (why, backends) in unsized_ {
        let found =
            format!("VIPs answer through the tunnel; whether large packets do is not known: {why}");
        findings.push(Finding::ok("tunnels", list(backends), found));
    }
    if !away.is_empty() {
        let found =
            "no sign of the host, in the tunnel or outside; `spillway status` says since when";
        findings.push(Finding::ok("tunnels", list(away), found));
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
    let narrow = of(&is_narrow);
    let (told, mut findings) =
        (narrow.iter().filter(|it| is_known(facts, **it) && !other.contains(it)), Vec::new());
    let told = told.count() as u64;
    if told > 0 {
        let found = "small packets come through the tunnel; what fits is said under `mtu`";
        findings.push(Finding::ok("tunnels", count(told, "backend"), found));
    }
    let well = of(&|way| way.outcome == Outcome::Well);
    let well = well.iter().filter(|it| !other.contains(it) && !narrow.contains(it)).count() as u64;
    if well > 0 {
        let client = facts.places.client_mtu;
        let found = format!("VIPs answer through the tunnel, packets of {client} bytes come too");
        findings.push(Finding::ok("tunnels", count(well, "backend"), found));
    }
    findings
}

/// The first, and how many more.
fn some(addresses: &[IpAddr]) -> String {
    match addresses {
        [] => String::new(),
        [one] => one.to_string(),
        [first, more @ ..] => format!("{first} and {} more", more.len()),
    }
}
