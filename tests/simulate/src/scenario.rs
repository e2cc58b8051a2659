//! What is measured of a fleet of one size.

use std::time::Duration;

use anyhow::Result;
use lb_sharing::Parts;

use crate::{
    cost::{Cost, cpu_time},
    fleet::{Counted, Fleet, STEP, Size},
};

/// Demand, as a portion of each capacity.
const LOAD: f64 = 0.8;
/// Converged: of no window after that more than this portion is refused.
const REFUSED: f64 = 0.01;
const WINDOW: Duration = Duration::from_millis(500);
/// Balancers of which CPU time and bytes are taken. The first one has most of the demand.
const MEASURED: usize = 2;

/// How long each part lasts, in simulated time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// At most, until demand that begins or moves is followed; and least.
    pub(crate) converge: (Duration, Duration),
    pub(crate) steady: Duration,
}

impl Times {
    pub(crate) const FULL: Self = Self {
        converge: (Duration::from_secs(3), Duration::from_secs(60)),
        steady: Duration::from_secs(4),
    };
    pub(crate) const QUICK: Self = Self {
        converge: (Duration::from_secs(4), Duration::from_secs(20)),
        steady: Duration::from_secs(2),
    };
}

/// A second of one balancer in steady state, on average.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rates {
    pub(crate) rounds: f64,
    pub(crate) messages: f64,
    pub(crate) bytes: f64,
    pub(crate) writes: f64,
    pub(crate) written: f64,
    /// CPU seconds in a second.
    pub(crate) cpu: f64,
    pub(crate) deciding: f64,
    pub(crate) sending: f64,
    pub(crate) receiving: f64,
    pub(crate) storing: f64,
}

impl Rates {
    fn over(cost: Cost, balancers: usize, time: Duration) -> Self {
        let each = 1.0 / (balancers as f64 * time.as_secs_f64());
        let count = |number: u64| number as f64 * each;
        let seconds = |time: Duration| time.as_secs_f64() * each;
        Self {
            rounds: count(cost.rounds),
            messages: count(cost.messages),
            bytes: count(cost.bytes),
            writes: count(cost.writes),
            written: count(cost.written),
            cpu: seconds(cost.cpu()),
            deciding: seconds(cost.deciding),
            sending: seconds(cost.sending),
            receiving: seconds(cost.receiving),
            storing: seconds(cost.storing),
        }
    }
}

/// The figures of one size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) size: Size,
    /// Until all balancers enforce their portions of new groups.
    pub(crate) born: Duration,
    /// Until demand that begins, most of it at one balancer, is admitted. `None`: it was not within the time.
    pub(crate) begun: Option<Duration>,
    /// The same after most of it moved to another balancer.
    pub(crate) moved: Option<Duration>,
    /// Portion of the demand that was refused in steady state.
    pub(crate) refused: f64,
    pub(crate) rates: Rates,
    /// Bytes of one balancer's contribution to an epoch, as etcd has it, and the CPU time to compute what follows from those
    /// of all.
    pub(crate) contribution: usize,
    pub(crate) epoch: Duration,
    /// CPU time that the simulation took.
    pub(crate) took: Duration,
}

/// Measures a fleet.
///
/// # Errors
/// The parts of a group are not one whole, or a message is refused: both are mistakes of the code under test.
pub(crate) fn measure(size: Size, times: Times) -> Result<Figures> {
    let before = cpu_time();
    let mut fleet = Fleet::new(size, MEASURED, 20)?;
    let measured = MEASURED.min(size.balancers);
    fleet.demand(LOAD, false);
    let born = until_born(&mut fleet)?;
    let begun = until_converged(&mut fleet, times)?;
    let (from, cost) = (fleet.counted.len(), fleet.cost());
    fleet.run(times.steady)?;
    let rates = Rates::over(since(fleet.cost(), cost), measured, times.steady);
    let refused = refused(&fleet.counted[from..]);
    fleet.demand(LOAD, true);
    let moved = until_converged(&mut fleet, times)?;
    check_whole(&mut fleet)?;
    let (contribution, epoch) = crate::etcd::epoch(&fleet)?;
    let took = cpu_time().saturating_sub(before);
    Ok(Figures { size, born, begun, moved, refused, rates, contribution, epoch, took })
}

