use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
};

use spillway_proto::v1;

use super::{
    Names,
    invalid::{Invalid, Place},
    number,
};
use lb_model::{Backend, GroupSettings, Name, Scaler};

/// What is set of the groups of a pool with these backends; what says only the default is left out.
pub(super) fn groups(
    at: &Place,
    messages: &[v1::Group],
    regions: &Names,
    backends: &BTreeMap<IpAddr, Backend>,
) -> Result<BTreeMap<Name, GroupSettings>, Invalid> {
    let mut groups = BTreeMap::new();
    let mut first = HashMap::new();
    for (index, message) in messages.iter().enumerate() {
        let at = at.child("groups", index, &message.region);
        let region = regions.resolve(&at, "region", &message.region)?;
        if let Some(first) = first.insert(region.clone(), index) {
            let cause = format!("{region:?} is already the region of groups[{first}]");
            return Err(at.wrong("region", cause));
        }
        let mut here = backends.values().filter(|backend| backend.region == region).peekable();
        if here.peek().is_none() {
            return Err(at.wrong("region", format_args!("the pool has no backend in {region:?}")));
        }
        let unlimited = here.any(|b| b.weight > 0 && b.max_connection_rate.is_none());
        let group = group(&at, message, unlimited)?;
        if group != GroupSettings::default() {
            groups.insert(region, group);
        }
    }
    Ok(groups)
}

fn group(at: &Place, message: &v1::Group, unlimited: bool) -> Result<GroupSettings, Invalid> {
    let capacity = number::rate(at, "capacity_per_second", message.capacity_per_second)?;
    let scaler = match message.scaler {
        None => Scaler::WHOLE,
        Some(share) => Scaler::new(share).ok_or_else(|| {
            at.wrong("scaler", format_args!("{share} is neither 0 nor within 0.1 to 1"))
        })?,
    };
    let scales = scaler != Scaler::NONE && scaler != Scaler::WHOLE;
    if scales && capacity.is_none() && unlimited {
        let cause = format!(
            "{scaler} of no limit is no limit; set capacity_per_second, or the \
             max_connection_rate_per_second of every backend there"
        );
        return Err(at.wrong("scaler", cause));
    }
    Ok(GroupSettings { capacity, scaler, drained: message.drained })
}
