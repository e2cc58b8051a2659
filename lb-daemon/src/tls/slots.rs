use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

/// Connections at a time.
const MOST: usize = 1024;
/// Of those, from one source: one client cannot keep the others out.
const MOST_OF_ONE: usize = 32;

/// How many connections there are, in all and by source.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// The place of a connection, which is free again when this goes.
#[derive(Debug)]
pub(super) struct Slot {
    slots: Slots,
    source: IpAddr,
}

impl Slots {
    /// A place for a connection, if there is one.
    pub(super) fn take(&self, address: IpAddr) -> Option<Slot> {
        let source = source(address);
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = taken.values().sum();
        let of_one = taken.get(&source).copied().unwrap_or(0);
        if all >= MOST || of_one >= MOST_OF_ONE {
            return None;
        }
        taken.insert(source, of_one + 1);
        Some(Slot { slots: self.clone(), source })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.0.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.get_mut(&self.source) {
            Some(number) if *number > 1 => *number -= 1,
            _ => drop(taken.remove(&self.source)),
        }
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
        assert!(slots.take(at("2001:db8::ffff")).is_none());
        let _other = slots.take(at("2001:db8:0:1::1")).unwrap();
        of_one.pop();
        of_one.push(slots.take(at("2001:db8::ffff")).unwrap());
        drop(of_one);
        let all: Vec<_> = (1..MOST)
            .map(|n| slots.take(at(&format!("10.0.{}.{}", n / 256, n % 256))).unwrap())
            .collect();
        assert!(slots.take(at("192.0.2.1")).is_none());
        drop(all);
        assert_eq!(slots.0.lock().unwrap().len(), 1);
    }
}
