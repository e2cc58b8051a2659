//! Who takes a slot when.

/// The ranks in the order of their turns: turn `k` of a quota `q` is in round `k·qmax / q`, and a
/// round goes by rank. As many entries as the quotas sum to.
pub(super) fn turns(quotas: &[u32]) -> Vec<u16> {
    let rounds = quotas.iter().copied().max().unwrap_or(0);
    // A counting sort by round, stable in rank: first where each round begins, then who is in it.
    let mut place = vec![0_u32; rounds as usize];
    for &quota in quotas {
        rounds_of(quota, rounds).for_each(|round| place[round] += 1);
    }
    let mut total = 0;
    for begin in &mut place {
        total += std::mem::replace(begin, total);
    }
    let mut turns = vec![0; total as usize];
    for (rank, &quota) in quotas.iter().enumerate() {
        for round in rounds_of(quota, rounds) {
            turns[place[round] as usize] = rank as u16;
            place[round] += 1;
        }
    }
    turns
}

/// `k·rounds / quota` for `k` in `0..quota`, by addition: a division for each turn would cost more
/// than the turn.
fn rounds_of(quota: u32, rounds: u32) -> impl Iterator<Item = usize> {
    let divisor = quota.max(1);
    let (step, step_rest) = (rounds / divisor, rounds % divisor);
    let (mut round, mut rest) = (0, 0);
    (0..quota).map(move |_| {
        let this = round as usize;
        (round, rest) = (round + step, rest + step_rest);
        // Both terms are below the divisor, which is at most the number of slots.
        if rest >= divisor {
            (round, rest) = (round + 1, rest - divisor);
        }
        this
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_members_take_turns() {
        assert_eq!(turns(&[3, 2, 2]), [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn a_light_member_waits() {
        // Quota 2 of 5 rounds: rounds 0 and 2 (2.5). Quota 3: rounds 0, 1 (1.67) and 3 (3.33).
        assert_eq!(turns(&[2, 5, 0, 3]), [0, 1, 3, 1, 3, 0, 1, 1, 3, 1]);
    }
}
