//! Groups in a balancer's exposition.

use std::fmt;

use super::{
    Facts,
    catalogue::*,
    sheet::{Sheet, Value},
};
use crate::{
    capacity::{self, Capacity},
    command::RegionStatus,
    stats::GroupStats,
};

pub(super) fn groups(sheet: &mut Sheet<'_>, facts: &Facts) -> fmt::Result {
    for (definition, count) in COUNTERS {
        let groups = facts.stats.groups.iter();
        let counted = groups.map(|g| ([g.pool.as_str(), g.region.as_str()], count(g).into()));
        sheet.family(definition, counted)?;
    }
    for (definition, value) in LEVELS {
        let known = facts.regions.regions.iter();
        let levels = known.filter_map(|r| Some(([r.pool.as_str(), r.region.as_str()], value(r)?)));
        sheet.family(definition, levels)?;
    }
    Ok(())
}

type Counted = (&'static super::Definition, fn(&GroupStats) -> u64);
type Level = (&'static super::Definition, fn(&RegionStatus) -> Option<Value>);

const COUNTERS: [Counted; 6] = [
    (&GROUP_OFFERED, |group| group.offered),
    (&GROUP_ADMITTED, |group| group.admitted),
    (&GROUP_SPILLED_IN, |group| group.spilled_in),
    (&GROUP_SPILLED_OUT, |group| group.spilled_out),
    (&GROUP_REFUSED, |group| group.refused),
    (&GROUP_OVERRUN, |group| group.overrun),
];

const LEVELS: [Level; 8] = [
    (&GROUP_LIMIT, |region| capacity::per_second(region.reading.limit).map(Into::into)),
    (&GROUP_CAPACITY, |region| per_second(region.reading.capacity())),
    (&GROUP_CONFIGURED, |region| per_second(region.reading.configured())),
    (&GROUP_SCALER, |region| Some(region.reading.settings.scaler.share().into())),
    (&GROUP_BACKENDS, |region| Some(region.reading.members.len().into())),
    (&GROUP_BACKENDS_UP, |region| Some(region.backends_up().into())),
    (&GROUP_MISSING_BACKENDS, |region| region.missing_backends().map(|n| u64::from(n).into())),
    (&GROUP_OUT_OF_HOME, |region| Some(region.out_of_home.into())),
];

fn per_second(capacity: Capacity) -> Option<Value> {
    match capacity {
        Capacity::Unlimited => None,
        Capacity::PerSecond(rate) => Some(rate.into()),
        Capacity::Closed => Some(0.0.into()),
    }
}
