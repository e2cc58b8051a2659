//! How many packets the packet path sends of its own: answers to pings, and ICMP errors.
//!
//! Three limits hold at a time: of the network that asks (a /24 of IPv4, a /56 of IPv6), of the VIP, and of all together.
//! Those of a network and of a VIP are parts of the last one, so a flood from one network, or at one VIP, leaves the rest to
//! the others. Networks and VIPs have no memory of their own: a keyed hash gives each one of [`ANSWER_WORDS`] words, so that
//! any two share one with a chance of 1 in as many, and nobody outside can tell which.

use core::num::NonZeroU32;

use super::tables::Tables;
use crate::{
    abi::{
        clock::Nanoseconds,
        counter::Event,
        limiter::{ANSWER_WORDS, LimitWord, NETWORK_PART, VIP_PART},
        service::{AddressWords, IPV4},
    },
    admission::{self, Debit},
    flow_hash::{FlowHash, FlowTuple},
    word::Word,
};

/// The limits that one answer is under, in numbers, because in a packet program they go to a global function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// The limiter of all answers of the kind: [`crate::abi::limiter::ERRORS`] or [`crate::abi::limiter::ECHOES`].
    pub of_all: u32,
    /// The VIP's word.
    pub of_vip: u32,
    /// The word of the network that asks.
    pub of_network: u32,
}

impl AnswerLimits {
    /// Those of an answer to `flow`'s client in the name of its VIP.
    #[inline(always)]
    pub fn new<T: Tables + ?Sized>(tables: &T, of_all: u32, flow: &FlowTuple) -> Self {
        let FlowTuple { client, vip, version, .. } = *flow;
        let secret = tables.flow_secret();
        let word = |client, vip| {
            let (client_port, service_port) = (0, of_all as u16);
            let hashed = FlowTuple { client, vip, client_port, service_port, protocol: 0, version };
            FlowHash::new(&hashed, &secret).slot(ANSWER_WORDS)
        };
        Self {
            of_all,
            of_vip: word([0; 4], vip),
            of_network: word(network(&client, version), [0; 4]),
        }
    }

    /// Whether one of them is reached. Spends nothing.
    #[inline(always)]
    pub fn is_full<T: Tables + ?Sized>(&self, tables: &T, now: Nanoseconds) -> bool {
        let Some((limit, arrival)) = tables.limiter(self.of_all) else { return false };
        let is_reached = |part: &Part| {
            let arrival = tables.answer_arrival(part.word).map(Word::load);
            arrival.is_some_and(|arrival| admission::is_full(part.of(limit), arrival, now))
        };
        let [network, vip] = self.parts();
        if admission::is_full(limit, arrival, now) {
            true
        } else if is_reached(&network) {
            tables.count(network.reached);
            true
        } else if is_reached(&vip) {
            tables.count(vip.reached);
            true
        } else {
            false
        }
    }

    /// Counts an answer against all of them; false: one is reached.
    #[inline(always)]
    pub fn debit<T: Tables + ?Sized>(&self, tables: &T, now: Nanoseconds) -> bool {
        let [network, vip] = self.parts();
        // The narrower one first: what it refuses takes nothing from the wider ones.
        self.debit_part(tables, &network, now)
            && self.debit_part(tables, &vip, now)
            && tables.debit(self.of_all, now)
    }

    #[inline(always)]
    fn debit_part<T: Tables + ?Sized>(&self, tables: &T, part: &Part, now: Nanoseconds) -> bool {
        let Some(arrival) = tables.answer_arrival(part.word) else { return true };
        let limit = || {
            let limit = tables.limiter(self.of_all);
            limit.map_or(LimitWord::UNLIMITED, |(limit, _)| part.of(limit))
        };
        let refused_for = match admission::debit(limit, arrival, now) {
            Debit::Admitted => return true,
            Debit::Full => part.reached,
            Debit::Contended => Event::LimitContended,
        };
        tables.count(refused_for);
        false
    }

    #[inline(always)]
    const fn parts(&self) -> [Part; 2] {
        [
            Part {
                word: self.of_network,
                parts: NETWORK_PART,
                reached: Event::AnswerLimitedNetwork,
            },
            Part { word: self.of_vip, parts: VIP_PART, reached: Event::AnswerLimitedVip },
        ]
    }
}

/// The part of answers that one network or VIP may have.
struct Part {
    word: u32,
    parts: NonZeroU32,
    /// What is counted where it is reached.
    reached: Event,
}

impl Part {
    #[inline(always)]
    const fn of(&self, limit: LimitWord) -> LimitWord {
        limit.part(self.parts)
    }
}

/// The network of an address: its first 24 bits of IPv4, 56 of IPv6, which providers give to one customer at least.
#[inline(always)]
const fn network(address: &AddressWords, version: u8) -> AddressWords {
    const FIRST_THREE: u32 = u32::from_ne_bytes([0xff, 0xff, 0xff, 0]);
    let [first, second, third, last] = *address;
    if version == IPV4 {
        [first, second, third, last & FIRST_THREE]
    } else {
        [first, second & FIRST_THREE, 0, 0]
    }
}

#[cfg(test)]
mod tests {
    use core::net::IpAddr;

    use super::*;
    use crate::abi::service::address_words;

    #[test]
    fn networks_are_24_bits_of_ipv4_and_56_of_ipv6() {
        for (one, other, is_same) in [
            ("192.0.2.1", "192.0.2.255", true),
            ("192.0.2.1", "192.0.3.1", false),
            ("2001:db8:1:22ff::1", "2001:db8:1:2200:ffff::9", true),
            ("2001:db8:1:22ff::1", "2001:db8:1:23ff::1", false),
        ] {
            let of = |text: &str| {
                let address: IpAddr = text.parse().unwrap();
                network(&address_words(address), if address.is_ipv4() { 4 } else { 6 })
            };
            assert_eq!(of(one) == of(other), is_same, "{one}, {other}");
        }
    }
}
