//! In which order a pool's packets go through the regions.

use std::collections::BTreeSet;

use crate::model::{Configuration, Name};

/// The regions in `present` by nearness: the daemon's own, those that it overflows to in their
/// order, then the others by name, so that all daemons of a region agree.
pub(super) fn nearest_first<'a>(
    configuration: &'a Configuration,
    own: Option<&'a Name>,
    mut present: BTreeSet<&'a Name>,
) -> Vec<&'a Name> {
    let own = own.and_then(|own| configuration.regions.get_key_value(own));
    let named =
        own.into_iter().flat_map(|(name, region)| [name].into_iter().chain(&region.overflow_to));
    let mut order: Vec<_> = named.filter(|region| present.remove(region)).collect();
    order.extend(present);
    order
}
