use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{AdminState, Affinity, Backend, Fragments, Ports, Protocol, Service, WhenFull};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn pool(addresses: impl IntoIterator<Item = u8>) -> Pool {
    let backend = Backend {
        region: name("eu"),
        weight: 1,
        admin_state: AdminState::Active,
        mtu: None,
        max_connection_rate: None,
    };
    let backends = addresses.into_iter().map(|last| ([10, 0, 0, last].into(), backend.clone()));
    Pool { backends: backends.collect(), ..Pool::default() }
}

/// Pools by name with the last bytes of their backends' addresses, and services with the pools that they use.
fn configuration(pools: &[(&str, &[u8])], services: &[(&str, &str)]) -> Configuration {
    let pools =
        pools.iter().map(|(at, backends)| (name(at), pool(backends.iter().copied()).into()));
    let services = services.iter().map(|(service, of)| {
        let service_of = Service {
            address: [192, 0, 2, 1].into(),
            ports: Ports::one(80),
            protocol: Protocol::Udp,
            pool: name(of),
            affinity: Affinity::Connection,
            when_full: WhenFull::Nearest,
            idle_timeout: Some(Duration::from_secs(1)),
            fragments: Fragments::Dropped,
        };
        (name(service), service_of)
    });
    Configuration { pools: pools.collect(), services: services.collect(), ..Configuration::EMPTY }
}

fn texts(old: &Configuration, new: &Configuration) -> Vec<String> {
    removals(old, new).iter().map(ToString::to_string).collect()
}

const TEN: [u8; 10] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];

#[test]
fn three_of_ten_backends_may_go_and_four_may_not() {
    let web = |backends: &[u8]| configuration(&[("web", backends)], &[("web", "web")]);
    assert_eq!(texts(&web(&TEN), &web(&TEN[3..])), [""; 0]);
    assert_eq!(
        texts(&web(&TEN), &web(&TEN[4..])),
        ["pool web loses 4 of 10 backends, more than 30 %"]
    );
    // New ones do not make up for those that go.
    assert_eq!(
        texts(&web(&TEN[..5]), &web(&TEN[2..])),
        ["pool web loses 2 of 5 backends, more than 30 %"]
    );
    assert_eq!(texts(&web(&TEN[..4]), &web(&TEN[1..4])), [""; 0], "a quarter");
    assert_eq!(texts(&web(&TEN[..3]), &web(&TEN[2..3])), [""; 0], "a pool of three");
    assert_eq!(texts(&web(&[]), &web(&TEN)), [""; 0]);
}

/// That no service uses the pool makes no difference.
#[test]
fn a_pool_that_stays_is_guarded_without_a_service_too() {
    let alone = |backends: &[u8]| configuration(&[("web", backends)], &[]);
    assert_eq!(
        texts(&alone(&TEN[..4]), &alone(&TEN[2..4])),
        ["pool web loses 2 of 4 backends, more than 30 %"]
    );
    assert_eq!(texts(&alone(&TEN), &configuration(&[("other", &TEN)], &[])), [""; 0]);
}

#[test]
fn a_service_does_not_lose_its_last_backend_unforced() {
    let before = configuration(&[("web", &[1]), ("other", &[]), ("dns", &[2])], &[("web", "web")]);
    let emptied = configuration(&[("web", &[]), ("other", &[]), ("dns", &[2])], &[("web", "web")]);
    let all = ["service web loses all backends, of which it has 1"];
    assert_eq!(texts(&before, &emptied), all);
    let mut moved = before.clone();
    moved.services.get_mut(&name("web")).unwrap().pool = name("other");
    assert_eq!(texts(&before, &moved), all);
    moved.services.get_mut(&name("web")).unwrap().pool = name("dns");
    assert_eq!(texts(&before, &moved), [""; 0], "it has others");
    // The service is what goes.
    let without = configuration(&[("web", &[1]), ("dns", &[2])], &[]);
    assert_eq!(texts(&before, &without), [""; 0]);
    let without = configuration(&[("dns", &[2])], &[]);
    assert_eq!(texts(&before, &without), [""; 0], "with its pool of one");
}

