use std::{collections::BTreeSet, net::IpAddr, time::Instant};

use lb_common::abi::sizes::MapSizes;
use proptest::prelude::*;

use super::*;
use crate::arbitrary;
use crate::{
    AdminState, Backend, Configuration, Fragments, GroupSettings, Isolation, Pool, Ports, Rate,
    Region, Scaler, WhenFull,
    ids::{Ids, Quarantine},
};

const KEY: [u64; 2] = [1, 2];

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn ids(configuration: &Configuration) -> Ids {
    Ids::default()
        .next(None, configuration, &MapSizes::DEFAULT, &Quarantine::default(), Instant::now())
        .unwrap()
}

fn plan(configuration: &Configuration, own: Option<&str>) -> Plan {
    let own = own.map(name);
    build(&inputs(configuration, own.as_ref(), &ids(configuration)), None).unwrap()
}

fn inputs<'a>(
    configuration: &'a Configuration,
    own: Option<&'a Name>,
    ids: &'a Ids,
) -> PlanInputs<'a> {
    const NOTHING: &BTreeMap<Name, MarkedOut> = &BTreeMap::new();
    PlanInputs { configuration, own, ids, hash_key: KEY, source_prefix: None, out: NOTHING }
}

/// One pool `web` of `(address, region, weight)`; `overflow` is what region `b` overflows to.
fn configuration(backends: &[(&str, &str, u32)], overflow: &[&str]) -> Configuration {
    let mut configuration = Configuration::default();
    let mut pool = Pool { slots: 251, ..Pool::default() };
    for (address, region, weight) in backends {
        configuration.regions.entry(name(region)).or_default();
        let (region, admin_state) = (name(region), AdminState::Active);
        let backend =
            Backend { region, weight: *weight, admin_state, mtu: None, max_connection_rate: None };
        pool.backends.insert(address.parse().unwrap(), backend);
    }
    let overflow_to = overflow.iter().map(|region| name(region)).collect();
    configuration.regions.insert(name("b"), Region { overflow_to });
    configuration.pools.insert(name("web"), pool.into());
    configuration
}

fn only(plan: &Plan) -> &PlannedPool {
    plan.pools.values().next().unwrap()
}

/// Names of a pool's regions in the planned order.
fn order(configuration: &Configuration, own: Option<&str>) -> Vec<String> {
    let ids = ids(configuration);
    let names: BTreeMap<u32, &Name> = ids.regions().map(|(name, index)| (index, name)).collect();
    let plan = plan(configuration, own);
    only(&plan).groups.iter().map(|group| names[&group.region].to_string()).collect()
}

#[test]
fn regions_come_by_nearness_then_by_name() {
    let backends =
        [("10.0.0.1", "a", 1), ("10.0.0.2", "b", 1), ("10.0.0.3", "c", 1), ("10.0.0.4", "d", 1)];
    let configuration = configuration(&backends, &["d", "a"]);
    assert_eq!(order(&configuration, Some("b")), ["b", "d", "a", "c"]);
    assert_eq!(order(&configuration, Some("c")), ["c", "a", "b", "d"]);
    assert_eq!(order(&configuration, None), ["a", "b", "c", "d"]);
    assert_eq!(order(&configuration, Some("unheard-of")), ["a", "b", "c", "d"]);
}

#[test]
fn what_a_region_overflows_to_is_followed_breadth_first() {
    let backends = ["a", "b", "c", "d", "e", "f"].map(|region| (region, region));
    let backends: Vec<_> = backends.iter().enumerate().map(|(n, (_, r))| (n, *r)).collect();
    let addresses: Vec<_> = (0..6).map(|n| format!("10.0.0.{}", n + 1)).collect();
    let backends: Vec<_> = backends.iter().map(|(n, r)| (&*addresses[*n], *r, 1)).collect();
    let mut configuration = configuration(&backends, &["f", "d"]);
    let mut overflow = |from: &str, to: &[&str]| {
        let overflow_to = to.iter().map(|to| name(to)).collect();
        configuration.regions.insert(name(from), Region { overflow_to });
    };
    // b -> f, d; f -> c; d -> e, c; c -> a.
    overflow("f", &["c"]);
    overflow("d", &["e", "c"]);
    overflow("c", &["a"]);
    assert_eq!(order(&configuration, Some("b")), ["b", "f", "d", "c", "e", "a"]);
    assert_eq!(order(&configuration, Some("d")), ["d", "e", "c", "a", "b", "f"]);
    assert_eq!(order(&configuration, Some("a")), ["a", "b", "c", "d", "e", "f"]);
    // The way leads on through a region where the pool has nobody.
    configuration.pool_mut(&name("web")).unwrap().backends.remove(&ip("10.0.0.4"));
    assert_eq!(order(&configuration, Some("b")), ["b", "f", "c", "e", "a"]);
}

