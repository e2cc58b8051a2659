//! How balancers of a fleet share a capacity while all of them are there. Each case begins with equal portions.

use std::time::Duration;

use anyhow::Result;
use lb_e2e::{
    fixture::{FleetFixture, Health},
    harness,
};
use lb_tests::{
    sandbox::Sandbox,
    syns::{Demand, FullestSecond, Schedule},
};

use super::members::{joined, wait_in_force};
use super::portions::{Outcome, WatchedLoad};

/// New connections a second that the nearest region takes.
const CAPACITIES: [f64; 2] = [1_000.0, 10_000.0];
/// What most of the connections come to changes from one capacity to the other, so that portions have to move.
const PARTS: [[f64; 4]; 2] = [[7.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 7.0]];

pub(super) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A fleet whose balancers are all ready, with this capacity.
pub(super) fn ready(sandbox: &Sandbox, name: &str, capacity: f64) -> Result<FleetFixture> {
    let fleet = joined(sandbox, name, &format!("{capacity}/s"))?;
    wait_in_force(&fleet, 0, 1)?;
    Ok(fleet)
}

/// Gives the fleet another capacity: its second generation.
fn change_capacity(fleet: &FleetFixture, capacity: f64) -> Result<()> {
    let text = fleet.configuration_with(Health::DEFAULT, &format!("{capacity}/s"), None)?;
    fleet.balancers[1].apply(&text)?;
    wait_in_force(fleet, 0, 2).map(drop)
}

/// Sends each demand for its time, and waits for the end.
fn run(
    fleet: &FleetFixture,
    capacity: f64,
    seed: u64,
    demands: &[Demand],
) -> Result<(Outcome, FullestSecond)> {
    let schedule = Schedule::poisson(seed, demands);
    let outcome = WatchedLoad::start(fleet, capacity, schedule)?.finish()?;
    let fullest = outcome.judge()?;
    Ok((outcome, fullest))
}

/// Connections are sent elsewhere only if the whole capacity is used.
pub(super) fn there_is_room(sandbox: &Sandbox) -> Result<()> {
    let fleet = ready(sandbox, "room", CAPACITIES[0])?;
    for (seed, (capacity, parts)) in (11..).zip(CAPACITIES.into_iter().zip(PARTS)) {
        if capacity != CAPACITIES[0] {
            change_capacity(&fleet, capacity)?;
        }
        let demand = Demand::new(seconds(12), 0.8 * capacity, &parts);
        let (outcome, fullest) = run(&fleet, capacity, seed, &[demand])?;
        let elsewhere = outcome.judge_elsewhere(seconds(2)..seconds(12), 0.5)?;
        let rates = &outcome.rates;
        harness::note(format!(
            "70/10/10/10 at 0.8 of {capacity}/s: from the third second on {elsewhere}; {fullest}; a SYN {:?} late at most\n\
             {rates}",
            rates.late
        ));
    }
    Ok(())
}

/// The whole capacity is used, and no more.
pub(super) fn too_many(sandbox: &Sandbox) -> Result<()> {
    let fleet = ready(sandbox, "full", CAPACITIES[0])?;
    for (seed, (capacity, parts)) in (21..).zip(CAPACITIES.into_iter().zip(PARTS)) {
        if capacity != CAPACITIES[0] {
            change_capacity(&fleet, capacity)?;
        }
        let demand = Demand::new(seconds(12), 2.0 * capacity, &parts);
        let (outcome, fullest) = run(&fleet, capacity, seed, &[demand])?;
        let used = outcome.judge_use(seconds(2), seconds(12), 0.985)?;
        let rates = &outcome.rates;
        harness::note(format!(
            "70/10/10/10 at twice {capacity}/s: from the third second on {used}; {fullest}; a SYN {:?} late at most\n{rates}",
            rates.late
        ));
    }
    Ok(())
}

/// A demand that moves is followed in seconds.
pub(super) fn demand_moves(sandbox: &Sandbox) -> Result<()> {
    let fleet = ready(sandbox, "moves", CAPACITIES[0])?;
    for (seed, capacity) in (31..).zip(CAPACITIES) {
        if capacity != CAPACITIES[0] {
            change_capacity(&fleet, capacity)?;
        }
        let at = |balancer: usize| {
            let mut parts = [0.0; 4];
            parts[balancer] = 1.0;
            Demand::new(seconds(7), 0.8 * capacity, &parts)
        };
        let (outcome, fullest) = run(&fleet, capacity, seed, &[at(0), at(2)])?;
        let rates = &outcome.rates;
        let each = (7..14).map(|n| 100.0 * rates.share_elsewhere(seconds(n)..seconds(n + 1)));
        let each: Vec<_> = each.map(|percent| format!("{percent:.1}")).collect();
        harness::note(format!(
            "0.8 of {capacity}/s moves to another balancer: {} % sent elsewhere in the seconds after that; {fullest}\n{rates}",
            each.join(", "),
        ));
        outcome.judge_elsewhere(seconds(10)..seconds(11), 5.0)?;
        outcome.judge_elsewhere(seconds(11)..seconds(14), 1.0)?;
    }
    Ok(())
}
