//! Validates a message and makes it a configuration. It reports all mistakes, in an order that depends on the message alone,
//! so that the same message always gets the same answer. Rules between objects are checked for the objects that are right.

mod health_check;
mod invalid;
mod names;
mod pool;
mod region;
mod service;
mod shares;
mod slots;
mod unread;
mod values;
mod vip;

use std::sync::Arc;

use spillway_proto::v1;

pub use invalid::{Invalid, MOST_MISTAKES, Mistake};
use lb_model::{Configuration, Name, Pool};
use names::Names;
pub use slots::{OpenSlots, Requested, SlotsByPool, slots_by_pool, slots_of_message};
pub(crate) use unread::Unread;
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
    let (configuration, invalid) = configuration(message, kept, &Unread::default());
    invalid.or(configuration).map(|configuration| Requested::new(message, configuration))
}

/// The mistakes of a message that is what could be read of a file: those that do not come from what could not; and whether
/// there may be more than are counted.
pub(crate) fn mistakes_of_read(message: &v1::Configuration, unread: &Unread) -> (Invalid, bool) {
    let (_, invalid) = configuration(message, |_| None, unread);
    unread.independent(invalid)
}

/// What is right of a message, and all that is not. Objects of which a part is `unread` do not take part in rules between
/// objects.
fn configuration<'k>(
    message: &v1::Configuration,
    kept: impl Fn(&Name) -> Option<&'k Arc<Pool>>,
    unread: &Unread,
) -> (Configuration, Invalid) {
    let region_names = Names::read("regions", message.regions.iter().map(|region| &*region.name));
    let check_names = Names::read("health_checks", message.health_checks.iter().map(|c| &*c.name));
    let pool_names = Names::read("pools", message.pools.iter().map(|pool| &*pool.name));
    let service_names =
        Names::read("services", message.services.iter().map(|service| &*service.name));

    let mut invalid = Invalid::default();
    let mut configuration = Configuration {
        regions: region_names.build(&mut invalid, &message.regions, |at, _, m| {
            values::without_etag(at, &m.etag, region::region(at, m, &region_names))
        }),
        health_checks: check_names.build(&mut invalid, &message.health_checks, |at, _, m| {
            values::without_etag(at, &m.etag, health_check::health_check(at, m))
        }),
        pools: pool_names.build(&mut invalid, &message.pools, |at, name, m| {
            match name.and_then(&kept) {
                Some(pool) => Ok(Arc::clone(pool)),
                None => {
                    let pool = pool::pool(at, m, &region_names, &check_names);
                    values::without_etag(at, &m.etag, pool).map(Arc::new)
                }
            }
        }),
        services: service_names.build(&mut invalid, &message.services, |at, _, m| {
            values::without_etag(at, &m.etag, service::service(at, m, &pool_names))
        }),
        hash_key: invalid.value(values::hash_key(&message.hash_key)).flatten(),
        vips: vip::vips(&message.vips, &mut invalid),
        ..Configuration::default()
    };
    if let Some(balancers) = invalid.value(values::balancers(message.balancers)) {
        configuration.balancers = balancers;
    }
    if !unread.is_empty() {
        configuration.regions.retain(|name, _| region_names.is_read(name, unread));
        configuration.pools.retain(|name, _| pool_names.is_read(name, unread));
        configuration.services.retain(|name, _| service_names.is_read(name, unread));
    }
    for rule in [
        region::no_circle(&region_names, &configuration),
        service::distinct(message, &service_names),
        pool::consistent(message, &pool_names, &configuration),
        pool::wide_enough(message, &pool_names, &configuration),
        shares::shares_suffice(message, &pool_names, &configuration),
    ] {
        invalid.value(rule);
    }
    (configuration, invalid)
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
