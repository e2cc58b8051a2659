use std::net::IpAddr;

use crate::access::{Lease, Quota, QuotaExceeded};

/// Connections at a time.
const MOST: usize = 1024;
/// Of those, from one source: one client cannot keep the others out.
const MOST_OF_ONE: usize = 32;

/// How many connections there are, in all and by source.
#[derive(Clone, Debug)]
pub(super) struct Slots(Quota<IpAddr>);

/// The place of a connection, which is free again when this goes.
pub(super) type Slot = Lease<IpAddr>;

impl Default for Slots {
    fn default() -> Self {
        Self(Quota::new(MOST, MOST_OF_ONE))
    }
}

impl Slots {
    /// A place for a connection.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn take(&self, address: IpAddr) -> Result<Slot, QuotaExceeded> {
        self.0.take(source(address))
    }
}

/// Who counts as one: an address, or a network of IPv6, whose 64 lower bits anybody in it chooses.
fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 64 << 64).into()),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_source_leaves_places_to_others_and_gives_its_own_back() {
        let slots = Slots::default();
        let at = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut of_one: Vec<_> = (0..MOST_OF_ONE)
            .map(|n| slots.take(at(&format!("2001:db8::{n:x}"))).unwrap())
            .collect();
        assert!(slots.take(at("2001:db8::ffff")).is_err());
        let _other = slots.take(at("2001:db8:0:1::1")).unwrap();
        of_one.pop();
        of_one.push(slots.take(at("2001:db8::ffff")).unwrap());
        drop(of_one);
        let all: Vec<_> = (1..MOST)
            .map(|n| slots.take(at(&format!("10.0.{}.{}", n / 256, n % 256))).unwrap())
            .collect();
        assert!(slots.take(at("192.0.2.1")).is_err());
        drop(all);
        assert_eq!(slots.0.sources(), 1);
    }
}
