//! The stream of a probe.

use std::pin::Pin;

use futures::{Stream, StreamExt};
use spillway_proto::v1::ProbeVipsResponse;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use super::convert;
use crate::vip_probe::{VipProbeError, VipProbeEvent};
use lb_base::error_chain;

/// What somebody who probes gets.
pub(super) type ProbeVipsStream =
    Pin<Box<dyn Stream<Item = Result<ProbeVipsResponse, Status>> + Send>>;

/// What a probe says; it ends when this is dropped.
pub(super) fn stream(
    events: mpsc::Receiver<Result<VipProbeEvent, VipProbeError>>,
) -> ProbeVipsStream {
    Box::pin(ReceiverStream::new(events).map(|event| Ok(convert::probe_event(event?))))
}

impl From<VipProbeError> for Status {
    fn from(error: VipProbeError) -> Self {
        let code = match &error {
            VipProbeError::Busy(_) | VipProbeError::Unusable(_) => Code::FailedPrecondition,
            VipProbeError::NoTarget(_) => Code::NotFound,
            VipProbeError::Stopping(_) => Code::Unavailable,
        };
        Self::new(code, error_chain::message(&error))
    }
}
