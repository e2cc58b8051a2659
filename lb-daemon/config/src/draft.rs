//! The message of the configuration in force, to be edited.

use std::{collections::BTreeMap, net::IpAddr};

use spillway_proto::v1;

use crate::{
    Invalid, Requested, message::to_message_with, to_message, validate, validate::validate_edited,
};
use lb_model::{Backend, Configuration, Encapsulation, Name, Service};

/// A message that an edit starts from.
///
/// An edit of one object must not take longer because other pools have many backends. So a draft can have the backends of
/// one pool alone, and the other pools are taken from the configuration in force as they are.
#[derive(Debug)]
pub struct Draft<'a> {
    message: v1::Configuration,
    part: Option<Part<'a>>,
}

/// What a message with the backends of one pool leaves out.
#[derive(Debug)]
struct Part<'a> {
    in_force: &'a Configuration,
    /// The pool that has its backends.
    pool: Option<&'a str>,
}

impl<'a> Draft<'a> {
    /// All of a configuration.
    pub fn whole(message: v1::Configuration) -> Self {
        Self { message, part: None }
    }

    /// All of the configuration in force but the backends of other pools than this one.
    pub fn of_pool(in_force: &'a Configuration, pool: Option<&'a str>) -> Self {
        let part = Part { in_force, pool };
        let message = to_message_with(in_force, |name| part.has_backends(name));
        Self { message, part: Some(part) }
    }

    /// The message before the edit.
    pub fn message(&self) -> &v1::Configuration {
        &self.message
    }

    /// The configuration that the edited message describes; `None` if only the whole message shows whether it is valid.
    /// The edit must not change regions, nor other pools than that of the draft, unless the draft is whole.
    ///
    /// # Errors
    /// As [`validate()`]. Mistakes in a part are only found in the whole.
    pub fn validate(&self, edited: &v1::Configuration) -> Result<Option<Requested>, Invalid> {
        let Some(part) = &self.part else { return validate(edited).map(Some) };
        let kept = |name: &Name| {
            let pool = part.in_force.pools.get(name);
            pool.filter(|_| !part.has_backends(name))
        };
        let requested = validate_edited(edited, kept).ok();
        Ok(requested.filter(|requested| part.is_enough(requested.configuration())))
    }

    /// The message of a configuration, in the form of the draft.
    pub fn message_of(&self, configuration: &Configuration) -> v1::Configuration {
        match &self.part {
            None => to_message(configuration),
            Some(part) => to_message_with(configuration, |name| part.has_backends(name)),
        }
    }
}

impl Part<'_> {
    fn has_backends(&self, name: &Name) -> bool {
        self.pool == Some(name.as_str())
    }

    /// Whether no rule between objects can be broken that the part does not show.
    fn is_enough(&self, edited: &Configuration) -> bool {
        let others = || edited.pools.iter().filter(|(name, _)| !self.has_backends(name));
        let pool = edited.pools.iter().find(|(name, _)| self.has_backends(name));
        let agrees = pool.is_none_or(|(_, pool)| {
            let is_direct = pool.encapsulation == Encapsulation::Direct;
            others().all(|(_, other)| {
                let directs_alike = is_direct == (other.encapsulation == Encapsulation::Direct);
                shared(&pool.backends, &other.backends).all(|(here, there)| {
                    directs_alike && here.region == there.region && here.mtu == there.mtu
                })
            })
        });
        let is_new = |(name, service): &(&Name, &Service)| {
            self.in_force.services.get(*name) != Some(*service)
        };
        let concerns_others = |(_, service): (&Name, &Service)| {
            let address = &service.address;
            // The smallest packets of IPv6 must fit the tunnels of its pool.
            address.is_ipv6() && !self.has_backends(&service.pool)
                || others().any(|(_, pool)| pool.backends.contains_key(address))
        };
        agrees && !edited.services.iter().filter(is_new).any(concerns_others)
    }
}

/// The backends with an address that two pools have.
fn shared<'b>(
    few: &'b BTreeMap<IpAddr, Backend>,
    many: &'b BTreeMap<IpAddr, Backend>,
) -> impl Iterator<Item = (&'b Backend, &'b Backend)> {
    let (few, many) = if few.len() <= many.len() { (few, many) } else { (many, few) };
    few.iter().filter_map(|(address, here)| Some((here, many.get(address)?)))
}

#[cfg(test)]
mod tests {
    use lb_fake::arbitrary;
    use proptest::{prelude::*, sample::Index};

    use super::*;
    use crate::to_message;

    /// An edit of an object of `message`, with values of `other`.
    #[derive(Clone, Copy, Debug)]
    enum Edit {
        Pool,
        Backend,
        Service,
        HealthCheck,
    }

