use super::{
    Row,
    fixture::{balancer, configuration},
    run_all,
};
use crate::{
    facts::{DaemonState, Facts, IdleReason, PoolBackend},
    finding::{
        Finding,
        Level::{Ok, Problem, Warning},
    },
};

pub(super) const ROWS: &[Row] = &[
    (
        balancer,
        |f| both(f, IdleReason::Unhealthy(REFUSED.into())),
        "services",
        Problem,
        "web",
        "ssh 10.1.0.11 ss -lntup  # is the application listening, and answering its check?",
    ),
    (
        balancer,
        |f| {
            both(f, IdleReason::UnhealthyInTunnel("check web of 203.0.113.1: no connection".into()))
        },
        "services",
        Problem,
        "web",
        "ssh 10.1.0.11 'spillway doctor; ss -lntup'  # does it have the VIP and a receiver that allows it, and does \
         the application listen there?",
    ),
    (
        balancer,
        |f| configuration(f).served[0].is_tunnel_unchecked = true,
        "services",
        Warning,
        "web",
        "spillway edit  # set via = \"tunnel\" in a health check of pool web",
    ),
    (
        balancer,
        |f| both(f, IdleReason::Unreachable("check web: the host is silent".into())),
        "services",
        Problem,
        "web",
        "ping -c 3 10.1.0.11  # are the host and the path to it up?",
    ),
    (
        balancer,
        |f| both(f, IdleReason::Unchecked),
        "services",
        Problem,
        "web",
        "spillway doctor  # again, after the first checks",
    ),
    (
        balancer,
        |f| both(f, IdleReason::NoNextHop("10.0.0.1 on eth0 does not answer".into())),
        "services",
        Problem,
        "web",
        "ip route get 10.1.0.11  # `neighbours` below shows the problem with the next hop",
    ),
    (
        balancer,
        |f| both(f, IdleReason::Disabled),
        "services",
        Problem,
        "web",
        "spillway backend update 10.1.0.11 --pool web --admin-state active",
    ),
    (
        balancer,
        |f| both(f, IdleReason::Drained),
        "services",
        Problem,
        "web",
        "spillway backend update 10.1.0.11 --pool web --admin-state active",
    ),
    (
        balancer,
        |f| both(f, IdleReason::Overridden(vec!["pools/web/drain".into()])),
        "services",
        Problem,
        "web",
        "spillway override remove pools/web/drain",
    ),
    (
        balancer,
        |f| both(f, IdleReason::ZeroWeight),
        "services",
        Problem,
        "web",
        "spillway backend update 10.1.0.11 --pool web --weight 1",
    ),
    (
        balancer,
        |f| both(f, IdleReason::RegionDrained("eu".into())),
        "services",
        Problem,
        "web",
        "spillway edit  # pool web, region eu: drained = false, scaler = 1",
    ),
    (
        balancer,
        |f| both(f, IdleReason::Isolated("eu".into())),
        "services",
        Problem,
        "web",
        "spillway pool update web --isolation none",
    ),
    (
        balancer,
        |f| configuration(f).served[0].backends.clear(),
        "services",
        Problem,
        "web",
        "spillway backend create ADDRESS --pool web --region REGION",
    ),
    (
        balancer,
        |f| configuration(f).served.clear(),
        "services",
        Warning,
        "balancer",
        "spillway apply -f FILE",
    ),
    // Some take connections.
    (
        balancer,
        |f| one(f, IdleReason::Unhealthy(REFUSED.into())),
        "services",
        Warning,
        "web",
        "ssh 10.1.0.11 ss -lntup  # is the application listening, and answering its check?",
    ),
    // Taken out by the operator.
    (balancer, |f| one(f, IdleReason::Drained), "services", Ok, "", ""),
    (balancer, |f| one(f, IdleReason::Disabled), "services", Ok, "", ""),
];

const REFUSED: &str = "check web: connection refused";

fn one(facts: &mut Facts, idle: IdleReason) {
    configuration(facts).served[0].backends[0].idle = Some(idle);
}

fn both(facts: &mut Facts, idle: IdleReason) {
    for backend in &mut configuration(facts).served[0].backends {
        backend.idle = Some(idle.clone());
    }
}

/// Removes the finding about services that a silent daemon causes besides the one about the daemon.
pub(super) fn remove_unknown_services(wrong: &mut Vec<Finding>) {
    let first = wrong.remove(0);
    let finding = (first.check, first.level, first.found.as_str());
    assert_eq!(finding, ("services", Warning, "unknown: the daemon does not answer"));
    assert_eq!(first.mend.len(), 1, "{first:?}");
}

/// Clients notice this first.
#[test]
fn services_come_first_and_say_which_backends_are_down_and_why() {
    let mut facts = balancer();
    both(&mut facts, IdleReason::Unhealthy(REFUSED.into()));
    let served = &mut configuration(&mut facts).served[0];
    served.services.push("webs".into());
    let more = PoolBackend { address: "10.1.0.13".into(), idle: Some(IdleReason::Drained) };
    served.backends.push(more);
    facts.host.btf = false;
    let all = run_all(&facts);
    assert_eq!((all[0].check, all[0].level), ("services", Problem));
    assert_eq!(all[0].subject, "web and 1 more");
    assert_eq!(all[0].found, "none of 3 backends is up");
    assert_eq!(
        all[0].why,
        "10.1.0.11 and 1 more: check web: connection refused; 10.1.0.13: drained"
    );
    assert_eq!(all[0].mend.len(), 2, "{all:#?}");

    let mut facts = balancer();
    let mut other = configuration(&mut facts).served[0].clone();
    (other.pool, other.services) = ("other".into(), vec!["x".into(), "y".into()]);
    other.backends.pop();
    other.backends[0].idle = Some(IdleReason::NoNextHop("no route".into()));
    configuration(&mut facts).served.push(other);
    one(&mut facts, IdleReason::Unhealthy(REFUSED.into()));
    let all: Vec<_> = run_all(&facts).into_iter().filter(|it| it.check == "services").collect();
    let finding = |at: usize| (all[at].level, all[at].subject.as_str(), all[at].found.as_str());
    assert_eq!(all.len(), 2, "{all:#?}");
    assert_eq!(finding(0), (Problem, "x and 1 more", "its only backend is not up"));
    assert_eq!(finding(1), (Warning, "web", "1 of 2 backends is up"));

    let mut facts = balancer();
    one(&mut facts, IdleReason::Drained);
    let all = run_all(&facts);
    assert_eq!((all[0].level, all[0].subject.as_str()), (Ok, "1 service"));
    assert_eq!(all[0].found, "1 backend up, 1 taken out by the configuration or overrides");
}

#[test]
fn without_an_answer_services_are_not_judged() {
    let mut facts = balancer();
    facts.daemon = Some(DaemonState::Silent("nothing listens there".into()));
    let mut wrong: Vec<_> = run_all(&facts).into_iter().filter(|f| f.level != Ok).collect();
    remove_unknown_services(&mut wrong);
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    facts.components.clear();
    facts.daemon = None;
    assert!(
        run_all(&facts).iter().all(|finding| finding.check != "services"),
        "no balancer is here"
    );
}
