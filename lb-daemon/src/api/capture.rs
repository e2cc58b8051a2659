//! The stream of a capture.

use std::pin::Pin;

use futures::{Stream, StreamExt};
use spillway_proto::v1::CaptureResponse;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use super::convert;
use crate::capture::{CaptureError, CaptureEvent};
use lb_base::error_chain;

/// What somebody who captures gets.
pub(super) type CaptureStream = Pin<Box<dyn Stream<Item = Result<CaptureResponse, Status>> + Send>>;

/// What a capture says; it ends when this is dropped.
pub(super) fn stream(events: mpsc::Receiver<Result<CaptureEvent, CaptureError>>) -> CaptureStream {
    Box::pin(ReceiverStream::new(events).map(|event| Ok(convert::capture_event(event?))))
}

impl From<CaptureError> for Status {
    fn from(error: CaptureError) -> Self {
        let code = match &error {
            CaptureError::Busy(_) => Code::FailedPrecondition,
            CaptureError::Maps(_) | CaptureError::Ring(_) | CaptureError::Stopping => {
                Code::Unavailable
            }
        };
        Self::new(code, error_chain::message(&error))
    }
}
