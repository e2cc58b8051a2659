//! A region takes its limit and no more in any window, and little overflows below it.

use std::time::Duration;

use anyhow::{Result, ensure};
use lb_e2e::harness;
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;

use crate::overload::fixture::{OverloadFixture, PATIENT, Run};

/// What of the limit is used where twice as much comes.
const UTILISATION: f64 = 0.97;
/// What of four fifths of the limit spills.
const LITTLE: f64 = 0.005;
/// Runs of which one must spill as little: a sender that others hold up sends in bursts after that.
const RUNS: usize = 6;

/// Twice what the near region takes: in no window more than the burst above the limit, nobody spilled
/// while there was room, and hardly anything of the limit left unused.
pub(crate) fn twice_the_capacity(sandbox: &Sandbox) -> Result<()> {
    let mut overload = OverloadFixture::start(sandbox, "twice", PATIENT)?;
    for (per_second, seconds) in [(10_000, 3), (10, 8)] {
        let moment = |number| Duration::from_secs(1) * number / (2 * per_second);
        let moments: Vec<_> = (0..2 * per_second * seconds).map(moment).collect();
        let limit = overload.limit(per_second)?;
        let run = overload.run(&moments)?;
        let judgement = limit.judge(&run.decisions)?;
        harness::note(format!(
            "twice {per_second}/s: {judgement}; allowed {}; {}",
            limit.burst(),
            times(&run)
        ));
        ensure!(judgement.utilisation > UTILISATION * judgement.possible, "{judgement:?}");
    }
    Ok(())
}

/// At random moments four fifths of the limit on the average.
pub(crate) fn four_fifths(sandbox: &Sandbox) -> Result<()> {
    const PER_SECOND: u32 = 500;
    const ARRIVALS: usize = 4_000;
    let mut overload = OverloadFixture::start(sandbox, "poisson", PATIENT)?;
    let mut random = Random::new(8);
    let mut at = 0.0;
    let mut moment = || {
        let uniform = ((random.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        at -= uniform.ln() / (0.8 * f64::from(PER_SECOND));
        Duration::from_secs_f64(at)
    };
    let moments: Vec<_> = (0..ARRIVALS).map(|_| moment()).collect();
    let mut spilled = Vec::new();
    while spilled.iter().all(|share| *share >= LITTLE) {
        ensure!(spilled.len() < RUNS, "spilled of {ARRIVALS}: {spilled:?}");
        let limit = overload.limit(PER_SECOND)?;
        let run = overload.run(&moments)?;
        // Nobody spilled while there was room: where more do, it was their sender that held them up.
        let judgement = limit.judge(&run.decisions)?;
        let far = run.decisions.iter().filter(|decision| !decision.near).count();
        spilled.push(far as f64 / run.decisions.len() as f64);
        harness::note(format!(
            "{ARRIVALS} SYNs at random moments, 400 of {PER_SECOND} a second: {far} spilled, at most \
             {:.2} above the limit in any window, allowed {}; {}",
            judgement.excess,
            limit.burst(),
            times(&run)
        ));
    }
    Ok(())
}

/// How long SYNs were under way, how far behind the clock of ticks was, and how many were lost.
fn times(run: &Run) -> String {
    let of = |time: &dyn Fn(&lb_tests::syns::Decision) -> u64| {
        let mut all: Vec<_> = run.decisions.iter().map(time).collect();
        all.sort_unstable();
        let [middle, last] = [all[all.len() / 2], all[all.len() - 1]].map(Duration::from_nanos);
        format!("{middle:?} (at most {last:?})")
    };
    let under_way = of(&|decision| decision.arrived.saturating_sub(decision.sent));
    let behind = of(&|decision| decision.behind());
    let lost = run.sent - run.decisions.len();
    format!("{under_way} under way, ticks {behind} behind, {lost} lost")
}
