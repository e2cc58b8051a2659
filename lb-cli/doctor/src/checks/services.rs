//! Whether services have backends that take new connections, according to the daemon.

use std::collections::BTreeMap;

use lb_base::count;
use lb_maps::Component;

use crate::{
    facts::{DaemonState, Facts, IdleReason, PoolServices},
    finding::{Finding, first_and_count},
    start_command::start_command,
};

const CHECK: &str = "services";
/// Most commands to print for a pool.
const MAX_COMMANDS: usize = 3;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    match &facts.daemon {
        None => Vec::new(),
        Some(DaemonState::Silent(_)) => vec![
            Finding::warning(CHECK, "balancer", "unknown: the daemon does not answer")
                .why("only the daemon knows which backends take new connections")
                .mend(start_command(facts, Component::Balancer, None)),
        ],
        // The check of the daemon reports it.
        Some(DaemonState::Answers { generation: 0, .. }) => Vec::new(),
        Some(DaemonState::Answers { configuration, .. }) if configuration.unusable.is_some() => {
            Vec::new()
        }
        Some(DaemonState::Answers { configuration, .. }) if configuration.served.is_empty() => {
            vec![
                Finding::warning(CHECK, "balancer", "none are configured")
                    .why("without services no packet is balanced")
                    .mend("spillway apply -f FILE"),
            ]
        }
        Some(DaemonState::Answers { configuration, .. }) => check_pools(&configuration.served),
    }
}

fn check_pools(served: &[PoolServices]) -> Vec<Finding> {
    let unchecked = served.iter().filter_map(tunnel_unchecked);
    let mut wrong: Vec<_> = served.iter().filter_map(check_pool).chain(unchecked).collect();
    // Problems first.
    wrong.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    let in_order: Vec<_> = served.iter().filter(|served| check_pool(served).is_none()).collect();
    if in_order.is_empty() {
        return wrong;
    }
    let services: usize = in_order.iter().map(|served| served.services.len()).sum();
    let backends = in_order.iter().flat_map(|served| &served.backends);
    let (up, idle): (Vec<_>, Vec<_>) = backends.partition(|backend| backend.idle.is_none());
    let up = count(up.len() as u64, "backend");
    let found = match idle.len() {
        0 => format!("{up} up"),
        idle => format!("{up} up, {idle} taken out by the configuration or overrides"),
    };
    wrong.push(Finding::ok(CHECK, count(services as u64, "service"), found));
    wrong
}

/// That a pool's checks pass whether or not its tunnel works.
fn tunnel_unchecked(served: &PoolServices) -> Option<Finding> {
    served.is_tunnel_unchecked.then(|| {
        let pool = &served.pool;
        let found = format!("no health check of pool {pool} goes through the tunnel");
        Finding::warning(CHECK, first_and_count(&served.services), found)
            .why("a backend without the VIP or the receiver counts as up, and clients that it gets time out")
            .mend(format!("spillway edit  # set via = \"tunnel\" in a health check of pool {pool}"))
    })
}

/// `None`: the services of the pool are in order.
fn check_pool(served: &PoolServices) -> Option<Finding> {
    let PoolServices { pool, services, backends, is_tunnel_unchecked: _ } = served;
    let subject = first_and_count(services);
    if backends.is_empty() {
        return Some(
            Finding::problem(CHECK, subject, format!("pool {pool} has no backend"))
                .why("every new connection is dropped")
                .mend(format!("spillway backend create ADDRESS --pool {pool} --region REGION")),
        );
    }
    let mut idle: BTreeMap<&IdleReason, Vec<String>> = BTreeMap::new();
    for backend in backends {
        if let Some(why) = &backend.idle {
            idle.entry(why).or_default().push(backend.address.clone());
        }
    }
    let down: usize = idle.values().map(Vec::len).sum();
    let all = backends.len();
    let finding = match all - down {
        0 => {
            let none = if all == 1 {
                "its only backend is not up".into()
            } else {
                format!("none of {all} backends is up")
            };
            Finding::problem(CHECK, subject, none)
        }
        up if idle.keys().any(|why| !why.is_asked_for()) => {
            let are = if up == 1 { "is" } else { "are" };
            Finding::warning(CHECK, subject, format!("{up} of {all} backends {are} up"))
        }
        _ => return None,
    };
    let why: Vec<_> = idle
        .iter()
        .map(|(why, of)| format!("{}: {}", first_and_count(of), describe(why)))
        .collect();
    let mends = idle.iter().map(|(why, of)| fix_command(pool, why, of));
    Some(mends.take(MAX_COMMANDS).fold(finding.why(why.join("; ")), Finding::mend))
}

fn describe(idle: &IdleReason) -> String {
    match idle {
        IdleReason::Unhealthy(why)
        | IdleReason::UnhealthyInTunnel(why)
        | IdleReason::Unreachable(why) => why.clone(),
        IdleReason::Unchecked => "not checked yet".into(),
        IdleReason::NoNextHop(why) => format!("no next hop: {why}"),
        IdleReason::Disabled => "disabled".into(),
        IdleReason::Drained => "drained".into(),
        IdleReason::Overridden(names) => format!("override {}", names.join(", ")),
        IdleReason::ZeroWeight => "its weight is 0".into(),
        IdleReason::RegionDrained(region) => format!("region {region} is drained"),
        IdleReason::Isolated(region) => {
            format!("region {region} is not used because the pool is strictly isolated")
        }
    }
}

/// A command for the first of these backends, or for all of them if one command can do it.
fn fix_command(pool: &str, idle: &IdleReason, backends: &[String]) -> String {
    let first = &backends[0];
    match idle {
        IdleReason::Unhealthy(_) => {
            format!(
                "ssh {first} ss -lntup  # is the application listening, and answering its check?"
            )
        }
        IdleReason::UnhealthyInTunnel(_) => {
            format!(
                "ssh {first} 'spillway doctor; ss -lntup'  # does it have the VIP and a receiver that allows it, and \
                 does the application listen there?"
            )
        }
        IdleReason::Unreachable(_) => {
            format!("ping -c 3 {first}  # are the host and the path to it up?")
        }
        IdleReason::Unchecked => "spillway doctor  # again, after the first checks".into(),
        IdleReason::NoNextHop(_) => {
            format!(
                "ip route get {first}  # `neighbours` below shows the problem with the next hop"
            )
        }
        IdleReason::Disabled | IdleReason::Drained => {
            format!("spillway backend update {first} --pool {pool} --admin-state active")
        }
        IdleReason::Overridden(names) => format!("spillway override remove {}", names.join(" ")),
        IdleReason::ZeroWeight => {
            format!("spillway backend update {first} --pool {pool} --weight 1")
        }
        IdleReason::RegionDrained(region) => {
            format!("spillway edit  # pool {pool}, region {region}: drained = false, scaler = 1")
        }
        IdleReason::Isolated(_) => format!("spillway pool update {pool} --isolation none"),
    }
}
