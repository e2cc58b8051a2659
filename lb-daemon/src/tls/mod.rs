//! The door over TCP: TLS with certificates on both ends, and nobody in without a role.

mod accept;
mod connection;
mod credentials;
mod error;
mod files;
mod identity;
mod slots;

pub use accept::listen;
pub use connection::Connection;
pub use credentials::{Credentials, InForce};
pub use error::TlsError;
pub use files::TlsFiles;
