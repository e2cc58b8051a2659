//! Pools and their backends.

use std::{
    collections::{BTreeMap, HashMap, hash_map::Entry},
    net::IpAddr,
    time::Duration,
};

use lb_base::Quoted;
use lb_common::abi::limits::MAX_REGIONS_PER_POOL;
use lb_model::{
    Backend, Configuration, Encapsulation, EncapsulationKind, GroupSettings, Name, Pool, Scaler,
    bounds, maglev::MAX_MEMBERS,
};
use spillway_proto::v1;

use super::{
    Names,
    invalid::{Invalid, ObjectPath, all, each},
    slots, values,
};

/// Shortest and longest settle time.
const SETTLE_TIMES: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(24 * 60 * 60));
/// Shortest and longest slow start.
const SLOW_STARTS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60 * 60));
/// Shortest and longest hold.
const HOLD_DOWNS: (Duration, Duration) = SETTLE_TIMES;

/// A pool whose references resolve and whose tables can be built.
pub(super) fn pool(
    at: &ObjectPath,
    message: &v1::Pool,
    regions: &Names<'_>,
    checks: &Names<'_>,
) -> Result<Pool, Invalid> {
    let backends = backends(at, message, regions);
    let groups = groups(at, &message.groups, regions, backends.as_ref().ok());
    let (members, number, regions_and_panic, times, encapsulation) = all((
        all((backends, checks.resolve_each(at, "health_checks", &message.health_checks), groups)),
        slots::read(at, message.slots),
        all((
            values::value(at, "isolation", message.isolation),
            regions.resolve_each(at, "preferred_regions", &message.preferred_regions),
            values::within_or(
                at,
                "panic_threshold_percent",
                message.panic_threshold_percent,
                bounds::PANIC_THRESHOLDS,
                0,
            ),
        )),
        all((
            settle_time(at, message.settle_time),
            slow_start(at, message.slow_start),
            hold_down(at, message),
        )),
        encapsulation(at, message),
    ))?;
    let (backends, health_checks, groups) = members;
    let (isolation, preferred_regions, panic_threshold_percent) = regions_and_panic;
    let (settle_time, slow_start, (hold_down, max_hold_down)) = times;
    let mut pool = Pool {
        backends,
        health_checks,
        groups,
        isolation: isolation.unwrap_or_default(),
        preferred_regions,
        panic_threshold_percent,
        settle_time,
        slow_start,
        hold_down,
        max_hold_down,
        encapsulation,
        ..Pool::default()
    };
    tables(at, &pool)?;
    slots::set(at, &mut pool, number)?;
    Ok(pool)
}

fn backends(
    at: &ObjectPath,
    pool: &v1::Pool,
    regions: &Names<'_>,
) -> Result<BTreeMap<IpAddr, Backend>, Invalid> {
    let mut first = HashMap::new();
    each(pool.backends.iter().enumerate().map(|(index, message)| {
        let at = at.child("backends", index, &message.address);
        let address = values::address(&at, &message.address);
        let address = address.and_then(|address| match first.entry(address) {
            Entry::Vacant(place) => {
                place.insert(index);
                Ok(address)
            }
            Entry::Occupied(first) => {
                let cause =
                    format!("{address} is already the address of backends[{}]", first.get());
                Err(at.invalid("address", cause))
            }
        });
        let in_pool = match message.pool.is_empty() || message.pool == pool.name {
            true => Ok(()),
            false => {
                let (is, name) = (Quoted(&message.pool), Quoted(&pool.name));
                Err(at.invalid("pool", format!("is {is}, but the backend is in {name}")))
            }
        };
        let backend = backend(&at, message, regions);
        let backend = values::without_etag(&at, &message.etag, backend);
        all((address, backend, in_pool)).map(|(address, backend, ())| (address, backend))
    }))
}

fn backend(
    at: &ObjectPath,
    message: &v1::Backend,
    regions: &Names<'_>,
) -> Result<Backend, Invalid> {
    let rate = message.max_connection_rate_per_second;
    let (region, weight, admin_state, mtu, max_connection_rate) = all((
        regions.resolve(at, "region", &message.region),
        match message.weight {
            None => Ok(1),
            Some(weight) => values::within(at, "weight", weight, bounds::WEIGHTS),
        },
        values::value(at, "admin_state", message.admin_state),
        match message.mtu {
            0 => Ok(None),
            mtu => values::within(at, "mtu", mtu, bounds::MTUS).map(Some),
        },
        values::rate(at, "max_connection_rate_per_second", rate),
    ))?;
    let admin_state = admin_state.unwrap_or_default();
    Ok(Backend { region, weight, admin_state, mtu, max_connection_rate })
}

