//! What came of a reload, as a message.

use spillway_proto::v1;
use tonic::Status;

use crate::reloads::Outcome;

/// # Errors
/// Something was refused: all of it is in the message.
pub(in crate::api) fn reloaded(outcome: Outcome) -> Result<v1::ReloadResponse, Status> {
    let Outcome { generation, refused, waiting } = outcome;
    if refused.is_empty() {
        return Ok(v1::ReloadResponse { generation, waiting_settings: waiting });
    }
    Err(Status::failed_precondition(refused.join("; ")))
}
