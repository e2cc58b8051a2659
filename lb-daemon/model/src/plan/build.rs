use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
    sync::Arc,
};

use lb_common::abi::{limits::MAX_REGIONS_PER_POOL, service::ServiceKey};

use super::{
    MarkedOut, Plan, PlannedBackend, PlannedGroup, PlannedMember, PlannedPool, PlannedService,
};
use crate::{
    Backend, Configuration, Fragments, Ipv4Prefix, Isolation, Name, Pool, PortList, Ports, Service,
    WhenFull,
    ids::{BackendId, Ids},
    maglev::{BuildError, Member, MemberKey, TableSpec},
    unserved,
};

/// Why a configuration cannot be planned. A validated one with its own ids always can.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The ids are those of another configuration.
    #[error("{0}: has no id")]
    NoId(String),
    /// A descriptor has no room for so many groups.
    #[error(
        "pool {pool}: members in {regions} regions, at most {MAX_REGIONS_PER_POOL} are allowed"
    )]
    TooManyRegions {
        pool: Name,
        /// Regions it has members with a weight in.
        regions: usize,
    },
    /// A group's table cannot be built.
    #[error("pool {pool}: region {region}")]
    Table { pool: Name, region: Name, source: BuildError },
}

/// The regions of a pool in the order in which its packets ask them while none is marked out.
pub fn regions<'a>(
    configuration: &'a Configuration,
    own: Option<&'a Name>,
    pool: &'a Pool,
) -> Vec<&'a Name> {
    of_regions(configuration, own, pool, Regions::of(pool).weighted())
}

/// What a plan follows from.
#[derive(Clone, Copy, Debug)]
pub struct PlanInputs<'a> {
    pub configuration: &'a Configuration,
    /// The daemon's own region.
    pub own: Option<&'a Name>,
    /// The numbers of the configuration's objects.
    pub ids: &'a Ids,
    /// Key of the flow hash if the configuration has none.
    pub hash_key: [u64; 2],
    /// The prefix that sources of IPv4 tunnels are from.
    pub source_prefix: Option<Ipv4Prefix>,
    /// What is marked out, by pool.
    pub out: &'a BTreeMap<Name, MarkedOut>,
}

/// The plan that follows from inputs. What is the same as in an earlier plan, which followed from other inputs, is taken
/// from there: it makes no difference to the result, but a change of one pool plans no other.
///
/// # Errors
/// [`PlanError`].
pub fn build(
    inputs: &PlanInputs<'_>,
    before: Option<(&PlanInputs<'_>, &Plan)>,
) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let before = before.filter(|(before, _)| inputs.are_alike(before));
    let is_new = |name: &Name, pool: &Arc<Pool>| {
        before.is_none_or(|(before, _)| before.configuration.pools.get(name) != Some(pool))
    };
    let same_backends = before.filter(|(before, _)| inputs.ids.has_backends_of(before.ids));
    plan.backends = same_backends.map(|(_, plan)| Arc::clone(&plan.backends)).unwrap_or_default();
    for (name, pool) in &inputs.configuration.pools {
        if same_backends.is_none() || is_new(name, pool) {
            for (address, backend) in &pool.backends {
                let id = backend_id(inputs.ids, address)?;
                let planned = PlannedBackend { id, mtu: backend.mtu };
                if plan.backends.get(address) != Some(&planned) {
                    Arc::make_mut(&mut plan.backends).insert(*address, planned);
                }
            }
        }
        let index = inputs.ids.pool(name).ok_or_else(|| no_id("pool", name))?;
        let reused = before.filter(|(before, _)| {
            !is_new(name, pool) && inputs.out.get(name) == before.out.get(name)
        });
        let planned = match reused.and_then(|(_, plan)| Some((plan, plan.pools.get(&index)?))) {
            Some((there, planned))
                if planned.name == *name
                    && (same_backends.is_some() || inputs.has_numbers_of(planned)) =>
            {
                let tables = planned.groups.iter().filter_map(|group| {
                    Some((group.table, Arc::clone(there.tables.get(&group.table)?)))
                });
                plan.tables.extend(tables);
                Arc::clone(planned)
            }
            _ => Arc::new(planned_pool(&mut plan, inputs, name, pool)?),
        };
        plan.pools.insert(index, planned);
    }
    let vips = &inputs.configuration.vips;
    for (name, service) in &inputs.configuration.services {
        let vip = service.address;
        plan.unserved.entry(vip).or_insert_with(|| unserved::configured(vips, vip));
        let planned = planned_service(inputs.ids, name, service)?;
        plan.services.extend(keys(service).into_iter().map(|key| (key, planned)));
    }
    Ok(plan)
}