fn encapsulation(at: &ObjectPath, message: &v1::Pool) -> Result<Encapsulation, Invalid> {
    let kind = values::value(at, "encapsulation", message.encapsulation)?.unwrap_or_default();
    match (kind, message.gue_port) {
        (EncapsulationKind::Gue, port) => {
            let default = Encapsulation::DEFAULT_GUE_PORT;
            let port = values::within_or(at, "gue_port", port, bounds::PORTS, default)?;
            Ok(Encapsulation::Gue(port))
        }
        (EncapsulationKind::IpInIp, 0) => Ok(Encapsulation::IpInIp),
        (EncapsulationKind::Direct, 0) => Ok(Encapsulation::Direct),
        (_, port) => {
            let cause = format!("{port} is set, but the encapsulation is not gue; leave it out");
            Err(at.invalid("gue_port", cause).depending_on_fields(at, &["encapsulation"]))
        }
    }
}

fn settle_time(at: &ObjectPath, time: Option<prost_types::Duration>) -> Result<Duration, Invalid> {
    let (shortest, longest) = SETTLE_TIMES;
    match time {
        None => Ok(Pool::DEFAULT_SETTLE_TIME),
        Some(time) => values::duration(at, "settle_time", time, shortest, longest, "24h"),
    }
}

fn slow_start(at: &ObjectPath, time: Option<prost_types::Duration>) -> Result<Duration, Invalid> {
    let (shortest, longest) = SLOW_STARTS;
    let Some(time) = time else { return Ok(Duration::ZERO) };
    values::duration(at, "slow_start", time, shortest, longest, "1h")
}

/// The first hold, and the longest one.
fn hold_down(at: &ObjectPath, message: &v1::Pool) -> Result<(Duration, Duration), Invalid> {
    let (shortest, longest) = HOLD_DOWNS;
    let time = |field, time: Option<prost_types::Duration>, default| match time {
        None => Ok(default),
        Some(time) => values::duration(at, field, time, shortest, longest, "24h"),
    };
    let first = match message.hold_down {
        Some(prost_types::Duration { seconds: 0, nanos: 0 }) => Ok(Duration::ZERO),
        first => time("hold_down", first, Pool::DEFAULT_HOLD_DOWN),
    };
    let default = first.as_ref().map_or(Duration::ZERO, |first| *first);
    let default = Pool::DEFAULT_MAX_HOLD_DOWN.max(default);
    let (first, most) = all((first, time("max_hold_down", message.max_hold_down, default)))?;
    if most < first {
        let cause = format!("{most:?} is less than hold_down, {first:?}");
        return Err(at.invalid("max_hold_down", cause).depending_on_fields(at, &["hold_down"]));
    }
    Ok((first, most))
}

fn tables(at: &ObjectPath, pool: &Pool) -> Result<(), Invalid> {
    let mut regions: BTreeMap<&Name, usize> = BTreeMap::new();
    for backend in pool.backends.values() {
        *regions.entry(&backend.region).or_default() += 1;
    }
    if regions.len() > MAX_REGIONS_PER_POOL {
        let cause =
            format!("are in {} regions; at most {MAX_REGIONS_PER_POOL} are allowed", regions.len());
        return Err(at.invalid("backends", cause));
    }
    if let Some((region, count)) = regions.into_iter().find(|(_, count)| *count > MAX_MEMBERS) {
        let cause = format!(
            "{count} are in region {region:?}; at most {MAX_MEMBERS} are allowed: make several regions or pools of them"
        );
        return Err(at.invalid("backends", cause));
    }
    if !pool.backends.is_empty() && pool.backends.values().all(|backend| backend.weight == 0) {
        let cause =
            "all weights are 0, so no backend would take connections; give at least one a weight";
        return Err(at.invalid("backends", cause));
    }
    Ok(())
}

/// A backend address means one host in all pools: one region and one MTU, and either all of its pools use direct or none,
/// because gateways are allowed only without it. It must not be a VIP, or its packets would return to the balancer.
pub(super) fn consistent(
    message: &v1::Configuration,
    names: &Names<'_>,
    configuration: &Configuration,
) -> Result<(), Invalid> {
    let vips: HashMap<IpAddr, &Name> =
        configuration.services.iter().rev().map(|(name, s)| (s.address, name)).collect();
    let mut first: HashMap<IpAddr, (&str, &Backend, Encapsulation)> = HashMap::new();
    let mut invalid = Invalid::default();
    for (index, pool) in message.pools.iter().enumerate() {
        let place = ObjectPath::default().child("pools", index, &pool.name);
        let mut is_told = false;
        let backends = names.at(index).and_then(|name| configuration.pools.get(name));
        for (index, message) in pool.backends.iter().enumerate() {
            let at = place.child("backends", index, &message.address);
            let Ok(address) = message.address.parse() else { continue };
            if let Some(service) = vips.get(&address) {
                let cause = format!("{address} is the address of service {service:?}");
                invalid.add(at.invalid("address", cause));
            }
            let here = backends.and_then(|pool| Some((pool, pool.backends.get(&address)?)));
            let Some((of, backend)) = here else { continue };
            let how = of.encapsulation;
            let (other, same, there) = *first.entry(address).or_insert((&pool.name, backend, how));
            if (how == Encapsulation::Direct) != (there == Encapsulation::Direct) && !is_told {
                is_told = true;
                let cause = format!(
                    "is {} here, but pool {other:?} has {address} too, with {}; if one pool uses direct, all pools with that backend must",
                    how.name(),
                    there.name()
                );
                invalid.add(place.invalid("encapsulation", cause));
            }
            if same.region != backend.region {
                let (here, there) = (&backend.region, &same.region);
                let cause = format!("is {here:?} here but {there:?} in pool {other:?}");
                invalid.add(at.invalid("region", cause));
            }
            if same.mtu != backend.mtu {
                let spell = |mtu: Option<u16>| mtu.map_or("unset".into(), |mtu| mtu.to_string());
                let (here, there) = (spell(backend.mtu), spell(same.mtu));
                let cause = format!("is {here} here but {there} in pool {other:?}");
                invalid.add(at.invalid("mtu", cause));
            }
        }
    }
    invalid.or(())
}

