//! The tour: Spillway at work in a few seconds.

mod load;
mod outcome;
mod phase;
mod run;
mod setup;

use anyhow::Result;

use crate::shared::{Environment, Screen};

/// Sets up, runs the tour, and compares what clients, backends and balancer counted.
pub(crate) fn run(environment: &Environment, screen: &mut Screen) -> Result<()> {
    screen.title("Spillway: one address, two regions, six backends");
    let mut setup = setup::Setup::set(environment, screen)?;
    let record = run::run(&mut setup, screen)?;
    outcome::conclude(&setup, &record, environment, screen)
}
