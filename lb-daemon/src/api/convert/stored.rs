//! A configuration as the store keeps it: the bytes of its message, so that later versions read it.

use prost::Message;
use spillway_proto::v1;

use super::{Invalid, configuration};
use crate::model::Configuration;

/// Why stored bytes are no configuration.
#[derive(Debug, thiserror::Error)]
pub enum Undecodable {
    /// They are no message.
    #[error(transparent)]
    Message(#[from] prost::DecodeError),
    /// The message breaks a rule.
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// The bytes of a configuration.
pub fn encode(configuration: &Configuration) -> Vec<u8> {
    v1::Configuration::from(configuration).encode_to_vec()
}

/// The configuration that bytes of [`encode`] mean.
///
/// # Errors
/// [`Undecodable`]: they were changed, or written by a version with other rules.
pub fn decode(bytes: &[u8]) -> Result<Configuration, Undecodable> {
    Ok(configuration(&v1::Configuration::decode(bytes)?)?)
}
