//! What can be called, by the API's own descriptors.

use std::sync::OnceLock;

use prost::Message as _;
use prost_types::FileDescriptorSet;

/// A call.
#[derive(Clone, Debug)]
pub(super) struct Method {
    /// As HTTP/2 has it.
    pub(super) path: String,
    /// Whether it answers with a stream.
    pub(super) streams: bool,
    /// Whether it may change what is in force.
    pub(super) writes: bool,
}

/// All that are tried, in the order of the files.
pub(super) fn all() -> &'static [Method] {
    static ALL: OnceLock<Vec<Method>> = OnceLock::new();
    ALL.get_or_init(|| {
        let set = FileDescriptorSet::decode(spillway_proto::DESCRIPTORS).expect("our own");
        let services = set
            .file
            .iter()
            .flat_map(|file| file.service.iter().map(move |service| (file.package(), service)));
        let methods = services.flat_map(|(package, service)| {
            let path = format!("/{package}.{}", service.name());
            service.method.iter().map(move |method| Method {
                path: format!("{path}/{}", method.name()),
                streams: method.server_streaming(),
                writes: ["Apply", "Create", "Update", "Delete"]
                    .iter()
                    .any(|verb| method.name().starts_with(verb)),
            })
        });
        methods.filter(|method| !method.path.ends_with("/ProbeVips")).collect()
    })
}