impl PlanInputs<'_> {
    /// Whether equal pools have equal plans but for their numbers and what of them is marked out.
    fn are_alike(&self, other: &Self) -> bool {
        let (here, there) = (self.configuration, other.configuration);
        self.own == other.own
            && self.hash_key() == other.hash_key()
            && self.source_prefix == other.source_prefix
            && here.regions == there.regions
            && here.balancers == there.balancers
            && here.regions.keys().all(|name| self.ids.region(name) == other.ids.region(name))
    }

    fn hash_key(&self) -> [u64; 2] {
        self.configuration.hash_key.unwrap_or(self.hash_key)
    }

    /// Whether a planned pool has the numbers of these inputs.
    fn has_numbers_of(&self, pool: &PlannedPool) -> bool {
        let mut members = pool.groups.iter().flat_map(|group| &group.members);
        members.all(|member| self.ids.backend(&member.address) == Some(member.id))
    }
}

fn planned_pool(
    plan: &mut Plan,
    inputs: &PlanInputs<'_>,
    name: &Name,
    pool: &Pool,
) -> Result<PlannedPool, PlanError> {
    let nothing = MarkedOut::default();
    let configuration = inputs.configuration;
    let regions = Regions::of(pool);
    let mut groups = Vec::new();
    let mut order = of_regions(configuration, inputs.own, pool, regions.weighted());
    let out = inputs.out.get(name).unwrap_or(&nothing);
    order.sort_by_key(|region| out.regions.contains(*region));
    for region in &order {
        // Where nobody is at home anyway, who is out of it makes no difference.
        let out = if groups.is_empty() { &out.members } else { &nothing.members };
        groups.push(group(plan, inputs.ids, (name, pool), (region, out), &regions.0[region])?);
    }
    if groups.len() > MAX_REGIONS_PER_POOL {
        let (pool, regions) = (name.clone(), groups.len());
        return Err(PlanError::TooManyRegions { pool, regions });
    }
    Ok(PlannedPool {
        name: name.clone(),
        hash_key: inputs.hash_key(),
        source_prefix: inputs.source_prefix,
        groups,
        idle: regions.besides(&order),
        balancers: configuration.balancers,
        isolated: pool.isolation == Isolation::OnFailure,
        panics: pool.panic_threshold_percent > 0,
        form: pool.encapsulation.form(),
    })
}

/// A pool's backends by region.
struct Regions<'a>(BTreeMap<&'a Name, Vec<(IpAddr, &'a Backend)>>);

impl<'a> Regions<'a> {
    fn of(pool: &'a Pool) -> Self {
        let mut regions: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (address, backend) in &pool.backends {
            regions.entry(&backend.region).or_default().push((*address, backend));
        }
        Self(regions)
    }

    fn weighted(&self) -> BTreeSet<&'a Name> {
        let regions = self.0.iter().filter(|(_, backends)| has_weight(backends));
        regions.map(|(region, _)| *region).collect()
    }

    /// Backends in other regions than these.
    fn besides(&self, regions: &[&Name]) -> BTreeSet<IpAddr> {
        let others = self.0.iter().filter(|(region, _)| !regions.contains(region));
        others.flat_map(|(_, backends)| backends).map(|(address, _)| *address).collect()
    }
}

fn has_weight(backends: &[(IpAddr, &Backend)]) -> bool {
    backends.iter().any(|(_, backend)| backend.weight > 0)
}