/// The settings of a pool's groups; default settings are left out. Without `backends`, which are wrong, it is not checked
/// whether groups fit them.
fn groups(
    at: &ObjectPath,
    messages: &[v1::Group],
    regions: &Names<'_>,
    backends: Option<&BTreeMap<IpAddr, Backend>>,
) -> Result<BTreeMap<Name, GroupSettings>, Invalid> {
    let mut first = HashMap::new();
    let pool = at;
    let groups: Result<Vec<_>, _> = each(messages.iter().enumerate().map(|(index, message)| {
        let at = at.child("groups", index, &message.region);
        let region = regions.resolve(&at, "region", &message.region).and_then(|region| {
            let first = *first.entry(region.clone()).or_insert(index);
            match first == index {
                true => Ok(region),
                false => {
                    let cause = format!("{region:?} is already the region of groups[{first}]");
                    Err(at.invalid("region", cause))
                }
            }
        });
        let here: Option<Vec<_>> = backends.zip(region.as_ref().ok()).map(|(backends, region)| {
            backends.values().filter(|backend| backend.region == *region).collect()
        });
        let region = region.and_then(|region| match here.as_ref().is_some_and(Vec::is_empty) {
            true => {
                let cause = format!("the pool has no backend in {region:?}");
                Err(at.invalid("region", cause).depending_on_fields(pool, &["backends"]))
            }
            false => Ok(region),
        });
        let is_unlimited = |b: &&Backend| b.weight > 0 && b.max_connection_rate.is_none();
        let unlimited = here.is_some_and(|here| here.iter().any(is_unlimited));
        all((region, group(&at, pool, message, unlimited)))
    }));
    let groups = groups?.into_iter();
    Ok(groups.filter(|(_, group)| *group != GroupSettings::default()).collect())
}

fn group(
    at: &ObjectPath,
    pool: &ObjectPath,
    message: &v1::Group,
    unlimited: bool,
) -> Result<GroupSettings, Invalid> {
    let scaler = match message.scaler {
        None => Ok(Scaler::WHOLE),
        Some(share) => Scaler::new(share).ok_or_else(|| {
            at.invalid("scaler", format_args!("{share} is neither 0 nor within 0.1 to 1"))
        }),
    };
    let capacity = values::rate(at, "capacity_per_second", message.capacity_per_second);
    let (capacity, scaler) = all((capacity, scaler))?;
    let scales = scaler != Scaler::NONE && scaler != Scaler::WHOLE;
    if scales && capacity.is_none() && unlimited {
        let cause = format!(
            "{scaler} has no effect without a limit; set capacity_per_second, or the \
             max_connection_rate_per_second of every backend there"
        );
        let invalid = at.invalid("scaler", cause).depending_on_fields(pool, &["backends"]);
        return Err(invalid.depending_on_fields(at, &["capacity_per_second"]));
    }
    Ok(GroupSettings { capacity, scaler, drained: message.drained })
}

/// Backends of IPv6 services must have an MTU that lets IPv6's smallest packet through their tunnel, if the MTU is
/// configured.
pub(super) fn wide_enough(
    message: &v1::Configuration,
    names: &Names<'_>,
    configuration: &Configuration,
) -> Result<(), Invalid> {
    let six = configuration.services.iter().filter(|(_, service)| service.address.is_ipv6());
    let by_pool: BTreeMap<&Name, &Name> =
        six.map(|(name, service)| (&service.pool, name)).collect();
    let mut invalid = Invalid::default();
    for (index, message) in message.pools.iter().enumerate() {
        let Some(name) = names.at(index) else { continue };
        let Some(service) = by_pool.get(name) else { continue };
        let Some(pool) = configuration.pools.get(name) else { continue };
        let at = ObjectPath::default().child("pools", index, &message.name);
        for (index, backend) in message.backends.iter().enumerate() {
            let Ok(address) = backend.address.parse::<IpAddr>() else { continue };
            let least = u32::from(pool.encapsulation.least_mtu(address));
            if backend.mtu != 0 && backend.mtu < least {
                let at = at.child("backends", index, &backend.address);
                let cause = format!(
                    "{} leaves less than 1280 bytes in the tunnel, which IPv6 service {:?} needs; \
                     give at least {least}",
                    backend.mtu,
                    service.to_string()
                );
                invalid.add(at.invalid("mtu", cause));
            }
        }
    }
    invalid.or(())
}
