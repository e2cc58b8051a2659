//! From an empty daemon to one that serves: requests arrive all the time, and a configuration is applied.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use lb_tests::process::{PATIENCE, until};

use super::{
    generator::Load,
    setup::{Setup, backends, file},
    site::Through,
    tally::{ByBackend, total},
};
use crate::shared::Screen;

/// Requests a second meanwhile.
const RATE: f64 = 100_000.0;

/// From the start of the command that applies the configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// Until a backend gets a request.
    pub(crate) first: Duration,
    /// Until each backend has got one.
    pub(crate) all: Duration,
}

/// Applies the configuration while requests arrive.
pub(crate) fn measure(setup: &mut Setup, screen: &mut Screen) -> Result<Start> {
    screen.heading("From an empty daemon");
    let text = file(backends(false));
    fs::write(&setup.file, &text).with_context(|| setup.file.display().to_string())?;
    let load = Load { through: Through::Balancer, rate: Some(RATE), clients: 1 };
    let Setup { generators, balancer, site, .. } = setup;
    let site = &*site;
    let (start, _) = generators.send(site, load, || {
        thread::scope(|scope| {
            let begun = Instant::now();
            let applying = scope.spawn(|| balancer.apply(&text));
            let wait_for = |what: &str, is_so: fn(&ByBackend) -> bool| {
                until(what, PATIENCE, || Ok(is_so(&site.begun()?).then(|| begun.elapsed())))
            };
            let first = wait_for("a request arrives", |counts| total(counts) > 0);
            let all = wait_for("each backend gets a request", |counts| {
                backends(false).all(|backend| counts[usize::from(backend)] > 0)
            });
            applying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(Start { first: first?, all: all? })
        })
    })?;
    screen.command("balancer", "spillway apply -f web.toml");
    screen.done(&format!(
        "the first request arrives after {:.0?}, and each backend has one after {:.0?}",
        start.first, start.all
    ));
    Ok(start)
}