fn group(
    plan: &mut Plan,
    ids: &Ids,
    (name, pool): (&Name, &Pool),
    (region, out): (&Name, &BTreeSet<IpAddr>),
    backends: &[(IpAddr, &Backend)],
) -> Result<PlannedGroup, PlanError> {
    let members: Vec<_> = backends
        .iter()
        .map(|(address, backend)| Member { key: (*address).into(), weight: backend.weight })
        .collect();
    let spec = TableSpec::new(&members, pool.slots).map_err(|source| PlanError::Table {
        pool: name.clone(),
        region: region.clone(),
        source,
    })?;
    let by_key: BTreeMap<MemberKey, &Backend> =
        backends.iter().map(|(address, backend)| ((*address).into(), *backend)).collect();
    let mut ranked = Vec::with_capacity(members.len());
    for key in spec.keys() {
        let (address, backend) = (key.address(), by_key[key]);
        ranked.push(PlannedMember {
            address,
            id: backend_id(ids, &address)?,
            weighted: backend.weight > 0,
            rate: backend.max_connection_rate,
            out: out.contains(&address),
        });
    }
    let table = spec.id();
    plan.tables.entry(table).or_insert_with(|| Arc::new(spec));
    Ok(PlannedGroup {
        name: region.clone(),
        region: ids.region(region).ok_or_else(|| no_id("region", region))?,
        table,
        slots: pool.slots,
        settings: pool.group(region),
        members: ranked,
    })
}

fn planned_service(ids: &Ids, name: &Name, service: &Service) -> Result<PlannedService, PlanError> {
    Ok(PlannedService {
        index: ids.service(name).ok_or_else(|| no_id("service", name))?,
        pool: ids.pool(&service.pool).ok_or_else(|| no_id("pool", &service.pool))?,
        affinity: service.affinity,
        fragments: service.fragments == Fragments::Served,
        rejects: service.when_full == WhenFull::Reject,
        tracked: service.idle_timeout,
    })
}

/// What packets of a service are looked up as.
fn keys(service: &Service) -> Vec<ServiceKey> {
    let any = ServiceKey::new(service.address, 0, service.protocol.number());
    let ports = service.ports.listed().into_iter().flat_map(PortList::each);
    let mut keys: Vec<_> = ports.map(|port| ServiceKey { port: port.to_be(), ..any }).collect();
    keys.extend((service.ports == Ports::Any).then_some(any));
    keys.extend((service.fragments == Fragments::Served).then(|| any.fragments()));
    keys
}

fn backend_id(ids: &Ids, address: &IpAddr) -> Result<BackendId, PlanError> {
    ids.backend(address).ok_or_else(|| PlanError::NoId(format!("backend {address}")))
}

fn no_id(kind: &str, name: &Name) -> PlanError {
    PlanError::NoId(format!("{kind} {name}"))
}

/// The regions in `present` in the order in which a pool's packets ask them: those it prefers, then by
/// nearness the daemon's own, those that it overflows to in their order, those that these overflow to
/// and so on breadth first, then the others by name, so that all daemons of a region agree. A pool
/// that is strictly isolated has the first alone.
pub(super) fn of_regions<'a>(
    configuration: &'a Configuration,
    own: Option<&'a Name>,
    pool: &'a Pool,
    mut present: BTreeSet<&'a Name>,
) -> Vec<&'a Name> {
    let wanted = pool.preferred_regions.iter().chain(nearest_first(configuration, own));
    let mut order: Vec<_> = wanted.filter(|region| present.remove(region)).collect();
    order.extend(present);
    if pool.isolation == Isolation::Strict {
        order.truncate(1);
    }
    order
}

/// The daemon's own region and all that its overflow leads to, nearest first.
fn nearest_first<'a>(configuration: &'a Configuration, own: Option<&Name>) -> Vec<&'a Name> {
    let own = own.and_then(|own| configuration.regions.get_key_value(own));
    let mut queue: VecDeque<_> = own.into_iter().collect();
    let mut order: Vec<_> = own.into_iter().map(|(name, _)| name).collect();
    while let Some((_, region)) = queue.pop_front() {
        for next in &region.overflow_to {
            if !order.contains(&next) {
                order.push(next);
                queue.extend(configuration.regions.get_key_value(next));
            }
        }
    }
    order
}
