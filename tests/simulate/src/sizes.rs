//! The sizes of fleets that are simulated.

use crate::fleet::Size;

/// Each axis with the others small, and a few sizes with two large ones, which show whether what is computed is right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) balancers: &'static [usize],
    pub(crate) groups: &'static [usize],
    pub(crate) regions: &'static [usize],
    /// Balancers and groups.
    pub(crate) both: &'static [(usize, usize)],
}

/// What is small while another axis is not.
const FEW_POOLS: usize = 2;
const FEW_BALANCERS: usize = 4;
/// Of the axis of regions.
const BALANCERS_IN_REGIONS: usize = 10;
const POOLS_IN_REGIONS: usize = 10;

impl Sizes {
    /// 1,000 balancers take most of the time, because each simulated second has four million messages. With more groups than
    /// two they would take as many times longer, so what that costs is computed.
    pub(crate) const FULL: Self = Self {
        balancers: &[2, 4, 10, 30, 100, 300, 1_000],
        groups: &[1, 10, 100, 1_000],
        regions: &[1, 10, 100],
        both: &[(30, 100), (100, 100)],
    };
    pub(crate) const QUICK: Self =
        Self { balancers: &[2, 10, 30], groups: &[1, 30], regions: &[1, 5], both: &[(10, 10)] };

    pub(crate) fn of_balancers(self) -> impl Iterator<Item = Size> {
        self.balancers.iter().map(|count| Size { balancers: *count, regions: 1, pools: FEW_POOLS })
    }

    pub(crate) fn of_groups(self) -> impl Iterator<Item = Size> {
        self.groups.iter().map(|count| Size { balancers: FEW_BALANCERS, regions: 1, pools: *count })
    }

    pub(crate) fn of_regions(self) -> impl Iterator<Item = Size> {
        let size = |count: &usize| Size {
            balancers: BALANCERS_IN_REGIONS,
            regions: *count,
            pools: POOLS_IN_REGIONS,
        };
        self.regions.iter().map(size)
    }

    pub(crate) fn of_both(self) -> impl Iterator<Item = Size> {
        let size = |(balancers, pools): &(usize, usize)| Size {
            balancers: *balancers,
            regions: 1,
            pools: *pools,
        };
        self.both.iter().map(size)
    }
}

/// Reads `100x1x10`: balancers, regions, pools.
pub(crate) fn parse(text: &str) -> Result<Size, String> {
    let numbers: Result<Vec<usize>, _> = text.split('x').map(str::parse).collect();
    match numbers.as_deref() {
        Ok(&[balancers, regions, pools]) if balancers >= 2 && regions >= 1 && pools >= 1 => {
            Ok(Size { balancers, regions, pools })
        }
        _ => Err("balancers (2 or more), regions and pools, as in 100x1x10".into()),
    }
}
