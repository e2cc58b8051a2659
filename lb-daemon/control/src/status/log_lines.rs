//! Log lines with the fields `service`, `pool`, `backend` and `region`. Lines about a pool list the services
//! that use it in one field.

use std::net::IpAddr;

use super::Known;
use lb_model::{
    Configuration, Name, ObjectReference,
    diff::{Change, FieldChange},
};

/// Changes of an apply that get a line each.
const CHANGES: usize = 20;
/// Services that a line about a pool lists.
const SERVICES: usize = 8;

impl Known {
    pub(super) fn log_backend(&self, member: (&Name, IpAddr), from: &str, to: &str, reason: &str) {
        let ((pool, backend), configuration) = (member, self.configuration());
        let service = services(configuration, pool.as_str());
        let there = configuration.pools.get(pool).and_then(|pool| pool.backends.get(&backend));
        let region = there.map(|backend| backend.region.as_str());
        tracing::info!(
            service, %pool, %backend, region, from, to, reason,
            "pool {pool}: backend {backend} is {to}: {reason}"
        );
    }

    pub(super) fn log_region(&self, pool: &Name, region: &Name, overflows: bool) {
        let service = services(self.configuration(), pool.as_str());
        if overflows {
            tracing::warn!(
                service, %pool, %region,
                "pool {pool}: new connections overflow from region {region} or are refused"
            );
        } else {
            tracing::info!(
                service, %pool, %region,
                "pool {pool}: region {region} takes all its new connections again"
            );
        }
    }
}

pub(super) fn log_applied(configuration: &Configuration, generation: u64, changes: &[Change]) {
    let count = changes.len();
    tracing::info!(
        generation,
        changes = count,
        "generation {generation} is in force, changes: {count}"
    );
    for change in changes.iter().take(CHANGES) {
        let fields = LogFields::new(&change.object);
        let LogFields { service, pool, backend, region } = &fields;
        let pool = pool.map(Name::as_str);
        let using = pool.and_then(|pool| services(configuration, pool));
        let service = service.map(Name::as_str).or(using.as_deref());
        let region = region.map(Name::as_str);
        let backend = backend.map(tracing::field::display);
        let details: Vec<_> = change.fields.iter().map(FieldChange::to_string).collect();
        let details = details.join(", ");
        let details = (!details.is_empty()).then_some(&*details);
        let (kind, object) = (change.kind, &change.object);
        tracing::info!(generation, service, pool, backend, region, details, "{object}: {kind}");
    }
    if let Some(more @ 1..) = changes.len().checked_sub(CHANGES) {
        tracing::info!(generation, more, "generation {generation}: {more} more changes");
    }
}

/// The fields that say what a change is about.
#[derive(Default)]
struct LogFields<'a> {
    service: Option<&'a Name>,
    pool: Option<&'a Name>,
    backend: Option<&'a IpAddr>,
    region: Option<&'a Name>,
}

impl<'a> LogFields<'a> {
    fn new(object: &'a ObjectReference) -> Self {
        let none = Self::default();
        match object {
            ObjectReference::Service(name) => Self { service: Some(name), ..none },
            ObjectReference::Region(name) => Self { region: Some(name), ..none },
            ObjectReference::Pool(name) => Self { pool: Some(name), ..none },
            ObjectReference::Group { pool, region } => {
                Self { pool: Some(pool), region: Some(region), ..none }
            }
            ObjectReference::Backend { pool, address } => {
                Self { pool: pool.as_ref(), backend: Some(address), ..none }
            }
            ObjectReference::HealthCheck(_)
            | ObjectReference::Vip(_)
            | ObjectReference::HashKey
            | ObjectReference::Balancers => none,
        }
    }
}

/// The services that use a pool.
fn services(configuration: &Configuration, pool: &str) -> Option<String> {
    let using = configuration.services.iter().filter(|(_, service)| service.pool.as_str() == pool);
    let mut names: Vec<_> = using.map(|(name, _)| name.as_str()).take(SERVICES + 1).collect();
    if names.len() > SERVICES {
        names[SERVICES] = "...";
    }
    (!names.is_empty()).then(|| names.join(", "))
}
