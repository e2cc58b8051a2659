//! What the other scenarios rely on: networks of namespaces, sandboxes that leave nothing behind, and captures in
//! which a broken frame is found.

pub(crate) mod frame_checks;
pub(crate) mod sandbox;
pub(crate) mod topology;
