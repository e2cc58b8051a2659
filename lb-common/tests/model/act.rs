//! What can happen, and how often.

use lb_common::abi::member::Accepts;
use proptest::prelude::*;

use crate::run::HOMES;

/// A case: what pool it is, and what happens.
#[derive(Clone, Debug)]
pub(crate) struct Play {
    pub(crate) limited: bool,
    pub(crate) by_address: bool,
    pub(crate) rejects: bool,
    pub(crate) isolated: bool,
    /// IP version of the clients.
    pub(crate) version: u8,
    pub(crate) acts: Vec<Act>,
}

/// A new connection's sequence number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// Any that is far from those before.
    Far(u32),
    /// So much beyond the end of the connection before.
    Beyond(u32),
}

/// What is late of a port's connection before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Late {
    Ack,
    Fin,
    Rst,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    Unlimited,
    Closed,
    OneAMinute,
    TenASecond,
}

/// A number identifies a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// The client ends what it has, with a packet of these control bits or with none, and later begins
    /// another connection from the same port.
    Syn(u16, Number),
    Repeat(u16),
    /// A handshake, of a client that has had no connection.
    Open(u16),
    /// The end of the handshake, by a packet so many bytes into the stream.
    Ack(u16, u32),
    /// A segment so many bytes further on.
    Data(u16, u32),
    KeepAlive(u16),
    Fin(u16),
    Rst(u16),
    /// The last packet of the port's connection before, once more.
    Late(u16, Late),
    /// A SYN from elsewhere that names the client, so many bytes ahead of its stream.
    Forge(u16, u32),
    /// The same, 2.5 MB ahead, and the stream passes that number.
    Pass(u16),
    Limit(usize, Limit),
    State(usize, u32, Accepts),
    /// A member's next hop is lost, or there again.
    Lost(usize, u32, bool),
    /// Whether the flow table is full with cells of others.
    Full(bool),
    Sleep(u64),
    Daemon,
    /// Another version of the pool, with another meaning of home: a remap begins, another one takes its place, or it ends.
    Home(u32),
    /// The remap lasts for as long as it has to, while all connections are in use or none is, and ends.
    Settle(bool),
    /// An ICMP error about a packet to the client, at once or after a minute.
    Error(u16, bool),
    /// A datagram to a service that tracks flows.
    Datagram(u16),
}

pub(crate) const CLIENTS: u16 = 8;
/// Clients from here on open one connection each, and no packets are forged in their name: their flows have no other cells.
pub(crate) const SINGLE: u16 = 6;
pub(crate) const REGIONS: usize = 3;
pub(crate) const MEMBERS: u32 = 2;

const MS: u64 = 1_000_000;

fn act() -> impl Strategy<Value = Act> {
    let port = || 0..CLIENTS;
    let number = prop_oneof![
        3 => any::<u32>().prop_map(Number::Far),
        1 => Just(Number::Beyond(65_537)),
        1 => Just(Number::Beyond(1_000)),
    ];
    let bytes = || {
        prop_oneof![
            1 => Just(0_u32),
            1 => 1..3_000_u32,
            1 => Just(14_600),
            1 => Just(60_000),
            3 => 900_000..1_048_000_u32,
        ]
    };
    let state = prop_oneof![
        3 => Just(Accepts::All),
        1 => Just(Accepts::OpenOnly),
        1 => Just(Accepts::Nothing),
    ];
    let limit = prop_oneof![
        1 => Just(Limit::Unlimited),
        1 => Just(Limit::Closed),
        3 => Just(Limit::OneAMinute),
        1 => Just(Limit::TenASecond),
    ];
    let late = prop_oneof![Just(Late::Ack), Just(Late::Fin), Just(Late::Rst)];
    let time = prop_oneof![
        4 => Just(200 * MS),
        3 => Just(1_000 * MS),
        2 => Just(20_000 * MS),
        1 => Just(45_000 * MS),
        2 => Just(66_000 * MS),
        1 => Just(300_000 * MS),
        1 => Just(700_000 * MS),
    ];
    prop_oneof![
        6 => (port(), number).prop_map(|(port, number)| Act::Syn(port, number)),
        3 => port().prop_map(Act::Repeat),
        3 => (SINGLE..CLIENTS).prop_map(Act::Open),
        7 => (port(), prop_oneof![3 => Just(0_u32), 1 => 1..14_600_u32])
            .prop_map(|(port, beyond)| Act::Ack(port, beyond)),
        8 => (port(), bytes()).prop_map(|(port, bytes)| Act::Data(port, bytes)),
        1 => port().prop_map(Act::KeepAlive),
        1 => port().prop_map(Act::Fin),
        1 => port().prop_map(Act::Rst),
        2 => (port(), late).prop_map(|(port, late)| Act::Late(port, late)),
        3 => (port(), prop_oneof![2_100_000..3_000_000_u32, 8_000_000..2_000_000_000_u32])
            .prop_map(|(port, ahead)| Act::Forge(port, ahead)),
        1 => port().prop_map(Act::Pass),
        3 => (0..REGIONS, limit).prop_map(|(region, limit)| Act::Limit(region, limit)),
        3 => (0..REGIONS, 0..MEMBERS, state).prop_map(|(region, rank, s)| Act::State(region, rank, s)),
        5 => (0..REGIONS, 0..MEMBERS, prop::bool::weighted(0.4))
            .prop_map(|(region, rank, is_lost)| Act::Lost(region, rank, is_lost)),
        1 => any::<bool>().prop_map(Act::Full),
        6 => time.prop_map(Act::Sleep),
        4 => Just(Act::Daemon),
        2 => (1..=1 + HOMES.len() as u32).prop_map(Act::Home),
        1 => prop::bool::weighted(0.8).prop_map(Act::Settle),
        6 => (SINGLE - 1..CLIENTS, any::<bool>()).prop_map(|(port, late)| Act::Error(port, late)),
        8 => port().prop_map(Act::Datagram),
    ]
}

pub(crate) fn plays() -> impl Strategy<Value = Play> {
    let acts = prop::collection::vec(act(), 1..150);
    (any::<[bool; 4]>(), prop::bool::weighted(0.8), acts).prop_map(
        |([by_address, rejects, isolated, is_v6], limited, acts)| Play {
            limited,
            by_address,
            rejects: rejects && isolated,
            isolated: isolated && !rejects,
            version: if is_v6 { 6 } else { 4 },
            acts,
        },
    )
}
