//! The tutorial's own figures, as printed there. Where it shows a picture alone, nothing is known.

/// Average response times, milliseconds, and errors of one server by httperf, 500 requests: rate,
/// average, errors.
pub(crate) const ONE_SERVER: [(f64, f64, u64); 4] =
    [(4.0, 384.5, 0), (5.0, 381.1, 0), (7.0, 11_075.5, 4), (10.0, 18_335.6, 32)];

/// One server by siege, 4 users and 20 requests each: requests a second, average and longest time in
/// seconds.
pub(crate) const SIEGE: (f64, f64, f64) = (5.05, 0.52, 0.70);

/// One region of three, "close to" these: rate and average, milliseconds. Of other rates it says that
/// latency rises past 12 or 13 requests a second.
pub(crate) const ONE_REGION: [(f64, f64); 2] = [(10.0, 500.0), (20.0, 5000.0)];

/// Two regions, the rounds in their order: rate, averages in milliseconds.
pub(crate) const TWO_REGIONS: [(f64, &[f64]); 2] =
    [(10.0, &[584.7]), (20.0, &[6396.8, 3782.9, 860.0, 700.8, 701.8])];

/// What it says of one region at a rate.
pub(crate) fn one_region(rate: f64) -> Option<f64> {
    ONE_REGION.iter().find(|known| known.0 == rate).map(|known| known.1)
}

/// What it says of a round (from 0) with two regions.
pub(crate) fn two_regions(rate: f64, round: usize) -> Option<f64> {
    TWO_REGIONS.iter().find(|known| known.0 == rate)?.1.get(round).copied()
}
