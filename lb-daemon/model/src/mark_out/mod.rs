//! Remaps: for how long what home meant before counts beside what it means now, and who was
//! out of service for so long that he is nobody's home any more. Pure: what time it is is handed in.

mod presence;
mod settling;
#[cfg(test)]
mod tests;

pub use presence::{MarkOuts, Presence, RegionPresence};
pub use settling::{Phase, Settling};
