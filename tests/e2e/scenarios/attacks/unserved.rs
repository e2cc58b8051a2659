//! Floods of packets that no connection is made of: what no service of a VIP takes, what a service takes that has nobody, and
//! forged ICMP errors. They leave nothing behind, and honest clients beside them lose nothing.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::Ordering;

use anyhow::{Result, ensure};
use lb_e2e::fixture::{ECHO, LONG_CONNECTIONS};
use lb_e2e::harness;
use lb_tests::packets::frames::{ETHERNET, Flow, Packet};
use lb_tests::sandbox::Sandbox;
use lb_tests::syns::Pair;
use lb_tests::traffic::LongConnections;

use crate::attacks::{
    fixture::{AttackFixture, CELLS, Pool, ROUND_TRIP},
    raw_flood::{self, RawFlood},
};

/// Packets of a flood with another source each.
const SOURCES: u32 = 4_096;
/// The first source.
const FIRST: Ipv4Addr = Ipv4Addr::new(100, 70, 0, 0);
/// Packets a second that the balancer drops: a small part of what it can, because the same CPUs make them, and what they have
/// no time for is lost on the way to it.
const DROPPED: u64 = 150_000;
/// Packets a second that reach backends, on the CPUs that all hosts of the test share.
const FORWARDED: u64 = 50_000;
/// A port that no service has.
const UNKNOWN: u16 = 4_711;
/// A port whose service has nobody.
const DEAD: u16 = 4_002;

pub(crate) fn and_forged_errors(sandbox: &Sandbox) -> Result<()> {
    let mut attack = AttackFixture::start(sandbox, "unserved", CELLS)?;
    attack.apply(["", ""])?;
    add_dead_service(&attack)?;
    let client = attack.fixture.fabric.client.clone();
    let mut connections = LongConnections::new(&client)?;
    for pool in [Pool::Attacked, Pool::Other] {
        connections.open(pool.endpoint(LONG_CONNECTIONS), 60)?;
    }
    let connections = &mut connections;
    connections.all_go_on(&[])?;
    let honest = attack.honest_of_both(Pair::Handshake, ROUND_TRIP)?;
    let control = attack.alone(&honest)?;

    let vip = Pool::Attacked.endpoint_v4(ECHO)?;
    type Forge = fn(Ipv4Addr, SocketAddrV4) -> Vec<u8>;
    let floods: [(&str, &str, u64, Forge); 6] = [
        ("SYNs to an unknown port", "unserved", DROPPED, unknown_port),
        ("ESP", "unserved", DROPPED, another_protocol),
        ("fragments without ports", "unserved", DROPPED, later_fragment),
        ("SYNs to a dead service", "no_backend", DROPPED, dead_syn),
        ("ACKs to a dead service", "no_backend", DROPPED, dead_ack),
        ("forged \"fragmentation needed\"", "transmitted", FORWARDED, error),
    ];
    for (what, verdict, per_second, forge) in floods {
        let packets: Vec<_> = (0..SOURCES)
            .map(|n| forge(Ipv4Addr::from(u32::from(FIRST) + 251 * n), vip)[ETHERNET..].to_vec())
            .collect();
        let honest = attack.honest_of_both(Pair::Handshake, ROUND_TRIP)?;
        let flood = RawFlood { to: Pool::Attacked.endpoint(0), packets: &packets, per_second };
        let (paired, rate) = raw_flood::beside(&client, flood, |sent| {
            let balancer = &attack.fixture.balancer;
            let now =
                || -> Result<_> { Ok((sent.load(Ordering::Relaxed), balancer.packets(verdict)?)) };
            let begun = now()?;
            let paired = attack.alone(&honest)?;
            connections.all_go_on(&[])?;
            let ended = now()?;
            let (sent, counted) = (ended.0 - begun.0, ended.1 - begun.1);
            ensure!(counted * 2 > sent, "{what}: {counted} of {sent} counted as {verdict}");
            Ok(paired)
        })?;
        for (pool, (paired, control)) in
            ["attacked", "other"].iter().zip(paired.iter().zip(&control))
        {
            harness::note(format!(
                "{what}, {rate:.0} a second, {pool} pool: {paired}; alone: {control}"
            ));
            ensure!(paired.parted == 0, "{what}: {pool}: {paired}");
            ensure!(paired.complete() * 100 >= control.complete() * 95, "{what}: {pool}: {paired}");
        }
        connections.all_go_on(&[])?;
        ensure!(attack.held("open")? + attack.held("half_open")? == 0, "{what}: cells");
    }
    Ok(())
}

/// Adds a service whose only backend is disabled.
fn add_dead_service(attack: &AttackFixture) -> Result<()> {
    let (balancer, vip) = (&attack.fixture.balancer, Pool::Attacked.endpoint(DEAD).ip());
    let backend = attack.fixture.fabric.backends[0].v4;
    let dead = format!(
        "\n[[pool]]\nname = \"dead\"\nhealth_checks = [\"page\"]\n\n[[pool.backend]]\naddress = \"{backend}\"\n\
         region = \"eu\"\nadmin_state = \"disabled\"\n\n[[service]]\nname = \"dead\"\naddress = \"{vip}\"\n\
         port = {DEAD}\nprotocol = \"tcp\"\npool = \"dead\"\n"
    );
    balancer.apply(&(balancer.cli(&["export"])? + &dead))?;
    attack.fixture.wait_up(&[])
}

fn packet(client: Ipv4Addr, vip: SocketAddrV4) -> Packet {
    Packet::new(Flow { client: SocketAddrV4::new(client, 40_000).into(), vip: vip.into() })
}

fn unknown_port(client: Ipv4Addr, vip: SocketAddrV4) -> Vec<u8> {
    packet(client, SocketAddrV4::new(*vip.ip(), UNKNOWN)).tcp("S")
}

fn dead_syn(client: Ipv4Addr, vip: SocketAddrV4) -> Vec<u8> {
    packet(client, SocketAddrV4::new(*vip.ip(), DEAD)).tcp("S")
}

fn dead_ack(client: Ipv4Addr, vip: SocketAddrV4) -> Vec<u8> {
    packet(client, SocketAddrV4::new(*vip.ip(), DEAD)).tcp("A")
}

fn another_protocol(client: Ipv4Addr, vip: SocketAddrV4) -> Vec<u8> {
    packet(client, vip).payload(&[0x5a; 40]).other(50)
}

fn later_fragment(client: Ipv4Addr, vip: SocketAddrV4) -> Vec<u8> {
    let mut frame = packet(client, vip).payload(&[0x5a; 40]).other(17);
    // The last one, of the ninth byte and on.
    frame[ETHERNET + 6..][..2].copy_from_slice(&[0, 1]);
    frame
}

/// About a packet that the VIP may have sent to the client: 1,000 bytes fit.
fn error(client: Ipv4Addr, vip: SocketAddrV4) -> Vec<u8> {
    let flow = Flow { client: SocketAddrV4::new(client, 40_000).into(), vip: vip.into() };
    let quoted = &Packet::new(flow.answered()).tcp("A")[ETHERNET..];
    packet(client, vip).error(3, 4, [0, 0, 0x03, 0xe8], quoted)
}
