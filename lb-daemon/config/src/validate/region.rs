use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lb_common::abi::limits::MAX_REGIONS_PER_POOL;
use spillway_proto::v1;

use super::{
    Names,
    invalid::{Invalid, ObjectPath},
};
use lb_model::{Configuration, Name, Region};

/// A region takes over from others, never from itself.
pub(super) fn region(
    at: &ObjectPath,
    message: &v1::Region,
    regions: &Names<'_>,
) -> Result<Region, Invalid> {
    let overflow_to = regions.resolve_each(at, "overflow_to", &message.overflow_to)?;
    if overflow_to.iter().any(|name| name.as_str() == message.name) {
        return Err(at.invalid("overflow_to", "names the region itself"));
    }
    const MOST: usize = MAX_REGIONS_PER_POOL - 1;
    if overflow_to.len() > MOST {
        let cause = format!("names {} regions; at most {MOST} are allowed", overflow_to.len());
        return Err(at.invalid("overflow_to", cause));
    }
    Ok(Region { overflow_to })
}

/// Following `overflow_to` never leads back.
pub(super) fn no_circle(regions: &Names<'_>, configuration: &Configuration) -> Result<(), Invalid> {
    let (mut invalid, mut told) = (Invalid::default(), BTreeSet::new());
    for (index, start) in regions.in_order().enumerate() {
        // All regions of a loop are in the same one.
        if told.contains(start) {
            continue;
        }
        if let Some(circle) = way_back(configuration, start) {
            told.extend(circle.iter().copied());
            let at = ObjectPath::default().child("regions", index, start.as_str());
            let circle: Vec<_> = circle.iter().map(|name| name.as_str()).collect();
            let cause = format!("forms a loop: {}", circle.join(" -> "));
            invalid.add(at.invalid("overflow_to", cause));
        }
    }
    invalid.or(())
}

/// A shortest way along `overflow_to` from a region back to itself.
fn way_back<'a>(configuration: &'a Configuration, start: &'a Name) -> Option<Vec<&'a Name>> {
    let next =
        |name: &Name| configuration.regions.get(name).into_iter().flat_map(|r| &r.overflow_to);
    let mut from: BTreeMap<&Name, &Name> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for to in next(at) {
            if to == start {
                let mut way = vec![to, at];
                while let Some(before) = way.last().and_then(|name| from.get(name)) {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            if !from.contains_key(to) {
                from.insert(to, at);
                queue.push_back(to);
            }
        }
    }
    None
}
