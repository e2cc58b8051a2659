//! Groups in a balancer's exposition.

use std::fmt;

use super::{
    Facts,
    catalogue::*,
    sheet::{Sheet, Value},
};
use lb_control::command::GroupStatus;
use lb_model::capacity::{self, Connections};

pub(super) fn groups(sheet: &mut Sheet<'_>, facts: &Facts) -> fmt::Result {
    for (definition, count) in COUNTERS {
        let groups = facts.stats.groups.iter();
        let counted =
            groups.map(|g| ([g.pool.as_str(), g.region.as_str()], count(&g.connections).into()));
        sheet.family(definition, counted)?;
    }
    for (definition, value) in LEVELS {
        let known = facts.regions.regions.iter();
        let levels = known.filter_map(|r| Some(([r.pool.as_str(), r.region.as_str()], value(r)?)));
        sheet.family(definition, levels)?;
    }
    Ok(())
}

type Counter = (&'static super::Definition, fn(&Connections<u64>) -> u64);
type Level = (&'static super::Definition, fn(&GroupStatus) -> Option<Value>);

const COUNTERS: [Counter; 6] = [
    (&GROUP_OFFERED, |counted| counted.offered),
    (&GROUP_ADMITTED, |counted| counted.admitted),
    (&GROUP_OVERFLOW_IN, |counted| counted.overflow_in),
    (&GROUP_OVERFLOW_OUT, |counted| counted.overflow_out),
    (&GROUP_REFUSED, |counted| counted.refused),
    (&GROUP_OVER_CAPACITY, |counted| counted.over_capacity),
];

const LEVELS: [Level; 9] = [
    (&GROUP_LIMIT, |region| capacity::per_second(region.reading.limit).map(Into::into)),
    (&GROUP_CAPACITY, |region| region.reading.capacity().per_second().map(Into::into)),
    (&GROUP_CONFIGURED, |region| region.reading.configured().per_second().map(Into::into)),
    (&GROUP_SCALER, |region| Some(region.reading.settings.effective_scaler().share().into())),
    (&GROUP_PORTION, |region| Some(region.reading.portion.fraction().into())),
    (&GROUP_BACKENDS, |region| Some(region.reading.members.len().into())),
    (&GROUP_BACKENDS_UP, |region| Some(region.backends_up().into())),
    (&GROUP_MISSING_BACKENDS, |region| region.missing_backends().map(|n| u64::from(n).into())),
    (&GROUP_MARKED_OUT, |region| Some(region.marked_out.into())),
];
