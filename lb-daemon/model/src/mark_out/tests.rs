use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{AdminState, Backend, Name, Pool, plan::MarkedOut};

const SECOND: Duration = Duration::from_secs(1);
/// Settle time of most tests.
const SETTLE: Duration = Duration::from_secs(60);

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn member(n: u8) -> IpAddr {
    [10, 0, 0, n].into()
}

/// What is known of the regions `a` and `b` of a pool; `x` is away, `o` here, `?` unknown.
fn regions(a: &str, b: &str) -> BTreeMap<Name, RegionAvailability> {
    let mut next = 0;
    let mut region = |text: &str| {
        let availabilitys = text.chars().filter(|c| *c != '!').map(|c| {
            next += 1;
            let availability = match c {
                'x' => Availability::Unavailable,
                'o' => Availability::Available,
                _ => Availability::Unknown,
            };
            (member(next), availability)
        });
        RegionAvailability { closed: text.contains('!'), members: availabilitys.collect() }
    };
    [(name("a"), region(a)), (name("b"), region(b))].into()
}

/// A pool over time.
struct Watched {
    start: Instant,
    mark_outs: MarkOuts,
}

impl Watched {
    fn new() -> Self {
        Self { start: Instant::now(), mark_outs: MarkOuts::default() }
    }

