use super::Name;

/// A place where backends are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// Regions that take over, nearest first; distinct, and never in a circle.
    pub overflow_to: Vec<Name>,
}
