//! The configuration that the balancers of a fleet share, as bytes. Equal configurations have equal bytes.
//!
//! They are in parts, as the store has its pieces: a change of a pool changes the part that has this pool, and no other one. Each
//! part is a message of its own, and all of them one after the other are one message too.

use std::iter;

use prost::Message as _;

use super::{
    Revision, SchemaMismatch,
    pieces::{encode_pools, pool_groups},
    record::read_message,
    schema_use::{SchemaNeed, SchemaUseError, needed},
};
use lb_config::Invalid;
use lb_model::Configuration;

/// What the bytes are. Two balancers with different programs must agree on it, so a field never changes.
#[derive(Clone, PartialEq, prost::Message)]
struct SharedConfiguration {
    /// That the configuration needs: an older program does not know all of its fields. Not that of the program that wrote
    /// it, so balancers of several versions share what all of them know.
    #[prost(int32, tag = "1")]
    schema_revision: i32,
    /// One after the other a `v1::Configuration` with all values set. Kept as bytes, so that they are read only if the
    /// revision is known.
    #[prost(bytes = "vec", repeated, tag = "2")]
    configuration: Vec<Vec<u8>>,
}

/// Why a fleet cannot share a configuration, or a balancer cannot use the one that is shared.
#[derive(Debug, thiserror::Error)]
pub enum SharedError {
    #[error("the configuration of the fleet cannot be read: {0}")]
    Malformed(#[from] prost::DecodeError),
    /// This balancer may not know fields of it.
    #[error(transparent)]
    Schema(#[from] SchemaMismatch),
    /// Its schema revision says that this balancer knows all of it, but it does not.
    #[error("the configuration of the fleet has something that this version does not know: {0}")]
    Unknown(String),
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

impl SharedError {
    /// Whether a newer balancer wrote the configuration: this one must not replace what it does not know.
    pub const fn is_newer(&self) -> bool {
        matches!(self, Self::Schema(SchemaMismatch::NewerFleet { .. }) | Self::Unknown(_))
    }
}

/// A configuration that balancers are to share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedConfiguration {
    /// Without the pools, then the pools in groups.
    pub parts: Vec<Vec<u8>>,
    /// What it needs of each balancer.
    pub need: SchemaNeed,
}

/// The bytes of a configuration that balancers are to share, with the schema revision that it needs.
///
/// # Errors
/// [`SharedError::NoHashKey`]
pub fn encode_shared(configuration: &Configuration) -> Result<EncodedConfiguration, SharedError> {
    if configuration.hash_key.is_none() {
        return Err(SharedError::NoHashKey);
    }
    let mut encoded = vec![lb_config::encode_without_pools(configuration)];
    encoded.extend(pool_groups(configuration).values().map(encode_pools));
    let need = known(needed(&encoded.concat()))?;
    // The first part has the revision.
    let revisions = iter::once(need.revision.number()).chain(iter::repeat(0));
    let parts = revisions.zip(encoded).map(|(schema_revision, part)| {
        SharedConfiguration { schema_revision, configuration: vec![part] }.encode_to_vec()
    });
    Ok(EncodedConfiguration { parts: parts.collect(), need })
}

fn known(need: Result<SchemaNeed, SchemaUseError>) -> Result<SchemaNeed, SharedError> {
    need.map_err(|error| match error {
        SchemaUseError::Unknown(what) => SharedError::Unknown(what),
        SchemaUseError::Decode(error) => SharedError::Malformed(error),
        error @ SchemaUseError::Truncated => SharedError::Unknown(error.to_string()),
    })
}

/// The configuration in bytes of [`encode_shared`], which another program may have written.
///
/// # Errors
/// [`SharedError`]
pub fn decode_shared(bytes: &[u8]) -> Result<Configuration, SharedError> {
    let SharedConfiguration { schema_revision, configuration } =
        SharedConfiguration::decode(bytes)?;
    SchemaMismatch::check_fleet(Revision::new(schema_revision), Revision::CURRENT)?;
    let configuration = configuration.concat();
    let message = read_message(&configuration)?;
    known(needed(&configuration))?;
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
