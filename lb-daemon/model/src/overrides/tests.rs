use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::{AdminState, Backend, Pool, Region};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn percent(percent: u8) -> Percent {
    Percent::try_from(percent).unwrap()
}

fn key(text: &str) -> Key {
    text.parse().unwrap()
}

fn asked(action: Action) -> Override {
    Override {
        action,
        who: "uid 0".into(),
        reason: String::new(),
        set_at: SystemTime::UNIX_EPOCH,
        until: None,
        absent_since: None,
    }
}

fn overrides(list: &[(&str, Action)]) -> Overrides {
    let mut overrides = Overrides::default();
    overrides.set(list.iter().map(|(path, action)| (key(path), asked(*action))));
    overrides
}

/// Pools `web` and `api` with a backend in each of two regions, one of which they share.
fn configuration() -> Configuration {
    let backend = |region: &str| Backend {
        region: name(region),
        weight: 1,
        admin_state: AdminState::Active,
        mtu: None,
        max_connection_rate: None,
    };
    let pool = |list: &[(&str, &str)]| {
        let backends = list.iter().map(|(address, region)| (ip(address), backend(region)));
        Arc::new(Pool { backends: backends.collect(), ..Pool::default() })
    };
    let mut configuration = Configuration::EMPTY.clone();
    let region = |it: &str| (name(it), Region { overflow_to: Vec::new() });
    configuration.regions = ["eu", "us"].map(region).into_iter().collect();
    configuration.pools = [
        (name("web"), pool(&[("10.0.0.1", "eu"), ("10.0.0.2", "us")])),
        (name("api"), pool(&[("10.0.0.1", "eu"), ("10.0.0.3", "us")])),
    ]
    .into();
    configuration
}

#[test]
fn keys_are_paths() {
    for path in [
        "backends/10.0.0.1/drain",
        "backends/2001:db8::1/weight",
        "pools/web/backends/10.0.0.1/disable",
        "pools/web/drain",
        "pools/web/regions/eu/scale",
        "regions/eu/drain",
        "local/backends/10.0.0.1/drain",
        "local/pools/web/backends/2001:db8::1/disable",
        "local/regions/eu/drain",
    ] {
        assert_eq!(key(path).to_string(), path);
        assert_eq!(key(path).is_local(), path.starts_with("local"));
    }
    for wrong in [
        "",
        "/",
        "drain",
        "backends",
        "backends/10.0.0.1",
        "backends/10.0.0/drain",
        "pools/Web/drain",
        "pools//drain",
        "regions/eu/us/drain",
        "regions/eu/off",
        "regions/eu/drain/",
        "pools/web/backends/drain",
        "local/backends/10.0.0.1/weight",
        "local/regions/eu/scale",
        "local/local/regions/eu/drain",
        "local/drain",
        "Local/regions/eu/drain",
    ] {
        assert_eq!(wrong.parse::<Key>(), Err(KeyError), "{wrong}");
    }
}

#[test]
fn each_target_allows_what_makes_sense_for_it() {
    let backend = key("backends/10.0.0.1/drain").target;
    let group = key("pools/web/regions/eu/drain").target;
    let (half, little) = (percent(50), percent(9));
    let error = |action: Action, target| action.check(target).err();
    assert_eq!(error(Action::Drain, &backend).or(error(Action::Drain, &group)), None);
    assert_eq!(error(Action::Disable, &backend).or(error(Action::Weight(little), &backend)), None);
    assert_eq!(
        error(Action::Scale(half), &group).or(error(Action::Scale(percent(0)), &group)),
        None
    );
    assert_eq!(error(Action::Scale(half), &backend), Some(ActionError::BackendScale));
    assert_eq!(error(Action::Disable, &group), Some(ActionError::GroupDisable));
    assert_eq!(error(Action::Weight(half), &group), Some(ActionError::GroupWeight));
    assert_eq!(error(Action::Scale(little), &group), Some(ActionError::Scale));
    assert_eq!(Percent::try_from(101), Err(PercentError));
}

