//! Three servers behind the balancer, then three in each of two regions.

use anyhow::{Context as _, Result, ensure};
use lb_tests::topology::REGIONS;

use super::round::Round;
use super::setup::Setup;
use super::shares::{Plan, Shares};
use crate::shared::Screen;

/// Requests a second of the tutorial.
pub(crate) const ONE: [f64; 5] = [5.0, 10.0, 12.0, 15.0, 20.0];
pub(crate) const TWO: [f64; 3] = [10.0, 15.0, 20.0];
/// Little load, with nobody in anybody's way.
pub(crate) const CALM: f64 = 5.0;
/// The tutorial's capacities, and others.
const EVEN: [f64; 2] = [10.0, 10.0];
const UNEVEN: [[f64; 2]; 2] = [[12.0, 4.0], [4.0, 12.0]];

/// A round with two regions, and what the second had of it.
#[derive(Clone, Debug)]
pub(crate) struct OverflowRound {
    pub(crate) plan: Plan,
    /// From 0, of this plan.
    pub(crate) number: usize,
    pub(crate) round: Round,
    pub(crate) shares: Option<Shares>,
}

/// What was seen with two regions.
#[derive(Clone, Debug)]
pub(crate) struct Overflow {
    /// With little load.
    pub(crate) calm: Round,
    /// With the tutorial's capacities, in their order.
    pub(crate) even: Vec<OverflowRound>,
    /// With others.
    pub(crate) uneven: Vec<OverflowRound>,
    /// With nobody in the first region.
    pub(crate) first_down: Vec<OverflowRound>,
}

/// One region, no limit: all rates, until it is overloaded.
pub(crate) fn one_region(setup: &Setup, screen: &mut Screen) -> Result<Vec<Round>> {
    screen.heading("One region of three servers");
    setup.configure(&[None], screen)?;
    let rounds: Vec<_> =
        ONE.iter().map(|rate| Round::run(setup, *rate, screen)).collect::<Result<_>>()?;
    let averages = rounds.iter().map(|round| (round.rate, told(setup, round)));
    climbs(&averages.collect::<Vec<_>>(), setup.scale.noise_ms())?;
    screen.done("latency climbs from 12 requests a second on: three servers do about 15");
    Ok(rounds)
}

/// Two regions with capacities.
pub(crate) fn two_regions(setup: &Setup, rounds: usize, screen: &mut Screen) -> Result<Overflow> {
    screen.heading("Two regions of three, 10 requests/s of capacity each");
    setup.configure(&EVEN.map(Some), screen)?;
    let calm = Round::run(setup, CALM, screen)?;
    let plan = |capacities, first_is_down, rate| Plan { rate, capacities, first_is_down };
    plan(EVEN, false, CALM).check(&calm.arrivals, setup.scale)?;
    let mut even = Vec::new();
    for rate in TWO {
        for number in 0..rounds {
            even.push(OverflowRound::run(setup, plan(EVEN, false, rate), number, screen)?);
        }
    }
    let first =
        even.iter().find(|overflowed| overflowed.plan.rate == 20.0).context("no round at 20")?;
    let (alone, first) = (told(setup, &calm), told(setup, &first.round));
    ensure!(
        first <= 1.5 * alone + setup.scale.noise_ms(),
        "the first round at 20/s averages {first:.0} ms, at {CALM}/s it is {alone:.0} ms"
    );
    screen.done(&format!(
        "the first round at 20/s averages {first:.0} ms, {:.2} times that at {CALM}/s ({alone:.0} ms)",
        first / alone,
    ));

    let mut uneven = Vec::new();
    for capacities in UNEVEN {
        let [near, far] = capacities;
        screen.heading(&format!("Capacities {near}/s and {far}/s"));
        setup.configure(&capacities.map(Some), screen)?;
        for rate in TWO {
            uneven.push(OverflowRound::run(setup, plan(capacities, false, rate), 0, screen)?);
        }
    }
    screen.heading(&format!("Region {} is down", REGIONS[0]));
    setup.configure(&EVEN.map(Some), screen)?;
    for backend in setup.first_region() {
        backend.unplug()?;
        screen.command(backend.name(), "ip link set eth0 down");
    }
    setup.wait_up(setup.first_region().len()..setup.servers.len())?;
    let mut first_down = Vec::new();
    for rate in TWO {
        first_down.push(OverflowRound::run(setup, plan(EVEN, true, rate), 0, screen)?);
    }
    Ok(Overflow { calm, even, uneven, first_down })
}

/// Average response time, in the tutorial's time.
fn told(setup: &Setup, round: &Round) -> f64 {
    setup.scale.told(round.client.average_ms)
}

/// Latency rises with the rate (rates by rising averages in milliseconds), and breaks away beyond what
/// three servers can do.
fn climbs(averages: &[(f64, f64)], noise: f64) -> Result<()> {
    for pair in averages.windows(2) {
        let [(slower, before), (faster, after)] = [pair[0], pair[1]];
        ensure!(
            after + noise > before,
            "one region: {after:.0} ms at {faster}/s, but {before:.0} ms at {slower}/s"
        );
    }
    let at = |rate: f64| averages.iter().find(|known| known.0 == rate).map_or(0.0, |known| known.1);
    let (calm, over) = (at(10.0), at(20.0));
    ensure!(over > 3.0 * calm, "one region: {over:.0} ms at 20/s, {calm:.0} ms at 10/s");
    Ok(())
}

impl OverflowRound {
    fn run(setup: &Setup, plan: Plan, number: usize, screen: &mut Screen) -> Result<Self> {
        let round = Round::run(setup, plan.rate, screen)?;
        let shares = plan.check(&round.arrivals, setup.scale)?;
        if let Some(Shares { expected, whole, windows: (least, most) }) = shares {
            screen.line(&format!(
                "           {} has {whole:.2} a second ({least:.1} to {most:.1}); {expected} ± 1 are due",
                REGIONS[1]
            ));
        }
        Ok(Self { plan, number, round, shares })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_must_climb_and_break_away() {
        let averages = |at_12, at_20| {
            [(5.0, 385.0), (10.0, 450.0), (12.0, at_12), (15.0, 1100.0), (20.0, at_20)]
        };
        assert!(climbs(&averages(540.0, 4100.0), 15.0).is_ok());
        assert!(climbs(&averages(430.0, 4100.0), 15.0).is_err());
        assert!(climbs(&averages(540.0, 1300.0), 15.0).is_err());
    }
}
