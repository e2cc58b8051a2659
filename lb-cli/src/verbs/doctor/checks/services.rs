//! Whether services have backends that take new connections, as the daemon has it.

use std::collections::BTreeMap;

use lb_daemon::dataplane::Role;

use super::{Facts, Finding, commands};
use crate::{
    output::count,
    verbs::doctor::facts::{Daemon, Idle, Served},
};

const CHECK: &str = "services";
/// Commands that are printed for a pool.
const MOST: usize = 3;

pub(super) fn judge(facts: &Facts) -> Vec<Finding> {
    match &facts.daemon {
        None => Vec::new(),
        Some(Daemon::Silent(_)) => vec![
            Finding::warning(CHECK, "balancer", "cannot be judged: the daemon does not answer")
                .why("only the daemon knows which backends take new connections")
                .mend(commands::start(facts, Role::Balancer, None)),
        ],
        // The check of the daemon says so.
        Some(Daemon::Answers { generation: 0, .. }) => Vec::new(),
        Some(Daemon::Answers { told, .. }) if told.unusable.is_some() => Vec::new(),
        Some(Daemon::Answers { told, .. }) if told.served.is_empty() => vec![
            Finding::warning(CHECK, "balancer", "there are none")
                .why("without services no packet is balanced")
                .mend("spillway apply -f FILE"),
        ],
        Some(Daemon::Answers { told, .. }) => of_pools(&told.served),
    }
}

fn of_pools(served: &[Served]) -> Vec<Finding> {
    let mut wrong: Vec<_> = served.iter().filter_map(of_pool).collect();
    // Problems first.
    wrong.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    let well: Vec<_> = served.iter().filter(|served| of_pool(served).is_none()).collect();
    if well.is_empty() {
        return wrong;
    }
    let services: usize = well.iter().map(|served| served.services.len()).sum();
    let backends = well.iter().flat_map(|served| &served.backends);
    let (up, idle): (Vec<_>, Vec<_>) = backends.partition(|backend| backend.idle.is_none());
    let up = count(up.len() as u64, "backend");
    let found = match idle.len() {
        0 => format!("{up} up"),
        idle => format!("{up} up, {idle} taken out by the configuration"),
    };
    wrong.push(Finding::ok(CHECK, count(services as u64, "service"), found));
    wrong
}

/// What is wrong with the services of a pool; `None`: nothing is.
fn of_pool(served: &Served) -> Option<Finding> {
    let Served { pool, services, backends } = served;
    let subject = some(services);
    if backends.is_empty() {
        return Some(
            Finding::problem(CHECK, subject, format!("pool {pool} has no backend"))
                .why("every new connection is dropped")
                .mend(format!("spillway backend create ADDRESS --pool {pool} --region REGION")),
        );
    }
    let mut idle: BTreeMap<&Idle, Vec<String>> = BTreeMap::new();
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
        up if idle.keys().any(|why| !why.is_wanted()) => {
            let are = if up == 1 { "is" } else { "are" };
            Finding::warning(CHECK, subject, format!("{up} of {all} backends {are} up"))
        }
        _ => return None,
    };
    let why: Vec<_> =
        idle.iter().map(|(why, of)| format!("{}: {}", some(of), words(why))).collect();
    let mends = idle.iter().map(|(why, of)| mend(pool, why, of));
    Some(mends.take(MOST).fold(finding.why(why.join("; ")), Finding::mend))
}

fn words(idle: &Idle) -> String {
    match idle {
        Idle::Unhealthy(why) | Idle::Unreachable(why) => why.clone(),
        Idle::Unchecked => "not checked yet".into(),
        Idle::NoNextHop(why) => format!("no next hop: {why}"),
        Idle::Disabled => "disabled".into(),
        Idle::Drained => "drained".into(),
        Idle::Weightless => "its weight is 0".into(),
        Idle::RegionDrained(region) => format!("region {region} is drained"),
        Idle::Isolated(region) => {
            format!("region {region} is not asked, since the pool's isolation is strict")
        }
    }
}

/// A command for the first of these backends, and for all of them where one is enough.
fn mend(pool: &str, idle: &Idle, backends: &[String]) -> String {
    let first = &backends[0];
    match idle {
        Idle::Unhealthy(_) => {
            format!("ssh {first} ss -lntup  # does the application listen, and answer its check?")
        }
        Idle::Unreachable(_) => format!("ping -c 3 {first}  # is the host up, and the way to it?"),
        Idle::Unchecked => "spillway doctor  # again, when the first checks have ended".into(),
        Idle::NoNextHop(_) => {
            format!(
                "ip route get {first}  # `neighbours` below says what is wrong with the next hop"
            )
        }
        Idle::Disabled | Idle::Drained => {
            format!("spillway backend enable {} --pool {pool}", backends.join(" "))
        }
        Idle::Weightless => format!("spillway backend update {first} --pool {pool} --weight 1"),
        Idle::RegionDrained(region) => format!("spillway pool enable {pool} --region {region}"),
        Idle::Isolated(_) => format!("spillway pool update {pool} --isolation none"),
    }
}

/// The first, and how many more.
fn some(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first, more @ ..] => format!("{first} and {} more", more.len()),
    }
}
