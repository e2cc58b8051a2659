//! The versioned gRPC API.