#[test]
fn those_of_address_pool_group_and_region_act_together() {
    let (web, api, eu, us) = (name("web"), name("api"), name("eu"), name("us"));
    let (one, two) = (ip("10.0.0.1"), ip("10.0.0.2"));
    let all = overrides(&[
        ("backends/10.0.0.1/weight", Action::Weight(percent(50))),
        ("pools/web/backends/10.0.0.1/weight", Action::Weight(percent(40))),
        ("pools/api/backends/10.0.0.1/disable", Action::Disable),
        ("pools/web/regions/us/drain", Action::Drain),
    ]);
    let weight = |weight| MemberOverride { weight, ..MemberOverride::NONE };
    assert_eq!(all.member(&web, &one, &eu), weight(0.2));
    assert_eq!(all.member(&api, &one, &eu), MemberOverride { disabled: true, ..weight(0.5) });
    assert_eq!(
        all.member(&web, &two, &us),
        MemberOverride { drained: true, ..MemberOverride::NONE }
    );
    assert_eq!(all.member(&api, &ip("10.0.0.3"), &us), MemberOverride::NONE);
    let acting: Vec<_> = all.of_member(&web, &one, &eu).map(|(key, _)| key.to_string()).collect();
    assert_eq!(acting, ["backends/10.0.0.1/weight", "pools/web/backends/10.0.0.1/weight"]);
    let none = overrides(&[("backends/10.0.0.1/weight", Action::Weight(percent(0)))]);
    let drained = MemberOverride { drained: true, ..MemberOverride::NONE };
    assert_eq!(none.member(&web, &one, &eu), drained, "a weight of 0 is a drain");
}

#[test]
fn of_scales_the_lowest_counts_and_none_gives_more_than_the_configuration() {
    let (web, eu) = (name("web"), name("eu"));
    let settings = |scaler: f64, drained| GroupSettings {
        scaler: Scaler::new(scaler).unwrap(),
        drained,
        ..GroupSettings::default()
    };
    let scale = |list: &[(&str, Action)], configured| {
        overrides(list).group(&web, &eu).apply_to(configured).effective_scaler().share()
    };
    let (region, group, pool) =
        ("regions/eu/scale", "pools/web/regions/eu/scale", "pools/web/drain");
    let at = |it| Action::Scale(percent(it));
    assert_eq!(scale(&[(region, at(50)), (group, at(30))], settings(1.0, false)), 0.3);
    assert_eq!(scale(&[(region, at(20)), (group, at(30))], settings(1.0, false)), 0.2);
    assert_eq!(scale(&[(region, at(50))], settings(0.4, false)), 0.4);
    assert_eq!(scale(&[(region, at(50))], settings(1.0, true)), 0.0);
    assert_eq!(scale(&[(region, at(50)), (pool, Action::Drain)], settings(1.0, false)), 0.0);
    assert_eq!(scale(&[("regions/us/drain", Action::Drain)], settings(0.7, false)), 0.7);
    assert_eq!(scale(&[], settings(0.7, false)), 0.7);
}

#[test]
fn an_override_ends_at_its_time_and_an_hour_after_its_object() {
    let start = Moment { wall: SystemTime::UNIX_EPOCH, instant: Instant::now() };
    let at = |seconds| start.after(Duration::from_secs(seconds)).unwrap();
    let mut all = Overrides::default();
    let drain = key("backends/10.0.0.1/drain");
    let gone = key("backends/10.0.0.9/drain");
    all.set([
        (drain.clone(), Override { until: Some(at(60)), ..asked(Action::Drain) }),
        (gone.clone(), asked(Action::Drain)),
    ]);
    assert_eq!((all.revision(), all.next_end()), (1, Some(at(60).instant)));
    assert!(all.observe(&configuration(), at(10)) && !all.observe(&configuration(), at(11)));
    assert_eq!(all.get(&gone).unwrap().absent_since, Some(at(10)));
    assert_eq!(all.get(&drain).unwrap().absent_since, None);
    assert_eq!(all.expire(at(59).instant), []);
    let ended = all.expire(at(60).instant);
    assert_eq!(ended.iter().map(|it| (&it.0, it.2)).collect::<Vec<_>>(), [(&drain, End::Expired)]);
    assert_eq!(all.next_end(), Some(at(3610).instant));
    assert_eq!(all.expire(at(3609).instant), []);
    assert_eq!(all.expire(at(3610).instant)[0].2, End::Gone);
    assert!(all.is_empty() && all.next_end().is_none());
}

#[test]
fn an_object_that_comes_back_has_its_override() {
    let now = Moment { wall: SystemTime::UNIX_EPOCH, instant: Instant::now() };
    let mut all = overrides(&[("pools/web/regions/us/drain", Action::Drain)]);
    let before = configuration();
    assert!(!all.observe(&before, now), "it is there");
    let mut without = before.clone();
    let web = Arc::make_mut(without.pools.get_mut(&name("web")).unwrap());
    web.backends.remove(&ip("10.0.0.2"));
    assert!(all.observe(&without, now) && all.observe(&before, now));
    assert_eq!((all.iter().next().unwrap().1.absent_since, all.revision()), (None, 3));
}

