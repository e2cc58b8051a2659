//! `spillway table`: who owns the slots of a pool's tables, and whom they go to now.

mod group;

use lb_daemon::dataplane::{PinnedMaps, PoolView};
use serde::Serialize;

use self::group::{Group, Source};
use crate::{
    arguments::Options,
    failure::Failure,
    names::Names,
    output::{Grid, Report, percent, print},
    pinned,
};

/// Options of `table`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Name of a pool; all pools where none is given
    pool: Option<String>,
}

/// The answer.
#[derive(Serialize)]
#[serde(transparent)]
struct Tables(Vec<Pool>);

#[derive(Serialize)]
struct Pool {
    pool: String,
    /// Nearest region first.
    regions: Vec<Group>,
}

/// Reads the maps and prints.
///
/// # Errors
/// The maps cannot be read, or there is no such pool.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    let (maps, names) = pinned::open(options)?;
    let mut pools = Vec::new();
    for index in pinned::pools(&maps, &names, arguments.pool.as_deref())? {
        let view = maps.pool_view(index).map_err(|error| pinned::failure(&error))?;
        let regions = view.map_or_else(Vec::new, |view| groups(&maps, &names, &view));
        pools.push(Pool { pool: names.pool(index), regions });
    }
    print(&Tables(pools), options.output)
}

fn groups(maps: &PinnedMaps, names: &Names, view: &PoolView) -> Vec<Group> {
    let group = |(_, group): &(u32, lb_common::abi::group::Group)| {
        let head = group.head;
        let table = view.tables.get(&lb_common::abi::table_ref::TableRef(head.table));
        let member = |rank| maps.member(head.members.saturating_add(rank));
        Group::new(&Source {
            region: names.region(group.region),
            words: table.map_or_else(Vec::new, |t| t.slots().map(|word| word.0).collect()),
            members: (0..head.member_count)
                .filter_map(member)
                .map(|word| {
                    let backend = view.backends.get(&word.backend());
                    let address = backend.map_or_else(|| "?".into(), pinned::address);
                    (address, word, maps.next_hop(u32::from(word.next_hop())))
                })
                .collect(),
        })
    };
    view.groups.iter().map(group).collect()
}

impl Report for Tables {
    fn table(&self) -> String {
        if self.0.is_empty() {
            return "no pool is published\n".into();
        }
        self.0.iter().map(Pool::table).collect::<Vec<_>>().join("\n")
    }
}

impl Pool {
    fn table(&self) -> String {
        if self.regions.is_empty() {
            return format!("pool {}: no backends\n", self.pool);
        }
        let regions = self.regions.iter().map(|group| {
            let mut grid = Grid::new(["BACKEND", "SLOTS", "SHARE", "NOW", "STATE", "NEXT HOP"])
                .right([1, 2, 3]);
            for member in &group.members {
                grid.row([
                    member.backend.clone(),
                    member.slots.to_string(),
                    percent(member.slots.into(), group.slots.into()),
                    member.slots_now.to_string(),
                    member.state.into(),
                    member.next_hop.clone().unwrap_or_else(|| "unresolved".into()),
                ]);
            }
            let (pool, region, slots) = (&self.pool, &group.region, group.slots);
            let checksum = &group.checksum;
            format!(
                "pool {pool}, region {region}: {slots} slots, checksum {checksum}\n{}",
                grid.lines()
            )
        });
        regions.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use lb_common::abi::{
        member::{FULL_RAMP, MemberState, MemberWord},
        next_hop::NextHopWord,
        slot::{NO_RANK, SlotWord},
    };

    use super::*;

    fn example() -> Tables {
        let hop = NextHopWord::new([2, 0, 0, 0, 0, 1], 1);
        let member = |n: u32, state, hop| {
            let address = format!("10.0.0.{n}");
            (address, MemberWord::new(n, 1, state, FULL_RAMP, 1), hop)
        };
        let slot = |ranks| SlotWord::new(ranks).0;
        let group = Group::new(&Source {
            region: "eu".into(),
            words: vec![
                slot([0, 1, 2, NO_RANK]),
                slot([0, 2, 1, NO_RANK]),
                slot([1, 0, 2, NO_RANK]),
                slot([1, 2, 0, NO_RANK]),
                slot([2, 0, 1, NO_RANK]),
                slot([2, 1, 0, NO_RANK]),
                slot([1, 2, NO_RANK, NO_RANK]),
            ],
            members: vec![
                member(1, MemberState::Up, hop),
                member(2, MemberState::Dead, hop),
                member(3, MemberState::Up, NextHopWord::UNRESOLVED),
            ],
        });
        Tables(vec![
            Pool { pool: "web".into(), regions: vec![group] },
            Pool { pool: "empty".into(), regions: Vec::new() },
        ])
    }

    #[test]
    fn shares_are_exact_and_now_follows_the_lists() {
        // The checksum is by another XXH64. Member 2 is dead and member 3 has no next hop: six slots list member 1, the last does not.
        assert_eq!(
            example().table(),
            "\
pool web, region eu: 7 slots, checksum 2ee7bf07b7e00373
BACKEND   SLOTS   SHARE  NOW  STATE  NEXT HOP
10.0.0.1      2  28.57%    6  up     02:00:00:00:00:01 on lo
10.0.0.2      3  42.86%    0  dead   02:00:00:00:00:01 on lo
10.0.0.3      2  28.57%    0  up     unresolved

pool empty: no backends
"
        );
    }

    #[test]
    fn json_has_the_counts() {
        let json = serde_json::to_value(example()).unwrap();
        let group = &json[0]["regions"][0];
        assert_eq!(group["slots"], 7);
        assert_eq!(group["slots_unserved_now"], 1);
        assert_eq!(group["members"][1]["slots"], 3);
        assert_eq!(group["members"][2]["next_hop"], serde_json::Value::Null);
        assert_eq!(json[1]["regions"], serde_json::json!([]));
    }

    #[test]
    fn no_pools_are_said() {
        assert_eq!(Tables(Vec::new()).table(), "no pool is published\n");
    }
}