#[test]
fn preferred_regions_come_first_and_strict_isolation_has_no_second() {
    let backends = [("10.0.0.1", "a", 1), ("10.0.0.2", "b", 1), ("10.0.0.3", "c", 1)];
    let mut configuration = configuration(&backends, &["a"]);
    configuration.regions.insert(name("nobody"), Region::default());
    let pool = |configuration: &mut Configuration, isolation, preferred: &[&str]| {
        let pool = configuration.pool_mut(&name("web")).unwrap();
        pool.isolation = isolation;
        pool.preferred_regions = preferred.iter().map(|region| name(region)).collect();
    };
    pool(&mut configuration, Isolation::None, &["nobody", "c"]);
    assert_eq!(order(&configuration, Some("b")), ["c", "b", "a"]);
    assert_eq!(order(&configuration, None), ["c", "a", "b"]);
    pool(&mut configuration, Isolation::OnFailure, &[]);
    assert_eq!(order(&configuration, Some("b")), ["b", "a", "c"]);
    pool(&mut configuration, Isolation::Strict, &[]);
    assert_eq!(order(&configuration, Some("b")), ["b"]);
    pool(&mut configuration, Isolation::Strict, &["c", "b"]);
    assert_eq!(order(&configuration, Some("b")), ["c"]);
    // It has backends, but none in the daemon's own region: the nearest that has some.
    pool(&mut configuration, Isolation::Strict, &[]);
    assert_eq!(order(&configuration, Some("nobody")), ["a"]);
}

#[test]
fn regions_without_members_or_without_weight_have_no_group() {
    let backends = [("10.0.0.1", "a", 0), ("10.0.0.2", "c", 1), ("10.0.0.3", "c", 0)];
    let configuration = configuration(&backends, &["a", "c"]);
    assert_eq!(order(&configuration, Some("b")), ["c"]);
    let plan = plan(&configuration, Some("b"));
    let pool = only(&plan);
    assert_eq!(pool.idle, BTreeSet::from(["10.0.0.1".parse::<IpAddr>().unwrap()]));
    let members: Vec<_> =
        pool.groups[0].members.iter().map(|m| (m.address.to_string(), m.weighted)).collect();
    assert_eq!(members, [("10.0.0.2".into(), true), ("10.0.0.3".into(), false)]);
}

#[test]
fn a_pool_is_limited_by_a_capacity_a_scaler_or_a_members_rate() {
    let backends = [("10.0.0.1", "b", 1), ("10.0.0.2", "b", 1)];
    let limited = |change: fn(&mut Pool)| {
        let mut configuration = configuration(&backends, &[]);
        change(configuration.pool_mut(&name("web")).unwrap());
        only(&plan(&configuration, None)).is_limited()
    };
    let group = |pool: &mut Pool, capacity, scaler| {
        pool.groups.insert(name("b"), GroupSettings { capacity, scaler, drained: false });
    };
    assert!(!limited(|_| {}));
    assert!(limited(|pool| {
        pool.backends.values_mut().next().unwrap().max_connection_rate = Rate::new(5.0);
    }));
    let mut configuration = configuration(&backends, &[]);
    for (capacity, scaler) in [(Rate::new(5.0), Scaler::WHOLE), (None, Scaler::NONE)] {
        group(configuration.pool_mut(&name("web")).unwrap(), capacity, scaler);
        assert!(only(&plan(&configuration, None)).is_limited());
    }
}

#[test]
fn ranks_follow_the_sixteen_bytes_of_a_key_not_the_order_of_versions() {
    let backends = [("10.0.0.9", "b", 1), ("::1", "b", 1), ("2001:db8::1", "b", 1)];
    let plan = plan(&configuration(&backends, &[]), None);
    let members = &only(&plan).groups[0].members;
    let addresses: Vec<_> = members.iter().map(|member| member.address.to_string()).collect();
    assert_eq!(addresses, ["::1", "10.0.0.9", "2001:db8::1"]);
}

