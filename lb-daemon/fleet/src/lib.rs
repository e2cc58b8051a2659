//! What a fleet of balancers shares in etcd: the configuration and its history, overrides, what is marked out, discovered
//! backends, which balancers there are, and the epochs in which a lost one is replaced. This crate moves documents and the
//! bytes of configurations; it does not know what a configuration says.
//!
//! Data goes one way: [`commit`], [`overrides`], [`homes`], [`members`], [`epochs`], [`presence`] and [`put_back`] write,
//! [`reader`] publishes what etcd has, and [`lineage`] says whether a balancer may follow that.

pub mod births;
pub mod client;
pub mod collect;
pub mod commit;
pub mod documents;
pub mod epochs;
mod error;
pub mod history;
pub mod homes;
pub mod keys;
pub mod lineage;
pub mod members;
pub mod overrides;
mod pieces;
pub mod presence;
pub mod put_back;
pub mod reader;
mod servers;
pub mod settings;
pub mod space;
pub mod transaction;

pub use client::Fleet;
pub use documents::{Document, DocumentError};
pub use error::EtcdError;
pub use keys::{FleetKey, Keys};
pub use settings::FleetSettings;
