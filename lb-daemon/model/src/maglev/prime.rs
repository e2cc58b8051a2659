/// Whether a number of slots is a prime, by trial division: at most 22,000 steps for 32 bits.
pub(super) fn is_prime(number: u32) -> bool {
    if number < 4 {
        return number > 1;
    }
    if number.is_multiple_of(2) || number.is_multiple_of(3) {
        return false;
    }
    // What is left of numbers around a multiple of 6: every prime above 3 is one of these.
    (5_u64..)
        .step_by(6)
        .take_while(|d| d * d <= u64::from(number))
        .all(|d| !u64::from(number).is_multiple_of(d) && !u64::from(number).is_multiple_of(d + 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_sieve_of_eratosthenes() {
        const END: usize = 200_000;
        let mut sieve = vec![true; END];
        sieve[..2].fill(false);
        for n in 2..END {
            if sieve[n] {
                (2 * n..END).step_by(n).for_each(|multiple| sieve[multiple] = false);
            }
        }
        for (n, &expected) in sieve.iter().enumerate() {
            assert_eq!(is_prime(n as u32), expected, "{n}");
        }
    }

    #[test]
    fn knows_the_largest_of_32_bits() {
        // 2^32 - 5 is the largest prime below 2^32; 65521 is the largest below 2^16.
        assert!(is_prime(4_294_967_291));
        assert!(!is_prime(65_521 * 65_521));
        assert!((4_294_967_292..=u32::MAX).all(|n| !is_prime(n)));
    }
}
