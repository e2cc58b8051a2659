//! Conversion between messages and the types of the daemon. Nothing outside of `api` sees protobuf.

mod capture;
mod changes;
mod error;
mod explain;
mod overrides;
mod responses;
mod status;
mod vip_probe;

pub(super) use capture::{capture_filter, capture_stream};
pub(super) use changes::{applied, warning};
pub(super) use error::ApiError;
pub(super) use explain::flow;
pub(super) use overrides::{override_kind, override_message, override_names, override_target};
pub(super) use responses::{
    backend, difference, event, exported, generations, history, regions, timestamp,
    without_backends,
};
pub(super) use status::{IntoStatus, OrStatus, WrongField};
pub(super) use vip_probe::{probe_request, probe_vips_stream};
