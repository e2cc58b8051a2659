//! In which order a pool's packets go through the regions.

use std::collections::{BTreeSet, VecDeque};

use crate::{Configuration, Isolation, Name, Pool};

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
