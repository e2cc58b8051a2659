//! What a run looked like: who answered how much and when, as text and as a picture.

mod agreement;
mod bars;
mod chart;
mod colours;
mod histogram;
mod series;
mod svg;

pub use agreement::{Agreement, BackendCount, ClientCount, Disagreement};
pub use bars::{Bar, Panel, bars};
pub use chart::chart;
pub use colours::{Colour, Ink};
pub use histogram::Histogram;
pub use series::{Event, Series};
pub use svg::{Curve, curves, histogram, panels, svg};
