use super::{
    Row, judge,
    scene::{balancer, told},
};
use crate::verbs::doctor::{
    facts::{Daemon, Facts, Idle, Member},
    finding::{
        Finding,
        Level::{Ok, Problem, Warning},
    },
};

pub(super) const ROWS: &[Row] = &[
    (
        balancer,
        |f| both(f, Idle::Unhealthy(REFUSED.into())),
        "services",
        Problem,
        "web",
        "ssh 10.1.0.11 ss -lntup  # does the application listen, and answer its check?",
    ),
    (
        balancer,
        |f| both(f, Idle::Unreachable("check web: the host is silent".into())),
        "services",
        Problem,
        "web",
        "ping -c 3 10.1.0.11  # is the host up, and the way to it?",
    ),
    (
        balancer,
        |f| both(f, Idle::Unchecked),
        "services",
        Problem,
        "web",
        "spillway doctor  # again, when the first checks have ended",
    ),
    (
        balancer,
        |f| both(f, Idle::NoNextHop("10.0.0.1 on eth0 does not answer".into())),
        "services",
        Problem,
        "web",
        "ip route get 10.1.0.11  # `neighbours` below says what is wrong with the next hop",
    ),
    (
        balancer,
        |f| both(f, Idle::Disabled),
        "services",
        Problem,
        "web",
        "spillway backend enable 10.1.0.11 10.1.0.12 --pool web",
    ),
    (
        balancer,
        |f| both(f, Idle::Drained),
        "services",
        Problem,
        "web",
        "spillway backend enable 10.1.0.11 10.1.0.12 --pool web",
    ),
    (
        balancer,
        |f| both(f, Idle::Weightless),
        "services",
        Problem,
        "web",
        "spillway backend update 10.1.0.11 --pool web --weight 1",
    ),
    (
        balancer,
        |f| both(f, Idle::RegionDrained("eu".into())),
        "services",
        Problem,
        "web",
        "spillway pool enable web --region eu",
    ),
    (
        balancer,
        |f| both(f, Idle::Isolated("eu".into())),
        "services",
        Problem,
        "web",
        "spillway pool update web --isolation none",
    ),
    (
        balancer,
        |f| told(f).served[0].backends.clear(),
        "services",
        Problem,
        "web",
        "spillway backend create ADDRESS --pool web --region REGION",
    ),
    (
        balancer,
        |f| told(f).served.clear(),
        "services",
        Warning,
        "balancer",
        "spillway apply -f FILE",
    ),
    // Some take connections.
    (
        balancer,
        |f| one(f, Idle::Unhealthy(REFUSED.into())),
        "services",
        Warning,
        "web",
        "ssh 10.1.0.11 ss -lntup  # does the application listen, and answer its check?",
    ),
    // As the operator wants it.
    (balancer, |f| one(f, Idle::Drained), "services", Ok, "", ""),
    (balancer, |f| one(f, Idle::Disabled), "services", Ok, "", ""),
];

const REFUSED: &str = "check web: connection refused";

fn one(facts: &mut Facts, idle: Idle) {
    told(facts).served[0].backends[0].idle = Some(idle);
}

fn both(facts: &mut Facts, idle: Idle) {
    for backend in &mut told(facts).served[0].backends {
        backend.idle = Some(idle.clone());
    }
}

/// Takes out what is said of services while the daemon is silent: it stands beside what is said of the daemon.
pub(super) fn take_unjudged(wrong: &mut Vec<Finding>) {
    let first = wrong.remove(0);
    let said = (first.check, first.level, first.found.as_str());
    assert_eq!(said, ("services", Warning, "cannot be judged: the daemon does not answer"));
    assert_eq!(first.mend.len(), 1, "{first:?}");
}

/// Whatever else is wrong: this is what clients notice.
#[test]
fn services_come_first_and_say_which_backends_are_down_and_why() {
    let mut facts = balancer();
    both(&mut facts, Idle::Unhealthy(REFUSED.into()));
    let served = &mut told(&mut facts).served[0];
    served.services.push("webs".into());
    let more = Member { address: "10.1.0.13".into(), idle: Some(Idle::Drained) };
    served.backends.push(more);
    facts.host.btf = false;
    let all = judge(&facts);
    assert_eq!((all[0].check, all[0].level), ("services", Problem));
    assert_eq!(all[0].subject, "web and 1 more");
    assert_eq!(all[0].found, "none of 3 backends is up");
    assert_eq!(
        all[0].why,
        "10.1.0.11 and 1 more: check web: connection refused; 10.1.0.13: drained"
    );
    assert_eq!(all[0].mend.len(), 2, "{all:#?}");

    let mut facts = balancer();
    let mut other = told(&mut facts).served[0].clone();
    (other.pool, other.services) = ("other".into(), vec!["x".into(), "y".into()]);
    other.backends.pop();
    other.backends[0].idle = Some(Idle::NoNextHop("no route".into()));
    told(&mut facts).served.push(other);
    one(&mut facts, Idle::Unhealthy(REFUSED.into()));
    let all: Vec<_> = judge(&facts).into_iter().filter(|it| it.check == "services").collect();
    let said = |at: usize| (all[at].level, all[at].subject.as_str(), all[at].found.as_str());
    assert_eq!(all.len(), 2, "{all:#?}");
    assert_eq!(said(0), (Problem, "x and 1 more", "its only backend is not up"));
    assert_eq!(said(1), (Warning, "web", "1 of 2 backends is up"));

    let mut facts = balancer();
    one(&mut facts, Idle::Drained);
    let all = judge(&facts);
    assert_eq!((all[0].level, all[0].subject.as_str()), (Ok, "1 service"));
    assert_eq!(all[0].found, "1 backend up, 1 taken out by the configuration");
}

/// It cannot be known without the daemon.
#[test]
fn without_an_answer_services_are_not_judged() {
    let mut facts = balancer();
    facts.daemon = Some(Daemon::Silent("nothing listens there".into()));
    let mut wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
    take_unjudged(&mut wrong);
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    facts.roles.clear();
    facts.daemon = None;
    assert!(judge(&facts).iter().all(|finding| finding.check != "services"), "no balancer is here");
}
