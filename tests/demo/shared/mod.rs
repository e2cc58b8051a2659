//! What tour and experiments share: their environment, what the user sees, and the parts of a setup.

mod environment;
mod parts;
mod screen;
mod watch;

pub(crate) use environment::Environment;
pub(crate) use parts::{balancer, map, natives, receivers};
pub(crate) use screen::{Screen, align, percent, table};
pub(crate) use watch::Watch;
