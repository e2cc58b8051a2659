//! Results of VIP probes: whether VIPs answer on their backends, and whether large packets get there.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use lb_base::count;
use lb_net::Unresolved;

use super::mtu;
use crate::{
    facts::{DaemonState, Facts, VipProbe, VipProbeResult, VipProbes},
    finding::{Finding, Level, first_and_count},
};

/// The kernel parameter with the groups that may send echo requests; the daemon names it if it may not.
const PING_GROUPS: &str = "net.ipv4.ping_group_range";

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let (probes, left_out) = match &facts.vip_probes {
        None => return Vec::new(),
        Some(VipProbes::NotRun(why)) => {
            return vec![Finding::ok("tunnels", "backends", format!("not probed: {why}"))];
        }
        Some(VipProbes::Done { probes, left_out }) => (
            probes.iter().map(|probe| account_for_rp_filter(facts, probe)).collect::<Vec<_>>(),
            *left_out,
        ),
    };
    let mut findings = no_answer(facts, &probes);
    findings.extend(hosts_down(facts, &probes));
    findings.extend(too_narrow(facts, &probes));
    findings.extend(unknown(&probes));
    findings.extend(in_order(facts, &probes));
    if left_out > 0 {
        let subject = count(left_out.into(), "more probe");
        findings.push(Finding::ok("tunnels", subject, "not made, because there are too many"));
    }
    findings
}

/// Backends whose state is unknown.
fn unknown(probes: &[VipProbe]) -> Vec<Finding> {
    let mut not_probed = BTreeMap::new();
    let mut unsized_ = BTreeMap::new();
    for probe in probes {
        match &probe.result {
            VipProbeResult::NotProbed(why) => {
                not_probed
                    .entry(probe.vip)
                    .or_insert((why, BTreeSet::new()))
                    .1
                    .insert(probe.backend);
            }
            VipProbeResult::Unsized(why) => {
                let same = unsized_.entry((why, probe.is_tunnel()));
                same.or_insert_with(BTreeSet::new).insert(probe.backend);
            }
            VipProbeResult::Works
            | VipProbeResult::Narrow { .. }
            | VipProbeResult::Silent { .. } => {}
        }
    }
    let mut findings = Vec::new();
    for (vip, (why, backends)) in not_probed {
        let found = format!("{} cannot be probed for it: {why}", list(&backends));
        findings.push(not_probed_finding(vip.to_string(), found, why));
    }
    for ((why, is_tunnel), backends) in unsized_ {
        let through = through(is_tunnel);
        let found = format!("VIPs answer{through}, but large packets could not be tested: {why}");
        findings.push(not_probed_finding(list(&backends), found, why));
    }
    findings
}

/// In order, unless the daemon may not send echo requests.
fn not_probed_finding(subject: String, found: String, why: &str) -> Finding {
    if !why.contains(PING_GROUPS) {
        return Finding::ok("tunnels", subject, found);
    }
    Finding::warning("tunnels", subject, found)
        .why(
            "the kernel does not let the daemon's group send echo requests, so a path that is too narrow for large packets is \
             not found",
        )
        .mend(format!("sysctl -w {PING_GROUPS}='0 2147483647'"))
}

/// Backends whose host does not answer at all, by their state in the daemon.
fn hosts_down(facts: &Facts, probes: &[VipProbe]) -> Vec<Finding> {
    let mut down: BTreeMap<(Level, bool), BTreeSet<IpAddr>> = BTreeMap::new();
    for probe in probes {
        if matches!(probe.result, VipProbeResult::Silent { is_host_up: false, .. }) {
            let level = host_down_level(facts, probe.backend);
            down.entry((level, probe.is_tunnel())).or_default().insert(probe.backend);
        }
    }
    let finding = |((level, is_tunnel), backends): ((Level, bool), BTreeSet<IpAddr>)| {
        let outside = if is_tunnel { ", in or outside the tunnel" } else { "" };
        let (subject, found) = (list(&backends), format!("the host does not answer{outside}"));
        let ping = || {
            let first = backends.first().map(ToString::to_string).unwrap_or_default();
            format!("ping -c 3 {first}  # are the host and the path to it up?")
        };
        match level {
            Level::Ok => {
                let found = format!("{found}; by configuration it takes no new connections");
                Finding::ok("tunnels", subject, found)
            }
            Level::Warning => Finding::warning("tunnels", subject, found)
                .why("it takes no new connections until it is back; `spillway status` shows since when")
                .mend(ping()),
            Level::Problem => {
                let found = format!("{found}, but it gets new connections");
                Finding::problem("tunnels", subject, found)
                    .why("its clients get no answer: it has no health check, or the check has not failed yet")
                    .mend(ping())
            }
        }
    };
    down.into_iter().rev().map(finding).collect()
}

