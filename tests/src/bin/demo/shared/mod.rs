//! What all plays have in common: where they are, what the user sees, and the parts of a stage.

mod parts;
mod place;
mod screen;
mod table;
mod watch;

pub(crate) use parts::{balancer, map, natives, receivers};
pub(crate) use place::Place;
pub(crate) use screen::Screen;
pub(crate) use table::{align, percent, table};
pub(crate) use watch::Watch;
