//! Log lines with the fields `service`, `pool`, `backend` and `region`. Lines about a pool list the services
//! that use it in one field.

use std::net::IpAddr;

use super::{PathReader, StatusLoop};
use lb_model::{Configuration, Name, diff::Change};

/// Changes of an apply that get a line each.
const CHANGES: usize = 20;
/// Services that a line about a pool lists.
const SERVICES: usize = 8;

/// The objects that a change is about.
#[derive(Debug, Default, PartialEq, Eq)]
struct Subject<'a> {
    service: Option<&'a str>,
    pool: Option<&'a str>,
    backend: Option<&'a str>,
    region: Option<&'a str>,
}

impl<R: PathReader> StatusLoop<R> {
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
        let Subject { service, pool, backend, region } = Subject::parse(&change.object);
        let using = pool.and_then(|pool| services(configuration, pool));
        let service = service.or(using.as_deref());
        let details = change.details.join(", ");
        let details = (!details.is_empty()).then_some(&*details);
        let (kind, object) = (change.kind, &*change.object);
        tracing::info!(generation, service, pool, backend, region, details, "{object}: {kind}");
    }
    if let Some(more @ 1..) = changes.len().checked_sub(CHANGES) {
        tracing::info!(generation, more, "generation {generation}: {more} more changes");
    }
}

impl<'a> Subject<'a> {
    fn parse(object: &'a str) -> Self {
        let mut subject = Self::default();
        match object.split_once(' ') {
            Some(("service", name)) => subject.service = Some(name),
            Some(("region", name)) => subject.region = Some(name),
            Some(("pool", name)) => match name.split_once(": backend ") {
                Some((name, backend)) => {
                    (subject.pool, subject.backend) = (Some(name), Some(backend))
                }
                None => subject.pool = Some(name),
            },
            _ => {}
        }
        subject
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subject_of_a_change_follows_from_its_object() {
        let none = Subject::default();
        for (object, expected) in [
            ("service web", Subject { service: Some("web"), ..Subject::default() }),
            ("region eu", Subject { region: Some("eu"), ..Subject::default() }),
            ("pool web", Subject { pool: Some("web"), ..Subject::default() }),
            (
                "pool web: backend 2001:db8::1",
                Subject { pool: Some("web"), backend: Some("2001:db8::1"), ..Subject::default() },
            ),
            ("health check web", Subject::default()),
            ("hash key", Subject::default()),
            ("balancers", none),
        ] {
            assert_eq!(Subject::parse(object), expected, "{object}");
        }
    }
}