/// The level of a host that is down: the worst among its pools.
fn host_down_level(facts: &Facts, backend: IpAddr) -> Level {
    let Some(DaemonState::Answers { configuration, .. }) = &facts.daemon else {
        return Level::Warning;
    };
    let address = backend.to_string();
    let members = configuration.served.iter().flat_map(|served| &served.backends);
    let levels =
        members.filter(|member| member.address == address).map(|member| match &member.idle {
            None => Level::Problem,
            Some(why) if why.is_asked_for() => Level::Ok,
            Some(_) => Level::Warning,
        });
    levels.max().unwrap_or(Level::Warning)
}

fn list(of: &BTreeSet<IpAddr>) -> String {
    first_and_count(&of.iter().copied().collect::<Vec<_>>())
}

/// Backends without a problem.
fn in_order(facts: &Facts, probes: &[VipProbe]) -> Vec<Finding> {
    let backends_with = |is: &dyn Fn(&VipProbe) -> bool| -> BTreeSet<IpAddr> {
        probes.iter().filter(|probe| is(probe)).map(|probe| probe.backend).collect()
    };
    let is_narrow = |probe: &VipProbe| matches!(probe.result, VipProbeResult::Narrow { .. });
    let other = backends_with(&|probe| probe.result != VipProbeResult::Works && !is_narrow(probe));
    let (narrow, unknown) =
        (backends_with(&is_narrow), backends_with(&|probe| is_unexplained(facts, probe)));
    let mut findings = Vec::new();
    for is_tunnel in [true, false] {
        let through = through(is_tunnel);
        let alike = backends_with(&|probe| probe.is_tunnel() == is_tunnel);
        let is_explained = |it: &&IpAddr| narrow.contains(it) && !unknown.contains(it);
        let explained =
            alike.iter().filter(is_explained).filter(|it| !other.contains(it)).count() as u64;
        if explained > 0 {
            let arrive = if is_tunnel { "arrive through the tunnel" } else { "arrive" };
            let found = format!("small packets {arrive}; see `mtu` for large ones");
            findings.push(Finding::ok("tunnels", count(explained, "backend"), found));
        }
        let is_ok = |it: &&IpAddr| !other.contains(it) && !narrow.contains(it);
        let ok = alike.iter().filter(is_ok).count() as u64;
        if ok > 0 {
            let client = facts.environment.client_mtu;
            let found = format!("VIPs answer{through}, also to packets of {client} bytes");
            findings.push(Finding::ok("tunnels", count(ok, "backend"), found));
        }
    }
    findings
}

const fn through(is_tunnel: bool) -> &'static str {
    if is_tunnel { " through the tunnel" } else { "" }
}

/// Most commands of one kind to print.
const MAX_COMMANDS: usize = 3;

/// VIPs for which some backends do not answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MissingVips {
    vips: BTreeSet<IpAddr>,
    /// Whether the backends have IPv4 addresses; the source address of the tunnels has the same version.
    is_ipv4: bool,
    /// What their receivers must allow.
    source: Option<String>,
    is_tunnel: bool,
    is_gue: bool,
    /// Whether these backends answer for other VIPs.
    is_partial: bool,
    /// Whether TCP connections were tried too.
    is_sure: bool,
}

fn no_answer(facts: &Facts, probes: &[VipProbe]) -> Vec<Finding> {
    let balancer = facts.balancer.as_ref();
    let mut missing: BTreeMap<(IpAddr, bool), MissingVips> = BTreeMap::new();
    for probe in probes {
        if let VipProbeResult::Silent { is_host_up: true, by_tcp } = probe.result {
            let is_tunnel = probe.is_tunnel();
            let missing_vips =
                missing.entry((probe.backend, is_tunnel)).or_insert_with(|| MissingVips {
                    vips: BTreeSet::new(),
                    is_ipv4: probe.backend.is_ipv4(),
                    source: balancer.and_then(|it| it.allowed_source(probe.backend)),
                    is_tunnel,
                    is_gue: false,
                    is_partial: false,
                    is_sure: true,
                });
            missing_vips.vips.insert(probe.vip);
            missing_vips.is_gue |= probe.is_gue();
            missing_vips.is_sure &= by_tcp;
        }
    }
    let mut groups: BTreeMap<MissingVips, Vec<IpAddr>> = BTreeMap::new();
    for ((backend, is_tunnel), mut missing_vips) in missing {
        // Only tunnels of the same kind are comparable.
        let answers = |probe: &VipProbe| {
            let is_silent = matches!(
                probe.result,
                VipProbeResult::Silent { .. } | VipProbeResult::NotProbed(_)
            );
            let is_alike =
                probe.is_tunnel() == is_tunnel && (probe.is_gue() || !missing_vips.is_gue);
            probe.backend == backend && is_alike && !is_silent
        };
        missing_vips.is_partial = probes.iter().any(answers);
        groups.entry(missing_vips).or_default().push(backend);
    }
    groups
        .iter()
        .map(|(missing_vips, backends)| no_answer_finding(facts, missing_vips, backends))
        .collect()
}