#[test]
fn what_is_affected_follows_from_the_targets() {
    let of = |paths: &[&str]| {
        let keys: Vec<_> = paths.iter().map(|path| key(path)).collect();
        let found = affected(keys.iter().map(|key| &key.target), &configuration());
        let shown = found.into_iter().map(|it| {
            let backends: Vec<_> = it.backends.iter().map(ToString::to_string).collect();
            (it.pool.to_string(), backends.join(" "), it.has_groups)
        });
        shown.collect::<Vec<_>>()
    };
    let one = |pool: &str, backends: &str, groups| (pool.to_owned(), backends.to_owned(), groups);
    assert_eq!(
        of(&["backends/10.0.0.1/drain"]),
        [one("api", "10.0.0.1", false), one("web", "10.0.0.1", false)]
    );
    assert_eq!(of(&["pools/web/backends/10.0.0.1/drain"]), [one("web", "10.0.0.1", false)]);
    assert_eq!(of(&["pools/api/drain"]), [one("api", "10.0.0.1 10.0.0.3", true)]);
    assert_eq!(
        of(&["regions/us/scale", "pools/web/backends/10.0.0.1/weight"]),
        [one("api", "10.0.0.3", true), one("web", "10.0.0.1 10.0.0.2", true)]
    );
    assert_eq!(of(&["pools/none/drain", "backends/10.0.0.9/drain", "regions/asia/drain"]), []);
}

/// The rules once more, entry by entry.
fn naive(
    entries: &[(Key, Action)],
    pool: &Name,
    address: IpAddr,
    region: &Name,
) -> (bool, bool, f64) {
    let (mut drained, mut disabled, mut weight) = (false, false, 1.0);
    for (key, action) in entries {
        let acts = match &key.target {
            Target::Backend { address: it, pool: None } => *it == address,
            Target::Backend { address: it, pool: Some(of) } => *it == address && of == pool,
            Target::Pool(of) => of == pool,
            Target::Group { pool: of, region: it } => of == pool && it == region,
            Target::Region(it) => it == region,
        };
        if !acts {
            continue;
        }
        match action {
            Action::Drain => drained = true,
            Action::Disable => disabled = true,
            Action::Weight(it) if u8::from(*it) == 0 => drained = true,
            Action::Weight(it) => weight *= it.share(),
            Action::Scale(it) => drained |= u8::from(*it) == 0,
        }
    }
    (drained, disabled, weight)
}

fn any_entry() -> impl Strategy<Value = (Key, Action)> {
    let address = (1u8..4).prop_map(|it| IpAddr::from([10, 0, 0, it]));
    let pool = prop_oneof![Just(name("web")), Just(name("api"))];
    let region = prop_oneof![Just(name("eu")), Just(name("us"))];
    let target = prop_oneof![
        (address, prop::option::of(pool.clone()))
            .prop_map(|(address, pool)| Target::Backend { address, pool }),
        pool.clone().prop_map(Target::Pool),
        (pool, region.clone()).prop_map(|(pool, region)| Target::Group { pool, region }),
        region.prop_map(Target::Region),
    ];
    let percent = prop_oneof![Just(0u8), 10u8..=100].prop_map(percent);
    let action = prop_oneof![
        Just(Action::Drain),
        Just(Action::Disable),
        percent.clone().prop_map(Action::Weight),
        percent.prop_map(Action::Scale),
    ];
    (target, action)
        .prop_filter("allowed", |(target, action)| action.check(target).is_ok())
        .prop_flat_map(|(target, action)| {
            let key = Key::new(target, action.kind());
            let may_be_local = Scope::Local.check(action.kind()).is_ok();
            any::<bool>().prop_map(move |is_local| {
                let scope = if is_local && may_be_local { Scope::Local } else { Scope::Shared };
                (key.clone().with_scope(scope), action)
            })
        })
}

