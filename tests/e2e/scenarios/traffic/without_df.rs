//! Datagrams without DF arrive, fragmented where the path needs it.

use std::io::Read as _;
use std::net::UdpSocket;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_tests::capture::Capture;
use lb_tests::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_tests::process::{PATIENCE, until};
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Fabric, REGIONS};
use socket2::{Domain, Protocol, Socket, Type};

/// MTU of the path to the near backends, which the balancer's routes have too; its link takes 1600 bytes.
const NARROW: u32 = 1400;
/// Bytes of a packet that fits the way in every tunnel, and of one that fits it in none.
const SMALL: usize = 1300;
const LARGE: usize = 1420;
/// Headers of IPv4 and UDP.
const HEADERS: usize = 28;
/// What does not come within this time is not on its way.
const SOON: Duration = Duration::from_millis(200);

/// If a packet without DF exceeds the MTU of the route, its outer packet has no DF either: a router on the path
/// fragments it, and the backend's kernel reassembles it, as a raw socket of the tunnel's protocol shows. What fits no
/// outer packet, or none that may be fragmented, is dropped and counted.
pub(crate) fn datagrams_without_df_are_fragmented_on_the_way(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "divisible", Health::QUICK)?;
    let Fabric { router, client, balancer, .. } = &fixture.fabric;
    router.ip(&format!("link set eu mtu {NARROW}"))?;
    for route in ["10.1.0.0/24 via 10.0.0.1", "fd00:1::/64 via fd00::1"] {
        balancer.ip(&format!("route add {route} mtu {NARROW}"))?;
    }
    // From here on the client's sockets send without DF.
    client.sysctls(&[("net.ipv4.ip_no_pmtu_disc", "1")])?;
    let ipip = open(&fixture, Tunnel::Ipip)?;
    for (form, protocol, shim) in [("ip_in_ip", 4, 0), ("gue", 17, 12)] {
        fixture.balancer.cli(&["pool", "update", "v4", "--encapsulation", form])?;
        // What fits is not fragmented, and the receiver takes it out.
        let small = payload(SMALL, 1);
        ipip.send(&small)?;
        let mut came = [0; 2048];
        let length = ipip.recv(&mut came).with_context(|| format!("{form}: a small one"))?;
        ensure!(came[..length] == small, "{form}: another datagram");

        let mut ears = Ears::open(&fixture, protocol)?;
        // The first ones may have DF outside and are lost: the daemon has not heard of the route.
        let large = payload(LARGE, 2);
        until(&format!("{form}: a large one arrives"), PATIENCE, || {
            ipip.send(&large)?;
            Ok(ears.hear(&large).then_some(()))
        })?;
        let (sent, arrives) =
            (Capture::start(router, "balancer", "")?, Capture::start(router, "eu", "")?);
        let large = payload(LARGE, 3);
        ipip.send(&large)?;
        ensure!(ears.hear(&large), "{form}: it does not arrive whole");
        let frames = sent.stop()?;
        frames.assert_faultless().with_context(|| form.to_owned())?;
        let tunnel = format!("ip.proto == {protocol} && ip.src == {}", Fabric::BALANCER_V4);
        let outer = LARGE + 20 + shim;
        // Not what a backend says of it, which quotes it. Of GUE tshark does not look at the inner packet.
        let large = format!("{tunnel} && ip.len == {outer} && !icmp");
        let fields = frames.fields(&large, ["ip.len", "ip.flags.df", "ip.id"])?;
        let [[lengths, df, identifications]] = &fields[..] else {
            anyhow::bail!("{form}: {} of them: {fields:?}", fields.len());
        };
        let is_it = *lengths == outer.to_string() || *lengths == format!("{outer},{LARGE}");
        ensure!(is_it && (shim > 0 || lengths.contains(',')), "{form}: {lengths}");
        let is_clear = df.split(',').all(|df| df == "0" || df == "False");
        ensure!(is_clear, "{form}: DF {df}");
        ensure!(!identifications.starts_with("0x0000"), "{form}: {identifications}");
        // Of the two parts the first one is as large as the way takes.
        let frames = arrives.stop()?;
        let of = |filter| frames.count(&format!("ip.src == {} && {filter}", Fabric::BALANCER_V4));
        let parts = (of("ip.flags.mf == 1")?, of("ip.frag_offset > 0")?);
        ensure!(parts == (1, 1), "{form}: {parts:?} first and later fragments");
    }
    refused(&fixture, balancer, &ipip)
}

