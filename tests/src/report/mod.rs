//! What a run looked like: who answered how much and when, as text and as a picture.

mod agreement;
mod chart;
mod colours;
mod series;
mod svg;

pub use agreement::{Agreement, BackendCount, ClientCount, Disagreement};
pub use chart::chart;
pub use colours::{Colour, Ink};
pub use series::{Event, Series};
pub use svg::svg;
