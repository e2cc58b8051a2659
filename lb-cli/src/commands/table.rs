//! `spillway table`: which backends own the slots of a pool's tables, and which get their packets now.

use lb_inspect::message;
use lb_inspect::pool_tables::{self, PoolTable, TablesError};
use serde::Serialize;
use spillway_proto::v1;

use crate::{
    arguments::Options,
    client::DaemonClient,
    failure::Failure,
    origin,
    output::{Grid, Report, percent, print},
    pinned,
};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Pool name [default: all pools]
    pool: Option<String>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Tables(Vec<PoolTable>);

/// # Errors
/// The daemon does not answer, the maps cannot be read, or there is no such pool.
pub(crate) fn run(options: &Options, arguments: &Arguments) -> Result<(), Failure> {
    let pool = arguments.pool.as_deref();
    let ask = async |daemon: &mut DaemonClient| {
        let request = v1::TableRequest { pool: pool.unwrap_or_default().to_owned() };
        Ok(message::pool_tables(daemon.table(request).await?))
    };
    let read = || {
        let (maps, names) = pinned::open(options)?;
        pinned::warn_of_namespace(&names);
        pool_tables::read(&maps, &names, pool).map_err(|error| match error {
            TablesError::NoPool(no_pool) => pinned::unknown_pool(&no_pool),
            TablesError::Maps(error) => pinned::maps_failure(&error),
        })
    };
    print(&Tables(origin::ask_or_read(options, ask, read)?), options.output)
}

impl Report for Tables {
    fn table(&self) -> String {
        if self.0.is_empty() {
            return "no pool is published\n".into();
        }
        self.0.iter().map(pool_table).collect::<Vec<_>>().join("\n")
    }
}

fn pool_table(pool: &PoolTable) -> String {
    if pool.regions.is_empty() {
        return format!("pool {}: no backends\n", pool.pool);
    }
    let regions = pool.regions.iter().map(|group| {
        let mut grid =
            Grid::new(["BACKEND", "SLOTS", "SHARE", "NOW", "ACCEPTS", "NEXT HOP"]).right([1, 2, 3]);
        for member in &group.members {
            grid.row([
                member.backend.clone(),
                member.slots.to_string(),
                percent(member.slots.into(), group.slots.into()),
                member.slots_now.to_string(),
                member.accepts.to_string(),
                member.next_hop.clone().unwrap_or_else(|| "unresolved".into()),
            ]);
        }
        let (name, region, slots) = (&pool.pool, &group.region, group.slots);
        let checksum = &group.checksum;
        format!(
            "pool {name}, region {region}: {slots} slots, checksum {checksum}\n{}",
            grid.lines()
        )
    });
    regions.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use lb_common::abi::{
        member::{Accepts, FULL_RAMP, MemberWord},
        next_hop::NextHopWord,
        slot::{NO_RANK, SlotWord},
    };
    use lb_inspect::pool_tables::{GroupTable, Member, Source};

    use super::*;

    fn example() -> Tables {
        let hop = NextHopWord::new([2, 0, 0, 0, 0, 1], 1);
        let member = |n: u32, state, hop| {
            let (address, interface) = (format!("10.0.0.{n}"), Some("eth0".into()));
            Member { address, word: MemberWord::new(n, 1, state, FULL_RAMP, 1), hop, interface }
        };
        let slot = |ranks| SlotWord::new(ranks).0;
        let group = GroupTable::new(&Source {
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
                member(1, Accepts::All, hop),
                member(2, Accepts::Nothing, hop),
                member(3, Accepts::All, NextHopWord::UNRESOLVED),
            ],
        });
        Tables(vec![
            PoolTable { pool: "web".into(), regions: vec![group] },
            PoolTable { pool: "empty".into(), regions: Vec::new() },
        ])
    }

    #[test]
    fn shares_are_exact_and_now_follows_the_lists() {
        // The checksum comes from another XXH64 implementation. Member 2 accepts nothing and member 3 has no next
        // hop; six slots list member 1, the last one does not.
        assert_eq!(
            example().table(),
            "\
pool web, region eu: 7 slots, checksum 2ee7bf07b7e00373
BACKEND   SLOTS   SHARE  NOW  ACCEPTS  NEXT HOP
10.0.0.1      2  28.57%    6  all      02:00:00:00:00:01 on eth0
10.0.0.2      3  42.86%    0  nothing  02:00:00:00:00:01 on eth0
10.0.0.3      2  28.57%    0  all      unresolved

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
    fn no_pools_are_reported() {
        assert_eq!(Tables(Vec::new()).table(), "no pool is published\n");
    }
}