#[test]
fn pools_with_the_same_members_and_weights_share_a_table() {
    let backends = [("10.0.0.1", "b", 1), ("10.0.0.2", "b", 2)];
    let mut configuration = configuration(&backends, &[]);
    let web = (*configuration.pools[&name("web")]).clone();
    let mut doubled = web.clone();
    doubled.backends.values_mut().for_each(|backend| backend.weight *= 2);
    let mut other = web.clone();
    other.slots = 257;
    configuration.pools.insert(name("doubled"), doubled.into());
    configuration.pools.insert(name("other"), other.into());
    let plan = plan(&configuration, None);
    assert_eq!(plan.tables.len(), 2, "one of 251 slots for two pools, one of 257");
    assert_eq!(plan.backends.len(), 2);
}

#[test]
fn the_configured_hash_key_goes_before_the_daemons_own() {
    let mut configuration = configuration(&[("10.0.0.1", "b", 1)], &[]);
    assert_eq!(only(&plan(&configuration, None)).hash_key, KEY);
    configuration.hash_key = Some([7, 8]);
    assert_eq!(only(&plan(&configuration, None)).hash_key, [7, 8]);
}

#[test]
fn ids_of_another_configuration_are_refused() {
    let configuration = configuration(&[("10.0.0.1", "b", 1)], &[]);
    let refused = build(&inputs(&configuration, None, &Ids::default()), None);
    assert_eq!(refused.unwrap_err().to_string(), "backend 10.0.0.1: has no id");
}