fn no_answer_finding(facts: &Facts, missing_vips: &MissingVips, backends: &[IpAddr]) -> Finding {
    let MissingVips { vips, is_ipv4, source, is_tunnel, is_gue, is_partial, is_sure } =
        missing_vips;
    let through = through(*is_tunnel);
    let found =
        format!("no answer{through} from {}, but the host is up", first_and_count(backends));
    let source = source.clone().unwrap_or_else(|| "BALANCER_ADDRESS".into());
    let prefix = facts.balancer.as_ref().and_then(|balancer| balancer.source_prefix);
    let prefix = prefix.filter(|_| *is_ipv4 && *is_tunnel && !is_partial);
    let why = match (is_tunnel, is_partial) {
        (false, _) => "the VIP is not on the backend".to_owned(),
        (true, true) => {
            "the VIP is not on the backend, or its receiver does not allow it".to_owned()
        }
        (true, false) => format!(
            "no receiver is running there, it does not allow this balancer ({source}), or the VIP is not on the backend"
        ),
    };
    let why = match prefix {
        Some(prefix) => format!(
            "{why}; or a router on the path drops packets from {prefix}, because its reverse path filter (uRPF) has no route \
             for it to this host"
        ),
        None => why,
    };
    let subject = first_and_count(&vips.iter().copied().collect::<Vec<_>>());
    let finding = if *is_sure {
        Finding::problem("tunnels", subject, found).why(why)
    } else {
        let why = format!(
            "{why}; or it only drops echo requests (no TCP service with a single port could be probed instead)"
        );
        Finding::warning("tunnels", subject, found).why(why)
    };
    let others = if backends.len() > 1 { "and likewise on the others" } else { "" };
    let at = |command: &str, note: &str| {
        let notes = [others, note].into_iter().filter(|note| !note.is_empty());
        match notes.collect::<Vec<_>>().join("; ") {
            notes if notes.is_empty() => on_host(backends[0], command),
            notes => format!("{}  # {notes}", on_host(backends[0], command)),
        }
    };
    let add = at(&add_command(vips, *is_tunnel), "");
    let doctor = at("spillway doctor", "shows what is missing");
    let finding = match prefix {
        Some(prefix) => {
            let watch = format!("tcpdump -nc 3 src net {prefix}");
            finding.mend(at(&watch, "nothing arrives: the path drops it"))
        }
        None => finding,
    };
    match (is_tunnel, is_partial) {
        (false, _) => finding.mend(add),
        (true, true) => finding.mend(doctor).mend(add),
        (true, false) => {
            let all = vips.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            let (port, note) = match is_gue {
                true => (" --gue-port PORT", "if none is running; the pool's port, or 6080"),
                false => ("", "if none is running"),
            };
            let receiver = format!(
                "setsid -f spillwayd receiver --interface INTERFACE --allow-source {source} --vip {all}{port}"
            );
            finding.mend(doctor).mend(add).or(at(&receiver, note))
        }
    }
}