fn since(cost: Cost, before: Cost) -> Cost {
    Cost {
        rounds: cost.rounds - before.rounds,
        messages: cost.messages - before.messages,
        bytes: cost.bytes - before.bytes,
        writes: cost.writes - before.writes,
        written: cost.written - before.written,
        deciding: cost.deciding - before.deciding,
        sending: cost.sending - before.sending,
        receiving: cost.receiving - before.receiving,
        storing: cost.storing - before.storing,
    }
}

/// Runs until each balancer enforces its portions. They are in force when they are in its store.
fn until_born(fleet: &mut Fleet) -> Result<Duration> {
    while fleet.balancers.iter().any(|balancer| balancer.sharing.ledger().adopted == 0) {
        fleet.step()?;
        anyhow::ensure!(fleet.now < Duration::from_secs(10), "portions of new groups are missing");
    }
    Ok(fleet.now)
}

/// Runs at least and at most as long as `times` say. Returns how long it took to converge.
fn until_converged(fleet: &mut Fleet, times: Times) -> Result<Option<Duration>> {
    let (start, from) = (fleet.now, fleet.counted.len());
    let (least, most) = times.converge;
    loop {
        fleet.run(WINDOW)?;
        let (elapsed, converged) = (fleet.now - start, converged(&fleet.counted[from..]));
        let is_settled = converged.is_some_and(|at| elapsed >= at + least);
        if is_settled || elapsed >= most {
            return Ok(converged);
        }
    }
}

/// When refusals ended: the end of the last window of which more than [`REFUSED`] was refused. `None`: they go on.
fn converged(counted: &[Counted]) -> Option<Duration> {
    let steps = (WINDOW.as_millis() / STEP.as_millis()) as usize;
    let windows: Vec<f64> = counted.chunks_exact(steps).map(refused).collect();
    let last = windows.iter().rposition(|refused| *refused > REFUSED);
    let end = last.map_or(0, |last| last + 1);
    (end < windows.len()).then(|| WINDOW * u32::try_from(end).unwrap_or(u32::MAX))
}

fn refused(counted: &[Counted]) -> f64 {
    let offered: u64 = counted.iter().map(|it| it.offered).sum();
    let admitted: u64 = counted.iter().map(|it| it.admitted).sum();
    1.0 - admitted as f64 / offered.max(1) as f64
}

/// What is owned and on its way of each group has to be one whole, and no more: otherwise the figures are of something that
/// does not work.
fn check_whole(fleet: &mut Fleet) -> Result<()> {
    for key in &fleet.groups.keys {
        let mut whole = Parts::NONE;
        for balancer in &fleet.balancers {
            whole += balancer.sharing.ledger().owned(key);
        }
        anyhow::ensure!(whole <= Parts::WHOLE, "{whole} of pool {} is owned", key.pool);
        anyhow::ensure!(whole.fraction() > 0.5, "{whole} of pool {} is owned", key.pool);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of half a second, with so many refused of 1,000.
    fn windows(refused: &[u64]) -> Vec<Counted> {
        let window = |refused: &u64| {
            let steps = WINDOW.as_millis() / STEP.as_millis();
            vec![Counted { offered: 1_000, admitted: 1_000 - refused }; steps as usize]
        };
        refused.iter().flat_map(window).collect()
    }

    #[test]
    fn it_has_converged_when_refusals_ended_for_good() {
        let at = |refused: &[u64]| converged(&windows(refused)).map(|at| at.as_millis());
        assert_eq!(at(&[0, 0]), Some(0));
        assert_eq!(at(&[50, 1, 0]), Some(500));
        assert_eq!(at(&[50, 1, 20, 0]), Some(1_500));
        assert_eq!(at(&[50, 1, 20]), None);
        assert_eq!(at(&[]), None);
    }
}