proptest! {
    #[test]
    fn members_are_as_a_naive_reading_of_the_rules_says(
        list in prop::collection::vec(any_entry(), 0..12),
    ) {
        // Of equal keys the last one counts.
        let by_key: BTreeMap<Key, Action> = list.into_iter().collect();
        let list: Vec<_> = by_key.into_iter().collect();
        let mut all = Overrides::default();
        all.set(list.iter().map(|(key, action)| (key.clone(), asked(*action))));
        for pool in ["web", "api"].map(name) {
            for last in 1u8..4 {
                for region in ["eu", "us"].map(name) {
                    let address = IpAddr::from([10, 0, 0, last]);
                    let it = all.member(&pool, &address, &region);
                    let (drained, disabled, weight) = naive(&list, &pool, address, &region);
                    prop_assert_eq!((it.drained, it.disabled), (drained, disabled));
                    prop_assert!((it.weight - weight).abs() < 1e-9);
                    // It is stopped, and would not be without the local ones.
                    let shared: Vec<_> = list.iter().filter(|(key, _)| !key.is_local()).cloned().collect();
                    let (stopped, held, _) = naive(&shared, &pool, address, &region);
                    let locally = (drained || disabled) && !stopped && !held;
                    prop_assert_eq!(it.stopped_locally, locally);
                }
            }
        }
    }
}

#[test]
fn following_replaces_all_and_keeps_what_is_as_it_was() {
    let now = Moment { wall: SystemTime::UNIX_EPOCH, instant: Instant::now() };
    let until = |seconds| now.after(Duration::from_secs(seconds));
    let mut overrides = overrides(&[("pools/web/drain", Action::Drain)]);
    let drain = |end| Override { until: end, ..asked(Action::Drain) };
    let [one, two, web] =
        ["backends/10.0.0.1/drain", "backends/10.0.0.9/drain", "pools/web/drain"].map(key);
    let shared = [(one.clone(), drain(until(9))), (two.clone(), drain(None))];
    assert_eq!(overrides.follow(shared.clone()), [one.clone(), two.clone(), web]);
    assert!(overrides.is_followed() && overrides.revision() == 2);
    assert!(overrides.observe(&configuration(), now));
    let absent = overrides.get(&two).unwrap().clone();
    assert_eq!(absent.absent_since, Some(now));
    // The same time by another clock is the same override.
    let mut later = shared.clone();
    let ending_in = |seconds| {
        until(9).map(|it| Moment { instant: now.instant + Duration::from_secs_f64(seconds), ..it })
    };
    later[0].1.until = ending_in(8.1);
    let before = overrides.clone();
    assert_eq!(overrides.follow(later.clone()), []);
    assert_eq!(overrides, before);
    // If the wall clock was set, it is the same one with another end.
    for seconds in [3600.0, 9.0] {
        let before = overrides.clone();
        later[0].1.until = ending_in(seconds);
        assert_eq!(overrides.follow(later.clone()), []);
        assert_eq!(overrides.revision(), before.revision() + 1);
        assert_eq!(overrides.get(&one).unwrap().until, ending_in(seconds));
        assert_eq!(overrides.get(&two), before.get(&two), "has no end");
    }
    later[0].1.until = until(10);
    later[1].1.who = "uid 1".into();
    assert_eq!(overrides.follow(later), [one.clone(), two.clone()]);
    assert_eq!(overrides.get(&one).unwrap().until, until(10));
    let who = Override { who: "uid 1".into(), ..absent };
    let changed = Override { absent_since: None, ..who.clone() };
    assert_eq!(overrides.get(&two), Some(&changed), "its hour begins with the change");
    assert!(overrides.observe(&configuration(), now));
    assert_eq!(overrides.get(&two), Some(&who));
    assert!(overrides.member(&name("web"), &ip("10.0.0.1"), &name("eu")).drained);

    let long = now.instant + Duration::from_secs(4000);
    assert_eq!((overrides.next_end(), overrides.expire(long)), (None, vec![]));
    let gone = |after, shown| {
        let wall = now.wall + Duration::from_secs(shown);
        let now = Moment { wall, instant: now.instant + Duration::from_secs(after) };
        overrides.gone(now).cloned().collect::<Vec<_>>()
    };
    assert_eq!((gone(3599, 3599), gone(3600, 3600)), (vec![], vec![two]));
    assert_eq!((gone(7200, 3599), gone(3599, 7200)), (vec![], vec![]), "by both clocks");
    let overdue = |after, time| {
        let now = now.instant + Duration::from_secs(after);
        overrides.overdue(now, Duration::from_secs(time)).cloned().collect::<Vec<_>>()
    };
    assert_eq!(
        (overdue(10, 0), overdue(19, 10), overdue(20, 10)),
        (vec![one.clone()], vec![], vec![one])
    );
    let revision = overrides.revision();
    overrides.unfollow();
    overrides.unfollow();
    assert_eq!((overrides.is_followed(), overrides.revision()), (false, revision + 1));
    assert_eq!((overrides.expire(long).len(), overrides.len()), (2, 0));
}
