//! As many requests as two CPUs send, balance and count; before and after it as many as pass the floor program.
//!
//! Requests that come before all backends are up make displaced connections, and for ten minutes after the last packet of
//! one, each packet is looked up among them. So the rate is measured twice: at once, and of a service that was up before
//! the first request came.

use std::time::{Duration, Instant};

use anyhow::Result;
use lb_tests::process::pause;

use super::{
    generator::{Load, Sent},
    setup::Setup,
    site::Through,
    tally::{Tally, total},
};
use crate::shared::Screen;

/// Part of the time that the floor is measured for, before and after.
const FLOOR: f64 = 0.25;
/// Part of the time that the balancer is measured for while connections are displaced.
const EARLY: f64 = 0.1;
/// Until as many requests are open as later on.
const BEGINNING: Duration = Duration::from_secs(1);

/// What was sent, and what arrived of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub(crate) sent: Sent,
    pub(crate) tally: Tally,
    /// Requests that began at a backend each second, in the time that is measured.
    pub(crate) rate: f64,
}

impl Arrived {
    /// Packets that did not arrive.
    pub(crate) const fn lost(&self) -> u64 {
        self.sent.packets().saturating_sub(self.tally.packets)
    }
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steady {
    pub(crate) floors: [Arrived; 2],
    /// While packets are looked up among displaced connections.
    pub(crate) early: Arrived,
    pub(crate) balancer: Arrived,
}

impl Steady {
    /// Requests a second past the floor program.
    pub(crate) fn floor_rate(&self) -> f64 {
        self.floors.iter().map(|floor| floor.rate).sum::<f64>() / self.floors.len() as f64
    }
}

/// Sends as much as goes, past the balancer for `time`. A trial does not wait until no connection is displaced.
pub(crate) fn measure(
    setup: &mut Setup,
    time: Duration,
    is_trial: bool,
    screen: &Screen,
) -> Result<Steady> {
    screen.heading("As many requests as two CPUs send, balance and count");
    let early = send(setup, Through::Balancer, 2, time.mul_f64(EARLY), screen)?;
    if !is_trial {
        setup.forget_connections()?;
        screen.done("the service was taken away and is back: no connection is displaced");
    }
    let before = send(setup, Through::Floor, 3, time.mul_f64(FLOOR), screen)?;
    let balancer = send(setup, Through::Balancer, 4, time, screen)?;
    let after = send(setup, Through::Floor, 5, time.mul_f64(FLOOR), screen)?;
    Ok(Steady { floors: [before, after], early, balancer })
}

fn send(
    setup: &mut Setup,
    through: Through,
    clients: u64,
    time: Duration,
    screen: &Screen,
) -> Result<Arrived> {
    let Setup { generators, site, .. } = setup;
    let before = site.tally()?;
    let load = Load { through, rate: None, clients };
    let (rate, sent) = generators.send(site, load, || {
        pause(BEGINNING);
        let (start, before) = (Instant::now(), total(&site.begun()?));
        pause(time);
        Ok((total(&site.begun()?) - before) as f64 / start.elapsed().as_secs_f64())
    })?;
    let arrived = Arrived { sent, tally: site.tally()? - before, rate };
    let what = match through {
        Through::Balancer => "the balancer",
        Through::Floor => "the floor program",
    };
    screen.done(&format!(
        "{what}: {:.3} million requests a second for {:.0} s; {} of {} packets lost",
        rate / 1e6,
        time.as_secs_f64(),
        arrived.lost(),
        sent.packets()
    ));
    Ok(arrived)
}
