use lb_common::abi::counter::GroupCounter;
use serde::Serialize;

/// New connections of a group: so many, or so many a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connections<N> {
    /// Those it was asked for: the sum of admitted, spilled out and refused.
    pub offered: N,
    /// Those it took.
    pub admitted: N,
    /// Of those it took, the ones that a nearer group was asked for first.
    pub spilled_in: N,
    /// Those that another group took.
    pub spilled_out: N,
    /// Those that were dropped because every group was full, counted at the first one asked.
    pub refused: N,
    /// Of those it took, the ones beyond its limit.
    pub overrun: N,
}

impl<N: Copy> Connections<N> {
    /// The same in another unit.
    pub fn map<M>(&self, to: impl Fn(N) -> M) -> Connections<M> {
        Connections {
            offered: to(self.offered),
            admitted: to(self.admitted),
            spilled_in: to(self.spilled_in),
            spilled_out: to(self.spilled_out),
            refused: to(self.refused),
            overrun: to(self.overrun),
        }
    }
}

impl From<GroupCounter> for Connections<u64> {
    fn from(counter: GroupCounter) -> Self {
        let GroupCounter { offered, admitted, spilled_in, spilled_out, refused, overrun } = counter;
        Self { offered, admitted, spilled_in, spilled_out, refused, overrun }
    }
}
