//! The effect of changed members, weights or slots on a pool's tables.

use std::{collections::BTreeMap, net::IpAddr};

use super::{FieldChange, TableDiffs, TableMembers, join, table_diffs::tables};
use crate::Pool;

#[derive(Default)]
pub(super) struct Moved {
    /// Slots whose owner differs: all slots of a removed table, none of a new one.
    pub(super) slots: u64,
    /// `backends` of each region whose members differ.
    pub(super) fields: Vec<FieldChange>,
}

/// Compares the tables of two versions of a pool.
pub(super) fn moved(old: &Pool, new: &Pool, diffs: &TableDiffs<'_>) -> Moved {
    let mut moved = Moved::default();
    let none = TableMembers::default();
    for (region, before, after) in join(&tables(old), &tables(new)) {
        let members = (before.unwrap_or(&none), after.unwrap_or(&none));
        if members.0.members != members.1.members {
            moved.fields.push(FieldChange {
                field: "backends",
                region: Some((*region).clone()),
                old: members.0.members.len().to_string(),
                new: members.1.members.len().to_string(),
                note: differences(members.0, members.1),
            });
        } else if old.slots == new.slots {
            continue;
        }
        moved.slots += match (before, after) {
            (None, _) => 0,
            (Some(_), None) => old.slots.into(),
            (Some(_), Some(_)) if old.slots != new.slots => new.slots.into(),
            (Some(before), Some(after)) => diffs.get(before, after).slots,
        };
    }
    moved
}

/// `2 new, 1 gone, 1 of another weight`
fn differences(before: &TableMembers, after: &TableMembers) -> String {
    let by_address =
        |table: &TableMembers| -> BTreeMap<IpAddr, u32> { table.members.iter().copied().collect() };
    let (before, after) = (by_address(before), by_address(after));
    let [mut new, mut gone, mut reweighted] = [0; 3];
    for (_, before, after) in join(&before, &after) {
        match (before, after) {
            (None, _) => new += 1,
            (_, None) => gone += 1,
            (before, after) => reweighted += u32::from(before != after),
        }
    }
    let parts = [(new, "new"), (gone, "gone"), (reweighted, "of another weight")];
    let parts: Vec<_> =
        parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    parts.join(", ")
}
