//! Pictures.

mod canvas;
mod curves;
mod histogram;
mod panels;
mod shares;

pub use curves::{Curve, curves};
pub use histogram::histogram;
pub use panels::panels;
pub use shares::svg;

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
