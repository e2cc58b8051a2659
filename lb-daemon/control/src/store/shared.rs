//! The configuration that the balancers of a fleet share, as bytes. Equal configurations have equal bytes.

use prost::Message as _;

use super::{Revision, SchemaMismatch};
use lb_config::{Invalid, StoredMessage};
use lb_model::Configuration;

/// What the bytes are. Two balancers with different programs must agree on it, so a field never changes.
#[derive(Clone, PartialEq, prost::Message)]
struct SharedConfiguration {
    /// Of the program that wrote it.
    #[prost(int32, tag = "1")]
    schema_revision: i32,
    /// A `v1::Configuration` with all values set. Kept as bytes, so that they are read only if the revision is known.
    #[prost(bytes = "vec", tag = "2")]
    configuration: Vec<u8>,
}

/// Why a fleet cannot share a configuration, or a balancer cannot use the one that is shared.
#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    #[error("the configuration of the fleet cannot be read: {0}")]
    Malformed(#[from] prost::DecodeError),
    /// This balancer may not know fields of it.
    #[error(transparent)]
    Schema(#[from] SchemaMismatch),
    #[error("this version refuses the configuration of the fleet: {0}")]
    Invalid(#[from] Box<Invalid>),
    /// Each balancer would hash with its own key.
    #[error(
        "the configuration of the fleet names no hash_key, so its balancers would choose different backends"
    )]
    NoHashKey,
    /// Each balancer would keep or choose its own number.
    #[error(
        "the configuration of the fleet leaves the slots of pool {0} open, so its balancers would choose different backends"
    )]
    OpenSlots(String),
}

/// The bytes of a configuration that balancers are to share, with the schema revision of this program.
///
/// # Errors
/// [`SharedError::NoHashKey`]
pub fn encode_shared(configuration: &Configuration) -> Result<Vec<u8>, SharedError> {
    if configuration.hash_key.is_none() {
        return Err(SharedError::NoHashKey);
    }
    let shared = SharedConfiguration {
        schema_revision: Revision::CURRENT.number(),
        configuration: lb_config::encode(configuration),
    };
    Ok(shared.encode_to_vec())
}

/// The configuration in bytes of [`encode_shared`], which another program may have written.
///
/// # Errors
/// [`SharedError`]
pub fn decode_shared(bytes: &[u8]) -> Result<Configuration, SharedError> {
    let SharedConfiguration { schema_revision, configuration } =
        SharedConfiguration::decode(bytes)?;
    SchemaMismatch::check_fleet(Revision::new(schema_revision), Revision::CURRENT)?;
    let message = StoredMessage::read(&configuration)?;
    let open = message.0.pools.iter().find(|pool| pool.slots.unwrap_or_default() == 0);
    if let Some(pool) = open {
        return Err(SharedError::OpenSlots(pool.name.clone()));
    }
    let configuration = message.configuration().map_err(Box::new)?;
    match configuration.hash_key {
        Some(_) => Ok(configuration),
        None => Err(SharedError::NoHashKey),
    }
}