/// The commands that add VIPs to a backend. Without a tunnel the backend is on the link where the balancer or a router
/// answers ARP for the VIPs, so it must not answer ARP for them.
fn add_command(vips: &BTreeSet<IpAddr>, is_tunnel: bool) -> String {
    let quiet = "sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2";
    let add = vips.iter().take(MAX_COMMANDS).map(|vip| {
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

/// Runs a command on a backend: on this host it would be wrong.
fn on_host(host: IpAddr, command: &str) -> String {
    if command.contains([';', '&']) {
        return format!("ssh {host} '{command}'");
    }
    format!("ssh {host} {command}")
}

/// Smallest value of `backend update --mtu`, bytes.
const MIN_MTU: u32 = 1_280;

/// Backends that large packets do not reach, unless that is already known.
fn too_narrow(facts: &Facts, probes: &[VipProbe]) -> Vec<Finding> {
    let mut path_mtus: BTreeMap<IpAddr, (Option<u32>, bool)> = BTreeMap::new();
    for probe in probes.iter().filter(|probe| is_unexplained(facts, probe)) {
        let mtu = probe.path_mtu().filter(|mtu| *mtu >= MIN_MTU);
        // The smallest known path MTU counts.
        let (known, _) = path_mtus.entry(probe.backend).or_insert((mtu, probe.is_tunnel()));
        *known = [*known, mtu].into_iter().flatten().min();
    }
    let mut groups: BTreeMap<(Option<u32>, bool), Vec<IpAddr>> = BTreeMap::new();
    path_mtus.into_iter().for_each(|(backend, what)| groups.entry(what).or_default().push(backend));
    let found = groups.into_iter();
    found.map(|((mtu, in_it), backends)| too_large(facts, mtu, in_it, &backends)).collect()
}

fn too_large(facts: &Facts, mtu: Option<u32>, is_tunnel: bool, backends: &[IpAddr]) -> Finding {
    let client = facts.environment.client_mtu;
    let (arrive, with) = match is_tunnel {
        true => ("arrive through the tunnel", " with the tunnel"),
        false => ("arrive", ""),
    };
    let most = mtu.map(|mtu| format!(" (path MTU {mtu}{with})")).unwrap_or_default();
    let found = format!("packets of {client} bytes do not {arrive}, small ones do{most}");
    let finding = Finding::warning("tunnels", first_and_count(backends), found).why(
        "a switch, a router or the backend's interface has a smaller MTU than this host, and larger packets are lost silently: \
         large uploads hang, unless backends ask clients for smaller segments. Raise that MTU, or configure the \
         backend's `mtu`, and clients are told",
    );
    let bytes = mtu.map_or_else(|| "BYTES".into(), |mtu| mtu.to_string());
    let update = |backend: String| format!("spillway backend update {backend} --mtu {bytes}");
    match backends {
        _ if backends.len() <= MAX_COMMANDS => {
            backends.iter().fold(finding, |finding, one| finding.mend(update(one.to_string())))
        }
        _ => finding.mend(format!("{}  # for each of them", update("ADDRESS".into()))),
    }
}

/// Whether large packets do not arrive and nothing explains it: neither a configured `mtu`, unless it is too large, nor
/// a finding of another check on this host.
fn is_unexplained(facts: &Facts, probe: &VipProbe) -> bool {
    match (&probe.result, probe.path_mtu()) {
        (VipProbeResult::Narrow { .. }, Some(path_mtu)) => {
            mtu::local_limit(facts, probe.backend).is_none_or(|limit| limit > path_mtu)
        }
        (VipProbeResult::Narrow { .. }, None) => {
            !has_mtu(facts, probe.backend) && !mtu::is_limited(facts, probe.backend)
        }
        _ => false,
    }
}

/// Whether the backend has a configured `mtu`.
fn has_mtu(facts: &Facts, backend: IpAddr) -> bool {
    matches!(&facts.daemon, Some(DaemonState::Answers { configuration, .. }) if configuration.with_mtu.contains(&backend))
}

/// Values of `rp_filter` (Linux, networking/ip-sysctl).
const STRICT: i64 = 1;
const LOOSE: i64 = 2;

/// Replaces "no answer" if this host would drop the answer: a reverse path filter drops packets from a VIP without
/// a route, and a strict one also those whose route uses another interface.
fn account_for_rp_filter(facts: &Facts, probe: &VipProbe) -> VipProbe {
    let is_silent = matches!(probe.result, VipProbeResult::Silent { is_host_up: true, .. });
    match rp_filter_reason(facts, probe).filter(|_| is_silent) {
        Some(why) => {
            let why = format!("this host would drop its answer: {why}");
            VipProbe { result: VipProbeResult::NotProbed(why), ..probe.clone() }
        }
        None => probe.clone(),
    }
}

/// Why the reverse path filter drops answers of the VIP; `None`: it does not. IPv6 has no such filter.
fn rp_filter_reason(facts: &Facts, probe: &VipProbe) -> Option<String> {
    if probe.vip.is_ipv6() {
        return None;
    }
    let from = facts.network.route(probe.backend)?.interface;
    let name = facts.network.name(from);
    let value = facts.sysctls.effective(&name, "rp_filter")?;
    let filter = format!("its reverse path filter (rp_filter={value} on {name})");
    match facts.network.survey.routes.get(&probe.vip)? {
        Err(why @ (Unresolved::NoRoute | Unresolved::Refused(_))) => {
            let is_on = matches!(value, STRICT | LOOSE);
            is_on.then(|| format!("{filter} needs a route to the VIP, but there is {why}"))
        }
        Ok(back) if value == STRICT && back.interface != from => {
            let back = facts.network.name(back.interface);
            Some(format!(
                "{filter} needs the route to the VIP on that interface, but it is on {back}"
            ))
        }
        _ => None,
    }
}
