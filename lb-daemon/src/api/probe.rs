//! The stream of a probe.

use std::pin::Pin;

use futures::{Stream, StreamExt};
use spillway_proto::v1::ProbeResponse;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use super::convert;
use crate::{
    causes,
    health::reach::{ReachError, Told},
};

/// What somebody who probes gets.
pub(super) type ProbeStream = Pin<Box<dyn Stream<Item = Result<ProbeResponse, Status>> + Send>>;

/// What a probe says; it ends when this is dropped.
pub(super) fn stream(told: mpsc::Receiver<Result<Told, ReachError>>) -> ProbeStream {
    Box::pin(ReceiverStream::new(told).map(|told| Ok(convert::told(told?))))
}

impl From<ReachError> for Status {
    fn from(error: ReachError) -> Self {
        let code = match &error {
            ReachError::Busy(_) | ReachError::Unusable(_) => Code::FailedPrecondition,
            ReachError::NoWay(_) => Code::NotFound,
            ReachError::Stopping(_) => Code::Unavailable,
        };
        Self::new(code, causes::of(&error))
    }
}
