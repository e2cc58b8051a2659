//! What shares and weights come to: the part of a group's new connections that each member gets.

/// First step of the integral, in units in which the first member that takes a connection is about 1 away.
const STEP: f64 = 0.05;
/// By how much a step grows with the distance. Of members whose weights differ by a million, the lightest is far away.
const GROWTH: f64 = 0.0125;
/// Part of the connections that is left out.
const LEFT: f64 = 1e-9;

/// The parts of a group's new connections that its members get, which sum up to 1; without any that takes some, all are 0.
/// `members` are weights and the shares of their own slots that they take, 0 to 1.
///
/// A slot lists members as if each arrived after a random time, exponentially distributed with its weight as the rate: so
/// the heavier one is first more often, in proportion. The first that takes the connection gets it. So what a member gets is
/// the integral, over the time of its own arrival, of the probability that nobody has taken the connection before. Slots
/// list four members; where none of them takes a connection, it goes on to the next slot, as if they were listed here.
pub fn distribution(members: &[(u32, f64)]) -> Vec<f64> {
    let rate: f64 = members.iter().map(|(weight, share)| f64::from(*weight) * share).sum();
    let mut parts = vec![0.0; members.len()];
    if rate <= 0.0 {
        return parts;
    }
    // Times are in units of 1 / rate.
    let absent = |weight: u32, time: f64| (-f64::from(weight) / rate * time).exp();
    let mut from = 0.0;
    loop {
        let to = from + STEP + from * GROWTH;
        let middle = f64::midpoint(from, to);
        let refused = |(weight, share): &(u32, f64)| 1.0 - share * (1.0 - absent(*weight, middle));
        let by_all: f64 = members.iter().map(refused).product();
        let taking = members.iter().filter(|it| it.0 > 0 && it.1 > 0.0);
        let still_absent: f64 = taking.map(|it| absent(it.0, middle)).sum();
        if by_all < LEFT || still_absent < LEFT {
            break;
        }
        for (part, member) in parts.iter_mut().zip(members) {
            let (weight, share) = *member;
            let arrives = absent(weight, from) - absent(weight, to);
            *part += share * arrives * by_all / refused(member);
        }
        from = to;
    }
    // Where all take only some, the rest goes to further slots, which share it in the same proportion.
    let sum: f64 = parts.iter().sum();
    parts.iter().map(|part| part / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All orders of the members, each as probable as a draw by weight makes it.
    fn enumerated(members: &[(u32, f64)]) -> Vec<f64> {
        fn walk(
            members: &[(u32, f64)],
            listed: &mut Vec<usize>,
            (order, untaken): (f64, f64),
            parts: &mut [f64],
        ) {
            let rest: Vec<_> = (0..members.len()).filter(|it| !listed.contains(it)).collect();
            let whole: f64 = rest.iter().map(|it| f64::from(members[*it].0)).sum();
            for next in rest {
                let (weight, share) = members[next];
                let order = order * f64::from(weight) / whole;
                parts[next] += order * untaken * share;
                listed.push(next);
                walk(members, listed, (order, untaken * (1.0 - share)), parts);
                listed.pop();
            }
        }
        let mut parts = vec![0.0; members.len()];
        walk(members, &mut Vec::new(), (1.0, 1.0), &mut parts);
        let sum: f64 = parts.iter().sum();
        parts.iter().map(|part| part / sum).collect()
    }

    #[test]
    fn it_is_what_all_orders_come_to() {
        let cases: [&[(u32, f64)]; 9] = [
            &[(1, 1.0)],
            &[(3, 0.2)],
            &[(1, 1.0), (1, 1.0), (2, 1.0)],
            &[(1, 0.1), (1, 1.0), (1, 1.0)],
            &[(1, 0.1), (1, 0.1), (1, 1.0)],
            &[(5, 0.5), (3, 0.25), (1, 0.75), (2, 0.0)],
            &[(1_000_000, 1.0), (30, 1.0), (1, 1.0)],
            &[(1_000_000, 0.5), (1, 1.0)],
            &[(7, 0.05), (1, 0.05), (2, 0.05), (9, 0.05), (4, 0.05), (3, 0.05)],
        ];
        for members in cases {
            let (found, expected) = (distribution(members), enumerated(members));
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-3, "{members:?}: {found} of {expected}");
            }
        }
        // A tenth of the weight is less than a tenth of the connections: whole members come before it.
        assert!((distribution(&[(1, 0.1), (1, 1.0), (1, 1.0)])[0] - 1.0 / 30.0).abs() < 1e-4);
    }

    #[test]
    fn who_takes_nothing_gets_nothing() {
        assert_eq!(distribution(&[]), [0.0; 0]);
        assert_eq!(distribution(&[(1, 0.0), (0, 1.0)]), [0.0, 0.0]);
        assert_eq!(distribution(&[(0, 1.0), (1, 0.5)]), [0.0, 1.0]);
    }

    #[test]
    fn a_large_group_is_soon_computed() {
        let members: Vec<_> = (0..10_000).map(|it| (1 + it % 7, 1.0)).collect();
        let (parts, weights) = (distribution(&members), members.iter().map(|it| it.0).sum::<u32>());
        for ((weight, _), part) in members.iter().zip(parts) {
            let expected = f64::from(*weight) / f64::from(weights);
            assert!((part / expected - 1.0).abs() < 1e-2, "{weight}: {part} of {expected}");
        }
    }
}
