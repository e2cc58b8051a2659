use lb_common::abi::counter::GroupCounter;
use serde::Serialize;

/// New connections of a group: so many, or so many a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connections<N> {
    /// Those it was asked for: the sum of admitted, overflow out and refused.
    pub offered: N,
    /// Those it took.
    pub admitted: N,
    /// Of those it took, the ones that a nearer group was asked for first.
    pub overflow_in: N,
    /// Those that another group took.
    pub overflow_out: N,
    /// Those that were dropped because every group was full, counted at the first one asked.
    pub refused: N,
    /// Of those it took, the ones beyond its limit.
    pub over_capacity: N,
}

impl<N: Copy> Connections<N> {
    /// The same in another unit.
    pub fn map<M>(&self, to: impl Fn(N) -> M) -> Connections<M> {
        Connections {
            offered: to(self.offered),
            admitted: to(self.admitted),
            overflow_in: to(self.overflow_in),
            overflow_out: to(self.overflow_out),
            refused: to(self.refused),
            over_capacity: to(self.over_capacity),
        }
    }
}

impl From<GroupCounter> for Connections<u64> {
    fn from(counter: GroupCounter) -> Self {
        let GroupCounter { offered, admitted, overflow_in, overflow_out, refused, over_capacity } =
            counter;
        Self { offered, admitted, overflow_in, overflow_out, refused, over_capacity }
    }
}
