//! How balancers reach each other: gRPC over HTTP/2, with certificates on both ends.

mod client;
mod connection;
mod credentials;
mod inbox;
mod listener;
mod questions;
mod server;

pub(crate) use client::PeerClients;
pub(crate) use credentials::{PeerCredentials, PeerSecurity, balancers, owner};
pub(crate) use inbox::{Direction, ErrorBoard, Inbox, PeerErrors, ReceivedMessage};
pub(crate) use questions::{Answers, AskedPeer, TableDigests};
pub(crate) use server::{PeerServer, PeerServerParts};

/// Largest message, bytes, both ways. 20,000 groups fit in, if all have the longest names and are on their way, and some
/// 75,000 with names of ten letters.
pub(crate) const MAX_MESSAGE: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        sync::Arc,
    };

    use lb_model::Name;
    use lb_sharing::{GroupKey, GroupReport, Message, Parts, ReportedCapacity, Transfer};
    use prost::Message as _;

    use super::*;
    use lb_peers::{EncodedReports, to_request};

    /// Bytes of a message with so many groups, all on their way.
    fn size(groups: u64, key: impl Fn(u64) -> GroupKey) -> usize {
        let report = GroupReport {
            demand: 1.5,
            owned: Parts::WHOLE,
            capacity: ReportedCapacity::PerSecond(1.5),
            may_send: true,
        };
        let transfer = |number| Transfer {
            number: u64::MAX - groups + number,
            group: key(number),
            parts: Parts::WHOLE,
        };
        let message = Message {
            from: Name::new("a").unwrap(),
            incarnation: u64::MAX,
            receiver_incarnation: u64::MAX,
            sequence: u64::MAX,
            epoch: u64::MAX,
            sent: u64::MAX,
            applied: u64::MAX,
            transfers: (0..groups).map(transfer).collect(),
            groups: Arc::new((0..groups).map(|n| (key(n), report)).collect::<BTreeMap<_, _>>()),
            silent: BTreeSet::new(),
            store_is_old: true,
            is_leaving: true,
            receiver_is_leaving: true,
        };
        to_request(&message, &EncodedReports::new(&message.groups)).encoded_len()
    }

    #[test]
    fn as_many_groups_fit_as_is_said() {
        let longest = |n: u64| GroupKey {
            pool: Name::new(&format!("{n:0>63}")).unwrap(),
            region: Name::new(&"r".repeat(63)).unwrap(),
            birth: u64::MAX,
        };
        assert!(size(20_000, longest) <= MAX_MESSAGE);
        let usual = |n: u64| GroupKey {
            pool: Name::new(&format!("{n:0>10}")).unwrap(),
            region: Name::new("eu-central").unwrap(),
            birth: n,
        };
        // In steady state few are on their way.
        let per_group = (size(2, usual) - size(1, usual)) - 24;
        assert!(75_000 * per_group <= MAX_MESSAGE, "{per_group} bytes a group");
    }
}