    /// Who is marked out after some seconds: `2 4 a`.
    fn look(&mut self, second: u32, a: &str, b: &str) -> String {
        let mut next = MarkOuts::default();
        let time = (SETTLE, self.start + second * SECOND);
        self.mark_outs.observe(&mut next, &name("web"), &regions(a, b), time);
        self.mark_outs = next;
        let out = self.mark_outs.out().remove(&name("web")).unwrap_or_default();
        let members = out.members.iter().map(|member| match member {
            IpAddr::V4(v4) => v4.octets()[3].to_string(),
            IpAddr::V6(_) => unreachable!(),
        });
        let regions = out.regions.iter().map(Name::to_string);
        members.chain(regions).collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn a_member_is_out_after_the_settle_time_and_back_at_once() {
    let mut watched = Watched::new();
    assert_eq!(watched.look(0, "xo", "oo"), "");
    assert_eq!(watched.look(59, "xo", "oo"), "");
    assert_eq!(watched.look(60, "xo", "oo"), "1");
    assert_eq!(watched.look(500, "xo", "oo"), "1");
    assert_eq!(watched.look(501, "oo", "oo"), "");
    // One that comes and goes is not out until it was gone for long once more.
    assert_eq!(watched.look(502, "xo", "oo"), "");
    assert_eq!(watched.look(561, "xo", "oo"), "");
    assert_eq!(watched.look(562, "xo", "oo"), "1");
}

#[test]
fn a_region_is_out_as_a_whole_and_its_members_only_when_one_returns() {
    let mut watched = Watched::new();
    assert_eq!(watched.look(0, "xxx", "oo"), "");
    assert_eq!(watched.look(60, "xxx", "oo"), "a");
    assert_eq!(watched.look(100, "xox", "oo"), "1 3");
    assert_eq!(watched.look(101, "ooo", "oo"), "");
}

#[test]
fn a_region_that_takes_nothing_is_out_whoever_is_there() {
    let mut watched = Watched::new();
    assert_eq!(watched.look(0, "oo!", "oo"), "");
    assert_eq!(watched.look(60, "oo!", "oo"), "a");
    assert_eq!(watched.look(61, "oo", "oo"), "");
}

#[test]
fn nobody_is_out_where_nobody_could_be_home_instead() {
    let mut watched = Watched::new();
    watched.look(0, "xx", "xx");
    assert_eq!(watched.look(1000, "xx", "xx"), "");
    // The one region is out, and then the other fails too: nothing is gained by another change.
    let mut watched = Watched::new();
    watched.look(0, "xx", "o");
    assert_eq!(watched.look(60, "xx", "o"), "a");
    watched.look(61, "xx", "x");
    assert_eq!(watched.look(900, "xx", "x"), "a");
}

#[test]
fn what_nobody_has_asked_yet_stays_as_an_earlier_daemon_left_it() {
    let out = MarkedOut { members: [member(3)].into(), regions: [name("a")].into() };
    let found = BTreeMap::from([(name("web"), out.clone())]);
    let mut watched = Watched { mark_outs: MarkOuts::recovered(found.clone()), ..Watched::new() };
    assert_eq!(watched.mark_outs.out(), found);
    assert_eq!(watched.look(0, "??", "?o"), "3 a");
    assert_eq!(watched.look(900, "??", "?o"), "3 a");
    assert_eq!(watched.look(901, "xx", "xo"), "3 a");
    assert_eq!(watched.look(902, "ox", "oo"), "");
    assert!(!watched.mark_outs.is_out(&name("web"), &member(3)));
}

proptest! {
    #[test]
    fn whoever_is_here_is_home_and_whoever_is_out_was_away(
        looks in vec((1u32..100, "[xo?]{3}!?", "[xo?]{2}!?"), 1..40),
    ) {
        let mut watched = Watched::new();
        let mut second = 0;
        let mut away: BTreeMap<IpAddr, u32> = BTreeMap::new();
        for (after, a, b) in looks {
            second += after;
            watched.look(second, &a, &b);
            let now = regions(&a, &b);
            let members: BTreeMap<_, _> = now.values().flat_map(|r| r.members.clone()).collect();
            for (member, availability) in members {
                match availability {
                    Availability::Unavailable => drop(away.entry(member).or_insert(second)),
                    _ => drop(away.remove(&member)),
                }
                let out = watched.mark_outs.is_out(&name("web"), &member);
                prop_assert!(!out || availability != Availability::Available);
                let long = away.get(&member).is_some_and(|since| second - since >= 60);
                let here = now.values().find(|region| region.members.contains_key(&member));
                let others = here.unwrap().members.values().any(|p| *p == Availability::Available);
                prop_assert!(out || !(long && others));
            }
        }
    }
}

fn out(members: &[u8], regions: &[&str]) -> BTreeMap<Name, MarkedOut> {
    let members = members.iter().map(|number| member(*number)).collect();
    let regions = regions.iter().map(|region| name(region)).collect();
    [(name("web"), MarkedOut { members, regions })].into()
}

/// What others marked out is taken over with the times of the own view.
#[test]
fn what_is_marked_out_can_be_replaced_and_times_stay() {
    let mut watched = Watched::new();
    watched.look(0, "xoo", "x");
    assert_eq!(watched.look(30, "xxo", "x"), "");
    watched.mark_outs = watched.mark_outs.with_out(&out(&[3], &["b"]));
    assert_eq!(watched.mark_outs.out(), out(&[3], &["b"]));
    assert_eq!(watched.look(31, "xx?", "x"), "3 b", "one that was not checked stays out");
    assert_eq!(watched.look(59, "xxo", "x"), "b");
    assert_eq!(watched.look(60, "xxo", "x"), "1 b");
    watched.mark_outs = watched.mark_outs.with_out(&BTreeMap::new());
    assert_eq!(watched.mark_outs.out(), BTreeMap::new());
    assert_eq!(watched.look(61, "xxo", "x"), "1 b");
    assert_eq!(watched.look(90, "xxo", "x"), "1 2 b");
}

#[test]
fn only_what_a_configuration_has_is_left() {
    let backend = |region: &str, weight| Backend {
        region: name(region),
        weight,
        admin_state: AdminState::Active,
        mtu: None,
        max_connection_rate: None,
    };
    let backends = [(1, "a", 1), (2, "a", 0), (3, "b", 0)];
    let backends =
        backends.map(|(number, region, weight)| (member(number), backend(region, weight)));
    let pool = Pool { backends: backends.into(), ..Pool::default() };
    let mut configuration = Configuration::default();
    configuration.pools.insert(name("web"), Arc::new(pool));
    let mut all = out(&[1, 2, 3, 4], &["a", "b", "c"]);
    all.insert(name("none"), MarkedOut::default());
    let within = MarkOuts::recovered(all).within(&configuration);
    assert_eq!(within.out(), out(&[1], &["a"]));
    assert!(!within.has(&name("none")));
    let others = MarkOuts::recovered(out(&[2], &["b"])).within(&configuration);
    assert_eq!(others, MarkOuts::default());
}
