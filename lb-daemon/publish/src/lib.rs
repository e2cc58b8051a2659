//! The publisher, which brings the packet path's maps to a plan, and the writers of these maps. They take plans, states of
//! members and next hops, and know nothing of configurations, checks and the loops that ask for a change.

pub mod publisher;
pub mod reconcile;