proptest! {
    #[test]
    fn a_plan_says_all_that_the_configuration_says(configuration in arbitrary::configuration()) {
        let ids = ids(&configuration);
        let plan = plan(&configuration, Some("region1"));
        prop_assert_eq!(plan.pools.len(), configuration.pools.len());
        for (name, pool) in &configuration.pools {
            let planned = &plan.pools[&ids.pool(name).unwrap()];
            let grouped = planned.groups.iter().flat_map(|group| &group.members);
            let mut addresses: Vec<_> = grouped.map(|member| member.address).collect();
            addresses.extend(&planned.idle);
            addresses.sort_unstable();
            prop_assert_eq!(addresses, pool.backends.keys().copied().collect::<Vec<_>>());
            for group in &planned.groups {
                let spec = &plan.tables[&group.table];
                prop_assert_eq!(spec.slots(), pool.slots);
                for (member, key) in group.members.iter().zip(spec.keys()) {
                    prop_assert_eq!(member.address, key.address());
                    prop_assert_eq!(Some(member.id), ids.backend(&member.address));
                    let backend = &pool.backends[&member.address];
                    prop_assert_eq!(ids.region(&backend.region), Some(group.region));
                    prop_assert_eq!(member.weighted, backend.weight > 0);
                    prop_assert_eq!(member.rate, backend.max_connection_rate);
                    prop_assert_eq!(group.settings, pool.group(&backend.region));
                }
            }
            prop_assert_eq!(planned.balancers, configuration.balancers);
            prop_assert_eq!(planned.isolated, pool.isolation == Isolation::OnFailure);
            prop_assert_eq!(planned.panics, pool.panic_threshold_percent != 0);
        }
        let vips: BTreeSet<_> = configuration.services.values().map(|it| it.address).collect();
        prop_assert!(plan.unserved.keys().eq(&vips));
        for (vip, unserved) in &plan.unserved {
            let containing = configuration.vips.iter().filter(|(prefix, _)| prefix.contains(*vip));
            let longest = containing.max_by_key(|(prefix, _)| prefix.bits());
            prop_assert_eq!(*unserved, longest.map_or(Unserved::Auto, |(_, unserved)| *unserved));
        }
        let mut keys = BTreeSet::new();
        for (name, service) in &configuration.services {
            let protocol = service.protocol.number();
            let all = (0..=u16::MAX).filter(|port| match &service.ports {
                Ports::Any => *port == 0,
                Ports::Listed(list) => list.each().any(|listed| listed == *port),
            });
            let mut own: BTreeSet<_> =
                all.map(|port| ServiceKey::new(service.address, port, protocol)).collect();
            if service.fragments == Fragments::Served {
                own.insert(ServiceKey::new(service.address, 0, protocol + 128));
            }
            prop_assert_eq!(own.len(), service.keys());
            for key in own {
                prop_assert!(keys.insert(key), "one key of two services: {:?}", key);
                let planned = &plan.services[&key];
                prop_assert_eq!(Some(planned.index), ids.service(name));
                prop_assert_eq!(Some(planned.pool), ids.pool(&service.pool));
                prop_assert_eq!(planned.affinity, service.affinity);
                prop_assert_eq!(planned.fragments, service.fragments == Fragments::Served);
                prop_assert_eq!(planned.rejects, service.when_full == WhenFull::Reject);
                prop_assert_eq!(planned.tracked, service.idle_timeout);
            }
        }
        prop_assert_eq!(plan.services.len(), keys.len());
        let named: BTreeSet<_> =
            plan.pools.values().flat_map(|pool| &pool.groups).map(|group| group.table).collect();
        prop_assert_eq!(named, plan.tables.keys().copied().collect::<BTreeSet<_>>());
    }

    #[test]
    fn a_plan_that_reuses_an_earlier_one_is_the_same(
        first in arbitrary::configuration(),
        second in arbitrary::configuration(),
        replaced in any::<u8>(),
        removed in any::<u8>(),
        others in any::<[bool; 4]>(),
        out in any::<prop::sample::Index>(),
    ) {
        let mut next = first.clone();
        for (n, (name, pool)) in second.pools.iter().enumerate() {
            if replaced & 1 << n != 0 {
                next.pools.insert(name.clone(), Arc::clone(pool));
            } else if removed & 1 << n != 0 {
                next.pools.remove(name);
            }
        }
        let [regions, balancers, hash_key, vips] = others;
        if regions {
            next.regions = second.regions;
        }
        if balancers {
            next.balancers = second.balancers;
        }
        if hash_key {
            next.hash_key = second.hash_key;
        }
        if vips {
            next.vips = second.vips;
        }
        next.services.retain(|_, service| next.pools.contains_key(&service.pool));

        let ids = ids(&first);
        let after = |before| {
            let now = Instant::now();
            ids.next(before, &next, &MapSizes::DEFAULT, &Quarantine::default(), now).unwrap()
        };
        let next_ids = after(Some(&first));
        prop_assert_eq!(&next_ids, &after(None));
        let own = name("region1");
        let before = inputs(&first, Some(&own), &ids);
        let earlier = build(&before, None).unwrap();
        let members: Vec<_> = next
            .pools
            .iter()
            .flat_map(|(name, pool)| pool.backends.keys().map(move |address| (name, *address)))
            .collect();
        let out: BTreeMap<Name, MarkedOut> = match &*members {
            [] => BTreeMap::new(),
            members => {
                let (name, address) = out.get(members);
                let members = [*address].into();
                [((*name).clone(), MarkedOut { members, ..MarkedOut::default() })].into()
            }
        };
        let now = PlanInputs { out: &out, ..inputs(&next, Some(&own), &next_ids) };
        let reusing = build(&now, Some((&before, &earlier))).unwrap();
        prop_assert_eq!(&reusing, &build(&now, None).unwrap());
        // What is the same is not planned again.
        let again = build(&now, Some((&now, &reusing))).unwrap();
        for (index, pool) in &again.pools {
            prop_assert!(Arc::ptr_eq(pool, &reusing.pools[index]));
        }
        prop_assert!(Arc::ptr_eq(&again.backends, &reusing.backends));
    }

    /// What is set for VIPs changes no pool, table or service.
    #[test]
    fn a_plan_with_other_ranges_of_vips_is_the_same_but_for_them(
        first in arbitrary::configuration(),
        second in arbitrary::configuration(),
    ) {
        let next = Configuration { vips: second.vips, ..first.clone() };
        let (ids, own) = (ids(&first), name("region1"));
        let before = inputs(&first, Some(&own), &ids);
        let earlier = build(&before, None).unwrap();
        let after = build(&inputs(&next, Some(&own), &ids), Some((&before, &earlier))).unwrap();
        for (index, pool) in &after.pools {
            prop_assert!(Arc::ptr_eq(pool, &earlier.pools[index]));
        }
        prop_assert!(Arc::ptr_eq(&after.backends, &earlier.backends));
        prop_assert_eq!(&Plan { unserved: earlier.unserved.clone(), ..after }, &earlier);
    }
}
