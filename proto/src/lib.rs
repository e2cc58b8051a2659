//! The versioned gRPC API: messages, client and server of `spillway.v1`; and of `spillway.peers.v1`, which balancers speak
//! among themselves.
//!
//! The Rust in `generated/` comes from the `.proto` files in `spillway/` and is checked in, so a build needs no
//! protobuf compiler. After a change there run `cargo run -p spillway-proto --example regenerate`;
//! a test fails until then.

mod rpc;

/// Version 1 of the API.
#[allow(missing_docs, unused_qualifications, clippy::all, reason = "generated")]
pub mod v1 {
    include!("generated/spillway.v1.rs");
}

/// What the balancers of a fleet tell each other. It is not part of the API, and stays compatible only within a protocol.
pub mod peers {
    /// Version 1.
    #[allow(missing_docs, unused_qualifications, clippy::all, reason = "generated")]
    pub mod v1 {
        include!("generated/spillway.peers.v1.rs");
    }
}

/// The descriptors of the API, an encoded `google.protobuf.FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/spillway.v1.binpb");

/// The schema revision of [`v1::Configuration`]: the highest that the sources list.
pub const SCHEMA_REVISION: v1::SchemaRevision = v1::SchemaRevision::SchemaRevision2;

/// What revisions after the first added to configurations: the full name of each field or value, as
/// `spillway.v1.Pool.slots`, and its revision. What a field of a new message has in it need not be listed.
///
/// A fleet computes from it which revision a configuration needs of its balancers, so a daemon leaves such a field unset
/// where an older one does the same without it.
pub const ADDED: &[(&str, i32)] = &[("spillway.v1.Configuration.vips", 2)];