/// What is dropped: an outer packet of IPv6 is not fragmented by anybody on its way, and a link has an end.
fn refused(fixture: &Fixture, balancer: &lb_tests::topology::Node, ipip: &UdpSocket) -> Result<()> {
    let counted = || fixture.balancer.packets("cannot_fragment");
    ensure!(counted()? == 0, "{} too early", counted()?);
    let in_ipv6 = open(fixture, Tunnel::Ip4In6)?;
    let large = payload(LARGE, 4);
    until("the route over IPv6 is known too", PATIENCE, || {
        in_ipv6.send(&large)?;
        Ok((counted()? > 0).then_some(()))
    })?;
    all_are_dropped(fixture, &in_ipv6, &large)?;
    // One that fits alone, and not in GUE, nor in IP.
    balancer.ip(&format!("link set eth0 mtu {}", LARGE + 10))?;
    let known = u64::try_from(LARGE + 10)?;
    for form in ["ip_in_ip", "gue"] {
        fixture.balancer.cli(&["pool", "update", "v4", "--encapsulation", form])?;
        let before = counted()?;
        until(&format!("{form}: the link of {known} bytes is known"), PATIENCE, || {
            ipip.send(&large)?;
            Ok((counted()? > before).then_some(()))
        })?;
        all_are_dropped(fixture, ipip, &large)?;
    }
    Ok(())
}

/// Ten more of the same: each is counted, and no client is told.
fn all_are_dropped(fixture: &Fixture, socket: &UdpSocket, datagram: &[u8]) -> Result<()> {
    let counters = || -> Result<_> {
        let packets = |verdict| fixture.balancer.packets(verdict);
        Ok((packets("cannot_fragment")?, packets("answered_too_large")?))
    };
    let before = counters()?;
    (0..10).try_for_each(|_| socket.send(datagram).map(drop))?;
    let (dropped, answered) = (before.0 + 10, before.1);
    until("ten are counted", PATIENCE, || Ok((counters()?.0 >= dropped).then_some(())))?;
    ensure!(counters()? == (dropped, answered), "{:?}, from {before:?}", counters()?);
    Ok(())
}

/// A socket of the client's, to the echo behind a tunnel.
fn open(fixture: &Fixture, tunnel: Tunnel) -> Result<UdpSocket> {
    let socket = fixture.fabric.client.enter(|| -> std::io::Result<_> {
        let socket = UdpSocket::bind((Fabric::CLIENT_V4, 0))?;
        socket.connect(tunnel.endpoint(ECHO))?;
        Ok(socket)
    })??;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// What a packet of so many bytes carries, for the echo to return.
fn payload(packet: usize, seed: u64) -> Vec<u8> {
    let mut payload = Random::new(seed).bytes(packet - HEADERS);
    payload[0] = b'=';
    payload
}

/// Sockets of the near backends that get every packet of a protocol that their kernel has put together.
struct Ears(Vec<Socket>);

impl Ears {
    fn open(fixture: &Fixture, protocol: i32) -> Result<Self> {
        let open = |backend: &lb_tests::topology::Backend| -> Result<Socket> {
            let socket = backend
                .node
                .enter(|| Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(protocol))))??;
            socket.set_read_timeout(Some(SOON))?;
            Ok(socket)
        };
        Ok(Self(fixture.fabric.region_backends(REGIONS[0]).map(open).collect::<Result<_>>()?))
    }

    /// Whether a packet comes that ends in these bytes, and holds a packet from the client in between.
    fn hear(&mut self, datagram: &[u8]) -> bool {
        let from = Fabric::CLIENT_V4.octets();
        self.0.iter_mut().any(|ear| {
            let mut packet = [0; 2048];
            std::iter::from_fn(|| {
                ear.read(&mut packet).ok().map(|length| packet[..length].to_vec())
            })
            .any(|packet| {
                let Some(head) = packet.strip_suffix(datagram) else { return false };
                let Some(inner) = head[20..].last_chunk::<HEADERS>() else { return false };
                inner[0] == 0x45 && inner[12..16] == from
            })
        })
    }
}
