use std::time::SystemTime;

use super::{Generation, Revision};
use lb_config::StoredMessage;
use lb_model::ids::Ids;

/// A stored generation whose configuration this version cannot use. The packet path may be at it.
#[derive(Clone, Debug, PartialEq)]
pub struct Unusable {
    /// Its number.
    pub number: u64,
    /// When it came into force.
    pub applied_at: SystemTime,
    /// Its numbers in the maps.
    pub ids: Ids,
    /// Schema revision of the daemon that wrote it.
    pub schema: Revision,
    /// Why it cannot be used.
    pub cause: String,
    /// What is stored, with the fields that this version knows; `None`: it cannot be read at all.
    pub message: Option<StoredMessage>,
}

impl Unusable {
    /// A valid generation that cannot be used for another reason.
    pub(super) fn from_generation(generation: Generation, cause: String) -> Self {
        let Generation { number, applied_at, configuration, ids, schema } = generation;
        let message = Some(StoredMessage::from(&configuration));
        Self { number, applied_at, ids, schema, cause, message }
    }

    /// Whether the message has all that is stored.
    pub fn is_whole(&self) -> bool {
        self.message.is_some() && self.schema <= Revision::CURRENT
    }
}