    fn replace<T: Clone>(list: &mut Vec<T>, new: &T, same: impl Fn(&T, &T) -> bool) {
        match list.iter_mut().find(|there| same(there, new)) {
            Some(there) => *there = new.clone(),
            None => list.push(new.clone()),
        }
    }

    /// Returns false if there is nothing to edit.
    fn edit(
        message: &mut v1::Configuration,
        other: &v1::Configuration,
        edit: Edit,
        (pool, which): (&str, Index),
    ) -> bool {
        let some = |length: usize| (length > 0).then(|| which.index(length));
        let new_pool = other.pools.iter().find(|other| other.name == pool);
        match edit {
            Edit::Pool => {
                let Some(new) = new_pool else { return false };
                replace(&mut message.pools, new, |a, b| a.name == b.name);
            }
            Edit::Backend => {
                let there = message.pools.iter_mut().find(|there| there.name == pool);
                let (Some(there), Some(new)) = (there, new_pool) else { return false };
                let Some(index) = some(new.backends.len()) else { return false };
                let new = &new.backends[index];
                replace(&mut there.backends, new, |a, b| a.address == b.address);
            }
            Edit::Service => {
                let Some(index) = some(other.services.len()) else { return false };
                replace(&mut message.services, &other.services[index], |a, b| a.name == b.name);
            }
            Edit::HealthCheck => {
                let Some(index) = some(other.health_checks.len()) else { return false };
                let new = &other.health_checks[index];
                replace(&mut message.health_checks, new, |a, b| a.name == b.name);
            }
        }
        true
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn a_part_is_valid_only_if_the_whole_is_and_then_means_the_same(
            in_force in arbitrary::configuration(),
            other in arbitrary::configuration(),
            kind in prop::sample::select(
                vec![Edit::Pool, Edit::Backend, Edit::Service, Edit::HealthCheck]
            ),
            pool in 0..4u8,
            which in any::<Index>(),
        ) {
            let pool = format!("pool{pool}");
            let other = to_message(&other);
            let mut whole = to_message(&in_force);
            if !edit(&mut whole, &other, kind, (&pool, which)) {
                return Ok(());
            }
            let of_pool = matches!(kind, Edit::Pool | Edit::Backend).then_some(&*pool);
            let draft = Draft::of_pool(&in_force, of_pool);
            let mut part = draft.message().clone();
            edit(&mut part, &other, kind, (&pool, which));
            let Some(requested) = draft.validate(&part).unwrap() else { return Ok(()) };
            let expected = validate(&whole);
            prop_assert_eq!(expected.as_ref().map(Requested::configuration), Ok(requested.configuration()));
            let after = to_message(requested.configuration());
            let found = draft.message_of(requested.configuration());
            for (found, after) in found.pools.iter().zip(&after.pools) {
                if of_pool == Some(&found.name) {
                    prop_assert_eq!(found, after);
                } else {
                    let without = v1::Pool { backends: Vec::new(), ..after.clone() };
                    prop_assert_eq!(found, &without);
                }
            }
        }
    }

    /// How often the shortcut is taken is what it is for.
    #[test]
    fn a_change_of_a_weight_needs_a_part_only() {
        let message = v1::Configuration {
            regions: vec![v1::Region { name: "eu".into(), ..v1::Region::default() }],
            pools: ["a", "b"]
                .map(|name| {
                    let backend = |address: &str| v1::Backend {
                        address: address.into(),
                        region: "eu".into(),
                        ..v1::Backend::default()
                    };
                    let backends = vec![backend("10.0.0.1"), backend("10.0.0.2")];
                    v1::Pool { name: name.into(), backends, ..v1::Pool::default() }
                })
                .into(),
            ..v1::Configuration::default()
        };
        let in_force = crate::validate_first(&message).unwrap();
        let draft = Draft::of_pool(&in_force, Some("b"));
        let mut edited = draft.message().clone();
        prop_assert_part(&edited);
        edited.pools[1].backends[0].weight = Some(7);
        let requested = draft.validate(&edited).unwrap().unwrap();
        let (before, after) = (&in_force.pools, &requested.configuration().pools);
        let name = |text| Name::new(text).unwrap();
        assert!(std::sync::Arc::ptr_eq(&before[&name("a")], &after[&name("a")]));
        assert_eq!(after[&name("b")].backends[&"10.0.0.1".parse().unwrap()].weight, 7);
        // Both pools have the backend, so one of them alone cannot say where it is.
        edited.pools[1].backends[0].mtu = 1500;
        assert_eq!(draft.validate(&edited), Ok(None));
    }

    fn prop_assert_part(message: &v1::Configuration) {
        let backends: Vec<_> = message.pools.iter().map(|pool| pool.backends.len()).collect();
        assert_eq!(backends, [0, 2]);
    }
}
