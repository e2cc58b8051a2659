//! The tour: Spillway at work in a few seconds.

mod act;
mod load;
mod outcome;
mod play;
mod stage;

use anyhow::Result;

use crate::shared::{Place, Screen};

/// Sets the stage, plays, and compares what everybody says.
pub(crate) fn run(place: &Place, screen: &mut Screen) -> Result<()> {
    screen.title("Spillway: one address, two regions, six backends");
    let mut stage = stage::Stage::set(place, screen)?;
    let record = play::play(&mut stage, screen)?;
    outcome::conclude(&stage, &record, place, screen)
}