/// The service says it, so its pool does not say it again.
#[test]
fn a_large_pool_that_is_emptied_is_one_removal() {
    let pools: [(&str, &[u8]); 2] = [("web", &TEN), ("dns", &[2])];
    let before = configuration(&pools, &[("web", "web"), ("web6", "web")]);
    let emptied = configuration(&[("web", &[]), pools[1]], &[("web", "web"), ("web6", "web")]);
    assert_eq!(
        texts(&before, &emptied),
        [
            "service web loses all backends, of which it has 10",
            "service web6 loses all backends, of which it has 10",
        ]
    );
}

#[test]
fn a_pool_that_goes_with_its_services_loses_all() {
    let pools: [(&str, &[u8]); 2] = [("web", &TEN[..4]), ("dns", &[7])];
    let before = configuration(&pools, &[("web", "web")]);
    assert_eq!(
        texts(&before, &configuration(&pools[1..], &[])),
        ["pool web loses 4 of 4 backends, more than 30 %"]
    );
    // Another name of the pool, and one backend fewer.
    let renamed = configuration(&[("www", &TEN[..3])], &[("web", "www")]);
    assert_eq!(texts(&before, &renamed), [""; 0]);
    let renamed = configuration(&[("www", &TEN[..2])], &[("web", "www")]);
    assert_eq!(texts(&before, &renamed), ["pool web loses 2 of 4 backends, more than 30 %"]);
}

#[test]
fn an_empty_configuration_is_one_removal() {
    let before = configuration(&[("web", &TEN), ("dns", &[1])], &[("web", "web")]);
    let all = ["the configuration loses all backends, of which it has 11"];
    assert_eq!(texts(&before, &Configuration::EMPTY), all);
    // Also of pools that are too small for the rule of pools.
    let small = configuration(&[("web", &[1])], &[("web", "web")]);
    assert_eq!(removals(&small, &Configuration::EMPTY), [Removal::All { backends: 1 }]);
    let unused = configuration(&[("web", &TEN)], &[]);
    assert_eq!(texts(&unused, &Configuration::EMPTY), [""; 0]);
}

proptest! {
    /// The rule in other words: how many of the old backends are in neither configuration's place, by sets of numbers.
    #[test]
    fn of_one_pool_the_share_that_goes_decides(
        old in prop::collection::btree_set(0u8..12, 1..12),
        new in prop::collection::btree_set(0u8..12, 0..12),
    ) {
        let (before, after): (Vec<u8>, Vec<u8>) =
            (old.iter().copied().collect(), new.iter().copied().collect());
        let web = |backends: &[u8]| configuration(&[("web", backends)], &[("web", "web")]);
        let gone = old.difference(&new).count() as f64;
        let expected = new.is_empty() || old.len() >= 4 && gone / old.len() as f64 > 0.3 + 1e-9;
        prop_assert_eq!(!removals(&web(&before), &web(&after)).is_empty(), expected);
    }

    /// What adds, or changes no backend's place, needs no force.
    #[test]
    fn what_only_adds_is_never_guarded(
        old in prop::collection::vec(prop::collection::btree_set(0u8..9, 0..9), 1..4),
        more in prop::collection::vec(prop::collection::btree_set(0u8..9, 0..9), 1..4),
    ) {
        let names = ["a", "b", "c"];
        let grown: Vec<Vec<u8>> = old
            .iter()
            .enumerate()
            .map(|(at, had)| had.iter().chain(more.get(at).into_iter().flatten()).copied().collect())
            .collect();
        let old: Vec<Vec<u8>> = old.iter().map(|it| it.iter().copied().collect()).collect();
        let with = |pools: &[Vec<u8>]| {
            let pools: Vec<_> = names.iter().zip(pools).map(|(it, had)| (*it, &**had)).collect();
            let services: Vec<_> = pools.iter().map(|(it, _)| (*it, *it)).collect();
            configuration(&pools, &services)
        };
        prop_assert_eq!(texts(&with(&old), &with(&grown)), Vec::<String>::new());
    }
}
