//! In which order several sides are measured: by turns, so that what the machine does meanwhile affects all alike.

use anyhow::Result;

/// The order of `sides` sides in a round: as they stand in even rounds, reversed in odd ones, so that none is always
/// measured after the same other one.
pub fn order(sides: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..sides).map(move |place| if round.is_multiple_of(2) { place } else { sides - 1 - place })
}

/// Has each side measure once a round. Answers the samples of each.
///
/// # Errors
/// What the first one that failed says.
pub fn by_turns<T>(
    sides: usize,
    rounds: usize,
    mut measure: impl FnMut(usize) -> Result<T>,
) -> Result<Vec<Vec<T>>> {
    let mut samples: Vec<Vec<T>> = (0..sides).map(|_| Vec::with_capacity(rounds)).collect();
    for round in 0..rounds {
        for side in order(sides, round) {
            samples[side].push(measure(side)?);
        }
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn sides_take_turns_and_none_is_always_second() {
        let mut asked = Vec::new();
        let samples = by_turns(3, 4, |side| {
            asked.push(side);
            Ok(asked.len())
        })
        .unwrap();
        assert_eq!(asked, [0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0]);
        // Each has the numbers of its own turns.
        assert_eq!(samples, [vec![1, 6, 7, 12], vec![2, 5, 8, 11], vec![3, 4, 9, 10]]);
    }

    #[test]
    fn a_machine_that_slows_down_slows_all_alike() {
        let mut time = 0.0;
        let samples = by_turns(2, 10, |_| {
            time += 1.0;
            Ok(time)
        })
        .unwrap();
        let [first, second] = [0, 1].map(|side: usize| samples[side].iter().sum::<f64>());
        assert_eq!(first, second);
    }

    #[test]
    fn nothing_is_measured_after_a_failure() {
        let mut asked = 0;
        let outcome = by_turns(2, 4, |side| {
            asked += 1;
            if asked == 3 { bail!("side {side} failed") } else { Ok(()) }
        });
        assert_eq!(outcome.unwrap_err().to_string(), "side 1 failed");
        assert_eq!(asked, 3);
    }
}
