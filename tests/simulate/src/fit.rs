//! What one peer, one group, and one group of one peer cost: fitted to what was measured of a few sizes, so that the cost of
//! sizes that are too large to simulate can be computed.

/// Number of terms: one balancer, each peer, each group, each group of each peer.
const TERMS: usize = 4;

/// The cost of one balancer as a function of the size of its fleet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model([f64; TERMS]);

fn terms(balancers: usize, groups: usize) -> [f64; TERMS] {
    let (peers, groups) = (balancers as f64 - 1.0, groups as f64);
    [1.0, peers, groups, peers * groups]
}

impl Model {
    /// The least squares of relative errors over measured costs, each of so many balancers and groups. `None`: they are too
    /// few, or too alike.
    pub(crate) fn fit(measured: &[((usize, usize), f64)]) -> Option<Self> {
        let mut left = [[0.0; TERMS]; TERMS];
        let mut right = [0.0; TERMS];
        for ((balancers, groups), cost) in measured.iter().filter(|(_, cost)| *cost > 0.0) {
            let terms = terms(*balancers, *groups).map(|term| term / cost);
            for (row, term) in terms.iter().enumerate() {
                for (column, other) in terms.iter().enumerate() {
                    left[row][column] += term * other;
                }
                right[row] += term;
            }
        }
        solve(left, right).map(Self)
    }

    pub(crate) fn cost(&self, balancers: usize, groups: usize) -> f64 {
        self.0.iter().zip(terms(balancers, groups)).map(|(factor, term)| factor * term).sum()
    }

    /// The largest relative error over measured costs.
    pub(crate) fn error(&self, measured: &[((usize, usize), f64)]) -> f64 {
        let error = |((balancers, groups), cost): &((usize, usize), f64)| {
            (self.cost(*balancers, *groups) / cost - 1.0).abs()
        };
        measured.iter().map(error).fold(0.0, f64::max)
    }

    /// How many times as large as computed a measured cost was, at most; at least 1.
    pub(crate) fn largest_excess(&self, measured: &[((usize, usize), f64)]) -> f64 {
        let excess = |((balancers, groups), cost): &((usize, usize), f64)| {
            cost / self.cost(*balancers, *groups)
        };
        measured.iter().map(excess).fold(1.0, f64::max)
    }

    /// The most balancers whose cost is at most `limit` with so many groups, of at most `most`.
    pub(crate) fn most_balancers(&self, groups: usize, limit: f64, most: usize) -> usize {
        (1..=most)
            .take_while(|balancers| self.cost(*balancers, groups) <= limit)
            .last()
            .unwrap_or(0)
    }
}

/// Solves linear equations by elimination, with the largest pivot. `None`: they have no single solution.
fn solve(mut left: [[f64; TERMS]; TERMS], mut right: [f64; TERMS]) -> Option<[f64; TERMS]> {
    for column in 0..TERMS {
        let size = |row: &usize| left[*row][column].abs();
        let pivot = (column..TERMS).max_by(|a, b| size(a).total_cmp(&size(b)))?;
        let scale: f64 = left[pivot].iter().map(|it| it.abs()).fold(0.0, f64::max);
        if left[pivot][column].abs() <= 1e-12 * scale || scale == 0.0 {
            return None;
        }
        left.swap(column, pivot);
        right.swap(column, pivot);
        for row in 0..TERMS {
            if row == column {
                continue;
            }
            let factor = left[row][column] / left[column][column];
            let pivot = left[column];
            for (cell, other) in left[row].iter_mut().zip(pivot) {
                *cell -= factor * other;
            }
            right[row] -= factor * right[column];
        }
    }
    Some(std::array::from_fn(|at| right[at] / left[at][at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(balancers: usize, groups: usize) -> f64 {
        let (peers, groups) = (balancers as f64 - 1.0, groups as f64);
        3.0 + 0.5 * peers + 0.25 * groups + 0.125 * peers * groups
    }

    #[test]
    fn costs_that_follow_the_model_are_found_again() {
        let sizes = [(2, 2), (1_000, 2), (4, 1), (4, 1_000), (30, 100)];
        let measured: Vec<_> = sizes.map(|(n, g)| ((n, g), cost(n, g))).into();
        let model = Model::fit(&measured).unwrap();
        assert!(model.error(&measured) < 1e-6, "{model:?}");
        assert_eq!(model.largest_excess(&[((2, 2), 3.0 * model.cost(2, 2))]), 3.0);
        assert_eq!(model.largest_excess(&[((2, 2), 0.5 * model.cost(2, 2))]), 1.0);
        let found = model.cost(1_000, 1_000);
        assert!((found / cost(1_000, 1_000) - 1.0).abs() < 1e-6, "{found}");
        let most = model.most_balancers(100, cost(50, 100) + 0.1, 1_000);
        assert_eq!(most, 50);
    }

    #[test]
    fn one_axis_alone_is_not_enough() {
        let measured: Vec<_> = [(2, 2), (10, 2), (100, 2)].map(|(n, g)| ((n, g), 1.0)).into();
        assert!(Model::fit(&measured).is_none());
    }
}
