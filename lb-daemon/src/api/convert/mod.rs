//! Between protobuf messages and our own types. Nothing else in the daemon sees protobuf.

mod answer;
mod captured;
mod demand;
mod flow;
mod probed;
mod refused;

pub(super) use answer::{applied, event, exported, history, snapshot, status};
pub(super) use captured::{capture_event, capture_filter};
pub(super) use demand::regions;
pub(super) use flow::flow;
pub(super) use probed::{probe_event, probe_request};
pub(super) use refused::{IntoStatus, OrStatus, WrongField, hinted};
