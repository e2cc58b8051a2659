//! Changes of home: for how long what home meant before counts beside what it means now, and who was
//! out of service for so long that he is nobody's home any more. Pure: what time it is is handed in.

mod absences;
mod settling;
#[cfg(test)]
mod tests;

pub use absences::{Absences, Presence, RegionPresence};
pub use settling::{Phase, Settling};
