//! What is served to whoever is let in.

use spillway_proto::v1::{objects_server::ObjectsServer, spillway_server::SpillwayServer};
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic_health::server::HealthReporter;

use super::{objects::Objects, server::Handles, service::Api, serving, sized::BySize};

/// Largest answer, and largest request of an admin's calls, bytes: a configuration with every backend
/// there is room for.
const LARGEST: usize = 64 << 20;

/// Largest request of all other calls, bytes: they ask, or change a few fields of a backend.
const QUESTION: usize = 64 << 10;

/// The descriptors of the API do not fit each other.
#[derive(Debug, thiserror::Error)]
#[error("descriptors of the API")]
pub struct DescriptorsError(#[from] tonic_reflection::server::Error);

/// The services of the API, what tells of them, and who is to say whether they are well.
pub(super) fn routes(
    handles: Handles,
    stop: CancellationToken,
) -> Result<(Routes, HealthReporter), DescriptorsError> {
    let objects = ObjectsServer::new(Objects::new(handles.commands.clone(), handles.audit.clone()))
        .max_encoding_message_size(LARGEST);
    let spillway = SpillwayServer::new(Api::new(handles, stop)).max_encoding_message_size(LARGEST);
    let objects = BySize {
        large: objects.clone().max_decoding_message_size(LARGEST),
        small: objects.max_decoding_message_size(QUESTION),
    };
    let spillway = BySize {
        large: spillway.clone().max_decoding_message_size(LARGEST),
        small: spillway.max_decoding_message_size(QUESTION),
    };
    // Tools in use ask for the one or the other.
    let (v1, v1alpha) = (described().build_v1()?, described().build_v1alpha()?);
    let (reporter, health) = serving::reporter();
    let routes = Routes::new(spillway)
        .add_service(objects)
        .add_service(health)
        .add_service(v1)
        .add_service(v1alpha);
    Ok((routes, reporter))
}

fn described() -> tonic_reflection::server::Builder<'static> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(spillway_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}
