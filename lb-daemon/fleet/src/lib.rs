//! What a fleet of balancers shares in etcd: the configuration and its history, overrides, what is marked out, discovered
//! backends, and which balancers there are. This crate moves documents and the bytes of configurations; it does not know
//! what a configuration says.
//!
//! Data goes one way: [`commit`], [`overrides`] and [`presence`] write, [`reader`] publishes what etcd has, and
//! [`lineage`] says whether a balancer may follow that.

pub mod client;
pub mod collect;
pub mod commit;
pub mod documents;
pub mod keys;
pub mod lineage;
pub mod overrides;
pub mod presence;
pub mod reader;
pub mod settings;

pub use client::{EtcdError, Fleet};
pub use documents::{Document, DocumentError};
pub use keys::{FleetKey, Keys};
pub use settings::FleetSettings;
