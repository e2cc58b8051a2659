//! A configuration as the store keeps it: the bytes of its message, so that later versions read it.

use prost::Message;
use spillway_proto::v1;

use lb_model::Configuration;

use super::to_message;
use crate::{Invalid, validate};

/// A configuration as it was stored, which may break the rules of this version.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredMessage(pub v1::Configuration);

impl StoredMessage {
    /// The message that bytes of [`encode`] mean; fields that this version does not know are left out.
    ///
    /// # Errors
    /// They are no message.
    pub fn read(bytes: &[u8]) -> Result<Self, prost::DecodeError> {
        v1::Configuration::decode(bytes).map(Self)
    }

    /// The configuration that it is.
    ///
    /// # Errors
    /// It breaks a rule.
    pub fn configuration(&self) -> Result<Configuration, Invalid> {
        validate(&self.0)
    }
}

impl From<&Configuration> for StoredMessage {
    fn from(configuration: &Configuration) -> Self {
        Self(to_message(configuration))
    }
}

/// The bytes of a configuration.
pub fn encode(configuration: &Configuration) -> Vec<u8> {
    to_message(configuration).encode_to_vec()
}
