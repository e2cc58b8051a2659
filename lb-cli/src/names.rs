//! Names for the indices of the maps.

pub(crate) use lb_daemon::names::Names;
