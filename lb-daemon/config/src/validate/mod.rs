//! Validates a message and makes it a configuration. It reports all mistakes, in an order that depends on the message alone,
//! so that the same message always gets the same answer. Rules between objects are checked once each object is right.

mod health_check;
mod invalid;
mod names;
mod pool;
mod region;
mod service;
mod shares;
mod slots;
mod values;

use std::sync::Arc;

use spillway_proto::v1;

use invalid::all;
pub use invalid::{Invalid, MOST_MISTAKES, Mistake};
use lb_model::{Configuration, Name, Pool};
use names::Names;
pub use slots::{OpenSlots, Requested, SlotsByPool, slots_by_pool, slots_of_message};
pub use values::host_address;

/// The configuration that a message describes, defaults filled in, except for slots that the generation in force
/// determines. Whether the maps have room for it is another question ([`lb_model::room`]).
///
/// # Errors
/// [`Invalid`] names the fields that break a rule of `configuration.proto`.
pub fn validate(message: &v1::Configuration) -> Result<Requested, Invalid> {
    validate_edited(message, |_| None)
}

/// As [`validate`] for a message in which some pools are left as they are. It has them without their backends, and
/// `kept` finds them. Rules between their backends and other objects are not checked.
pub(crate) fn validate_edited<'k>(
    message: &v1::Configuration,
    kept: impl Fn(&Name) -> Option<&'k Arc<Pool>>,
) -> Result<Requested, Invalid> {
    let region_names = Names::read("regions", message.regions.iter().map(|region| &*region.name));
    let check_names = Names::read("health_checks", message.health_checks.iter().map(|c| &*c.name));
    let pool_names = Names::read("pools", message.pools.iter().map(|pool| &*pool.name));
    let service_names =
        Names::read("services", message.services.iter().map(|service| &*service.name));

    let (regions, health_checks, pools, services, hash_key, balancers) = all((
        region_names.build(&message.regions, |at, _, m| {
            values::without_etag(at, &m.etag, region::region(at, m, &region_names))
        }),
        check_names.build(&message.health_checks, |at, _, m| {
            values::without_etag(at, &m.etag, health_check::health_check(at, m))
        }),
        pool_names.build(&message.pools, |at, name, m| match name.and_then(&kept) {
            Some(pool) => Ok(Arc::clone(pool)),
            None => {
                let pool = pool::pool(at, m, &region_names, &check_names);
                values::without_etag(at, &m.etag, pool).map(Arc::new)
            }
        }),
        service_names.build(&message.services, |at, _, m| {
            values::without_etag(at, &m.etag, service::service(at, m, &pool_names))
        }),
        values::hash_key(&message.hash_key),
        values::balancers(message.balancers),
    ))?;
    let configuration =
        Configuration { regions, health_checks, pools, services, hash_key, balancers };
    all((
        region::no_circle(&region_names, &configuration),
        service::distinct(message, &configuration),
        pool::consistent(message, &configuration),
        pool::wide_enough(message, &configuration),
        shares::shares_suffice(message, &configuration),
    ))?;
    Ok(Requested::new(message, configuration))
}

/// The hash key of a message, if it is valid.
pub fn hash_key_of_message(message: &v1::Configuration) -> Option<[u64; 2]> {
    values::hash_key(&message.hash_key).ok().flatten()
}

/// The configuration that a message describes if no generation is in force.
///
/// # Errors
/// As [`validate`].
pub fn validate_first(message: &v1::Configuration) -> Result<Configuration, Invalid> {
    validate(message)?.resolve(&SlotsByPool::new())
}

#[cfg(test)]
mod tests;
