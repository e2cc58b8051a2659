//! The daemon follows links, routes and neighbours of a real kernel: it knows what packets to each backend need.

mod neighbours;
mod resolver;
mod sources;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::harness::Case;
use lb_model::next_hop::NextHop;
use lb_net::{self};
use lb_tests::{
    process::until,
    sandbox::Sandbox,
    topology::{Node, Topology},
};
use resolver::{LIMIT, Resolving, in_runtime};

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_backend_on_the_link_is_its_own_next_hop", a_backend_on_the_link),
    Case::waits("a_backend_behind_a_gateway_has_its_mac", a_backend_behind_a_gateway),
    Case::waits("a_thousand_backends_ask_for_one_gateway", a_thousand_backends_ask_for_one_gateway),
    Case::waits("a_gateway_that_changes_its_mac_is_followed", a_changed_mac_is_followed),
    Case::waits("a_deleted_neighbour_is_asked_for_again", a_deleted_neighbour_is_asked_for_again),
    Case::waits(
        "a_silent_neighbour_is_none_until_it_answers",
        neighbours::a_silent_neighbour_is_none,
    ),
    Case::waits(
        "a_neighbour_that_falls_silent_is_found_out",
        neighbours::a_neighbour_that_falls_silent,
    ),
    Case::waits("a_silent_gateway_that_asks_has_to_answer", neighbours::a_silent_gateway_that_asks),
    Case::waits(
        "a_gateway_that_falls_silent_gives_way_to_another",
        neighbours::a_gateway_gives_way,
    ),
    Case::waits("a_link_that_goes_down_is_no_route", a_link_that_goes_down_is_no_route),
    Case::waits("a_route_that_moves_takes_its_backends_along", a_route_that_moves),
    Case::waits("a_rule_or_a_nexthop_object_may_move_it_too", a_rule_or_a_nexthop_object),
    Case::waits("missing_routes_say_why", missing_routes_say_why),
    Case::waits("events_that_were_lost_are_made_up_for", lost_events_are_made_up_for),
    Case::waits("interfaces_are_found", interfaces_are_found),
    Case::waits("the_source_is_the_kernels_but_no_services", sources::but_no_services),
    Case::waits("the_source_follows_addresses_and_routes", sources::follows),
    Case::waits(
        "the_source_is_the_kernels_without_the_services_address",
        sources::as_the_kernel_without_the_service,
    ),
    Case::waits("resolving_ends_with_its_last_user", resolving_ends_with_its_last_user),
];

/// `a` and `b` on one link; `b` also answers for 198.51.100.0/24 and 2001:db8:64::/64.
fn pair(sandbox: &Sandbox, name: &str) -> Result<(Topology, Node, Node)> {
    let mut net = Topology::new(sandbox, name)?;
    let (a, b) = (net.node("a")?, net.node("b")?);
    net.link(&a, "eth0", &b, "eth0", 1500)?;
    a.ip("address add 192.0.2.1/24 dev eth0\naddress add 2001:db8::1/64 dev eth0")?;
    b.ip("address add 192.0.2.2/24 dev eth0\naddress add 2001:db8::2/64 dev eth0")?;
    a.ip("route add 198.51.100.0/24 via 192.0.2.2\nroute add 2001:db8:64::/64 via 2001:db8::2")?;
    net.ready()?;
    Ok((net, a, b))
}

/// What `ip` says of an interface: index, MAC.
fn interface(node: &Node, name: &str) -> Result<(u32, [u8; 6])> {
    let link = &node.ip_json(&format!("link show dev {name}"))?[0];
    let index = link["ifindex"].as_u64().context("ifindex")?;
    Ok((index.try_into()?, mac(link["address"].as_str().context("address")?)?))
}

fn mac(text: &str) -> Result<[u8; 6]> {
    let bytes: Result<Vec<u8>, _> = text.split(':').map(|b| u8::from_str_radix(b, 16)).collect();
    bytes?.try_into().ok().context("six bytes")
}

/// The next hop out of `a`'s interface to `gateway`, which is at `b`'s.
fn hop(a: (&Node, &str), gateway: &str, b: (&Node, &str)) -> Result<NextHop> {
    let ((interface, interface_mac), (_, mac)) = (interface(a.0, a.1)?, interface(b.0, b.1)?);
    let source = Some(kernels_source(a.0, gateway)?.parse()?);
    let gateway = gateway.parse()?;
    Ok(NextHop { gateway, mac, interface, vlan: None, interface_mac, mtu: 1500, source })
}

/// The source that the kernel takes towards an address.
fn kernels_source(node: &Node, to: &str) -> Result<String> {
    let route = &node.ip_json(&format!("route get {to}"))?[0];
    Ok(route["prefsrc"].as_str().with_context(|| format!("prefsrc: {route}"))?.to_owned())
}

fn a_backend_on_the_link(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, b) = pair(sandbox, "onlink")?;
    let mut resolving = Resolving::start(&a, &["192.0.2.2", "2001:db8::2"])?;
    for address in ["192.0.2.2", "2001:db8::2"] {
        resolving.expect(address, Ok(hop((&a, "eth0"), address, (&b, "eth0"))?))?;
    }
    resolving.expect_nothing_more()
}

fn a_backend_behind_a_gateway(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, b) = pair(sandbox, "gateway")?;
    a.ip("route add 203.0.113.0/25 via 192.0.2.2 mtu 1400\n\
          route add 203.0.113.128/25 via inet6 2001:db8::2 dev eth0\n\
          route add 2001:db8:65::/64 via 2001:db8::2 mtu 9000")?;
    let four = hop((&a, "eth0"), "192.0.2.2", (&b, "eth0"))?;
    let six = hop((&a, "eth0"), "2001:db8::2", (&b, "eth0"))?;
    let expected = [
        ("198.51.100.7", four),
        ("203.0.113.1", NextHop { mtu: 1400, ..four }),
        // The source is of the backend's IP version, not of the gateway's.
        ("203.0.113.129", NextHop { source: four.source, ..six }),
        ("2001:db8:64::7", six),
        ("2001:db8:65::7", six),
    ];
    let mut resolving = Resolving::start(&a, &expected.map(|(address, _)| address))?;
    for (address, hop) in expected {
        resolving.expect(address, Ok(hop))?;
    }
    a.ip("link set eth0 mtu 1300")?;
    for (address, hop) in expected {
        resolving.expect(address, Ok(NextHop { mtu: 1300, ..hop }))?;
    }
    Ok(())
}

fn a_thousand_backends_ask_for_one_gateway(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, b) = pair(sandbox, "thousand")?;
    a.ip("route add 10.0.0.0/16 via 192.0.2.2")?;
    let addresses: Vec<_> = (0..1000).map(|n| format!("10.0.{}.{}", n / 250, n % 250)).collect();
    let hop = hop((&a, "eth0"), "192.0.2.2", (&b, "eth0"))?;
    let mut resolving = Resolving::start(&a, &addresses.iter().map(|a| &**a).collect::<Vec<_>>())?;
    for address in &addresses {
        resolving.expect(address, Ok(hop))?;
    }
    let neighbours = a.ip_json("-4 neighbour show dev eth0")?;
    ensure!(neighbours.as_array().context("list")?.len() == 1, "{neighbours}");

    // A change of its MAC reaches all of them, at once.
    a.ip("neighbour replace 192.0.2.2 lladdr 02:00:00:00:00:99 dev eth0 nud reachable")?;
    resolving.expect_at_once(addresses.len())?;
    let hop = NextHop { mac: [2, 0, 0, 0, 0, 0x99], ..hop };
    for address in &addresses {
        resolving.expect(address, Ok(hop))?;
    }
    Ok(())
}

fn a_changed_mac_is_followed(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, b) = pair(sandbox, "mac")?;
    // The new address is announced by a gratuitous ARP reply and an unsolicited advertisement.
    b.sysctls(&[("net.ipv4.conf.eth0.arp_notify", "1"), ("net.ipv6.conf.eth0.ndisc_notify", "1")])?;
    let wanted = ["198.51.100.7", "2001:db8:64::7"];
    let mut resolving = Resolving::start(&a, &wanted)?;
    for last in 0..3 {
        if last > 0 {
            b.ip(&format!("link set eth0 address 02:00:00:00:00:0{last}"))?;
        }
        let gateways = ["192.0.2.2", "2001:db8::2"];
        for (address, gateway) in wanted.into_iter().zip(gateways) {
            resolving.expect(address, Ok(hop((&a, "eth0"), gateway, (&b, "eth0"))?))?;
        }
    }
    // So is one of our own.
    a.ip("link set eth0 address 02:00:00:00:00:aa")?;
    resolving.expect(wanted[0], Ok(hop((&a, "eth0"), "192.0.2.2", (&b, "eth0"))?))?;
    resolving.expect(wanted[1], Ok(hop((&a, "eth0"), "2001:db8::2", (&b, "eth0"))?))
}

fn a_deleted_neighbour_is_asked_for_again(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, b) = pair(sandbox, "deleted")?;
    let wanted = ["198.51.100.7", "2001:db8:64::7"];
    let gateways = ["192.0.2.2", "2001:db8::2"];
    let mut resolving = Resolving::start(&a, &wanted)?;
    for (address, gateway) in wanted.into_iter().zip(gateways) {
        resolving.expect(address, Ok(hop((&a, "eth0"), gateway, (&b, "eth0"))?))?;
    }
    let known = || -> Result<bool> {
        let all = a.ip_json("neighbour show dev eth0 nud reachable")?;
        let all = all.as_array().context("list")?;
        Ok(gateways.iter().all(|gateway| all.iter().any(|known| known["dst"] == **gateway)))
    };
    // It goes on until nothing is left, and fails after ten rounds if entries come back as fast as they go.
    let flush = || {
        let _came_back = a.ip("neighbour flush dev eth0");
    };
    for flushes in [false, true] {
        if flushes {
            flush();
        } else {
            a.ip("neighbour del 192.0.2.2 dev eth0\nneighbour del 2001:db8::2 dev eth0")?;
        }
        until("neighbours that are known again", LIMIT, || Ok(known()?.then_some(())))?;
        resolving.expect_nothing_more().with_context(|| format!("flushes: {flushes}"))?;
    }
    // Somebody else may answer this time.
    b.ip("link set eth0 address 02:00:00:00:00:99")?;
    flush();
    for (address, gateway) in wanted.into_iter().zip(gateways) {
        resolving.expect(address, Ok(hop((&a, "eth0"), gateway, (&b, "eth0"))?))?;
    }
    Ok(())
}

fn a_link_that_goes_down_is_no_route(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, b) = pair(sandbox, "down")?;
    let mut resolving = Resolving::start(&a, &["192.0.2.2"])?;
    let hop = hop((&a, "eth0"), "192.0.2.2", (&b, "eth0"))?;
    resolving.expect("192.0.2.2", Ok(hop))?;
    // With the interface its routes go.
    for (node, why) in [(&a, "no route"), (&b, "interface eth0 has no carrier")] {
        node.ip("link set eth0 down")?;
        resolving.expect("192.0.2.2", Err(why))?;
        node.ip("link set eth0 up")?;
        resolving.expect_finally("192.0.2.2", Ok(hop))?;
    }
    a.ip("link del eth0")?;
    resolving.expect_finally("192.0.2.2", Err("no route"))
}

/// `a` with two links, to `b` and to `c`; what is behind them is routed over `b`.
fn fork(sandbox: &Sandbox, name: &str) -> Result<(Topology, Node, NextHop, NextHop)> {
    let (mut net, a, b) = pair(sandbox, name)?;
    let c = net.node("c")?;
    net.link(&a, "eth1", &c, "eth0", 1500)?;
    a.ip("address add 192.0.3.1/24 dev eth1")?;
    c.ip("address add 192.0.3.2/24 dev eth0")?;
    net.ready()?;
    let over_b = hop((&a, "eth0"), "192.0.2.2", (&b, "eth0"))?;
    let over_c = hop((&a, "eth1"), "192.0.3.2", (&c, "eth0"))?;
    Ok((net, a, over_b, over_c))
}

fn a_route_that_moves(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, over_b, over_c) = fork(sandbox, "moves")?;
    let mut resolving = Resolving::start(&a, &["198.51.100.7"])?;
    resolving.expect("198.51.100.7", Ok(over_b))?;
    a.ip("route replace 198.51.100.0/24 via 192.0.3.2")?;
    resolving.expect("198.51.100.7", Ok(over_c))?;
    a.ip("route add 198.51.100.7/32 via 192.0.2.2")?;
    resolving.expect("198.51.100.7", Ok(over_b))?;
    // There is another way, and no moment without one.
    a.ip("link set eth0 down")?;
    resolving.expect("198.51.100.7", Ok(over_c))?;
    a.ip("route del 198.51.100.0/24")?;
    resolving.expect("198.51.100.7", Err("no route"))?;
    resolving.expect_nothing_more()
}

fn a_rule_or_a_nexthop_object(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, over_b, over_c) = fork(sandbox, "rules")?;
    let mut resolving = Resolving::start(&a, &["198.51.100.7"])?;
    resolving.expect("198.51.100.7", Ok(over_b))?;
    a.ip("route add 198.51.100.0/24 via 192.0.3.2 table 7")?;
    a.ip("rule add to 198.51.100.0/24 table 7")?;
    resolving.expect("198.51.100.7", Ok(over_c))?;
    a.ip("rule del to 198.51.100.0/24 table 7")?;
    resolving.expect("198.51.100.7", Ok(over_b))?;
    // Else the kernel tells of each route too that uses the object.
    a.sysctls(&[("net.ipv4.nexthop_compat_mode", "0")])?;
    a.ip("nexthop add id 7 via 192.0.3.2 dev eth1\n\
         route replace 198.51.100.0/24 nhid 7")?;
    resolving.expect("198.51.100.7", Ok(over_c))?;
    a.ip("nexthop replace id 7 via 192.0.2.2 dev eth0")?;
    resolving.expect("198.51.100.7", Ok(over_b))
}

fn missing_routes_say_why(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, _b) = pair(sandbox, "none")?;
    a.ip("route add blackhole 10.1.0.0/16\nroute add prohibit 10.2.0.0/16\n\
          route add unreachable 10.3.0.0/16\nroute add blackhole 2001:db8:1::/64\n\
          route add prohibit 2001:db8:2::/64\nroute add unreachable 2001:db8:3::/64\n\
          tuntap add mode tun name tun0\nlink set tun0 up\n\
          address add 10.4.0.1/16 dev tun0\n\
          link add quiet type veth peer name peer\nlink set quiet arp off up\n\
          link set peer up\naddress add 10.5.0.1/16 dev quiet")?;
    let expected = [
        ("203.0.113.1", "no route"),
        ("2001:db8:ffff::1", "no route"),
        ("10.1.0.1", "no route: blackhole"),
        ("10.2.0.1", "no route: prohibited"),
        ("10.3.0.1", "no route: unreachable"),
        ("2001:db8:1::1", "no route: blackhole"),
        ("2001:db8:2::1", "no route: prohibited"),
        ("2001:db8:3::1", "no route: unreachable"),
        ("127.0.0.1", "127.0.0.1 is an address of this host"),
        ("::1", "::1 is an address of this host"),
        ("192.0.2.1", "192.0.2.1 is an address of this host"),
        ("2001:db8::1", "2001:db8::1 is an address of this host"),
        ("192.0.2.255", "192.0.2.255 is not a unicast address"),
        ("10.4.0.9", "interface tun0 is not an Ethernet interface"),
        ("10.5.0.9", "no neighbour entry for 10.5.0.9 on quiet, and quiet resolves none (noarp)"),
    ];
    let mut resolving = Resolving::start(&a, &expected.map(|(address, _)| address))?;
    for (address, why) in expected {
        resolving.expect(address, Err(why))?;
    }
    a.ip("neighbour add 10.5.0.9 lladdr 02:00:00:00:00:55 dev quiet nud permanent")?;
    let (interface, interface_mac) = interface(&a, "quiet")?;
    let gateway = "10.5.0.9".parse()?;
    let mac = [2, 0, 0, 0, 0, 0x55];
    let source = Some(kernels_source(&a, "10.5.0.9")?.parse()?);
    resolving.expect(
        "10.5.0.9",
        Ok(NextHop { gateway, mac, interface, vlan: None, interface_mac, mtu: 1500, source }),
    )
}

fn lost_events_are_made_up_for(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, b) = pair(sandbox, "lost")?;
    let wanted = ["198.51.100.1", "198.51.100.2", "198.51.100.3"];
    let hop = hop((&a, "eth0"), "192.0.2.2", (&b, "eth0"))?;
    // The second change finds no room and holds it up; the kernel's words pile up meanwhile.
    let mut resolving = Resolving::with_room_for(&a, &wanted, 1)?;
    resolving.wait_until_full()?;
    a.ip("neighbour replace 192.0.2.2 lladdr 02:00:00:00:00:98 dev eth0 nud permanent")?;
    let entry = |n: u32| {
        let mac = format!("02:00:00:00:01:{:02x}", n % 2);
        format!("neighbour replace 192.0.2.200 lladdr {mac} dev eth0 nud permanent")
    };
    let flood = (0..4000).map(entry).collect::<Vec<_>>().join("\n");
    until("events that are lost", LIMIT, || {
        a.ip(&flood)?;
        Ok((drops(&a)? > 0).then_some(()))
    })?;
    a.ip("neighbour replace 192.0.2.2 lladdr 02:00:00:00:00:99 dev eth0 nud permanent")?;
    for mac in [hop.mac, [2, 0, 0, 0, 0, 0x98], [2, 0, 0, 0, 0, 0x99]] {
        for address in wanted {
            resolving.expect(address, Ok(NextHop { mac, ..hop }))?;
        }
    }
    Ok(())
}

/// Messages that netlink sockets of the node had no room for.
pub(crate) fn drops(node: &Node) -> Result<u64> {
    let table = node.run("cat", ["/proc/net/netlink"])?;
    let mut lines = table.lines();
    let column = lines.next().context("head")?.split_whitespace().position(|name| name == "Drops");
    let column = column.context("column Drops")?;
    lines
        .map(|line| Ok(line.split_whitespace().nth(column).context("Drops")?.parse::<u64>()?))
        .sum()
}

fn interfaces_are_found(sandbox: &Sandbox) -> Result<()> {
    let mut net = Topology::new(sandbox, "found")?;
    let (a, b) = (net.node("a")?, net.node("b")?);
    net.link(&a, "eth0", &b, "eth0", 1400)?;
    net.ready()?;
    let (index, own_mac) = interface(&a, "eth0")?;
    let found = in_runtime(&a, || lb_net::interface_by_name("eth0"))??;
    ensure!((found.index, found.mac, found.mtu) == (index, Some(own_mac), 1400), "{found:?}");
    ensure!(found.up && found.carrier && !found.noarp);
    ensure!(in_runtime(&a, || lb_net::interface_by_name("lo"))??.mac.is_none());
    for name in ["eth9", "a-name-longer-than-any"] {
        let missing = in_runtime(&a, || lb_net::interface_by_name(name))?;
        let said = missing.err().map(|error| error.to_string());
        ensure!(said == Some(format!("interface {name}: not found")), "{said:?}");
    }
    Ok(())
}

fn resolving_ends_with_its_last_user(sandbox: &Sandbox) -> Result<()> {
    let (_net, a, _b) = pair(sandbox, "ends")?;
    Resolving::start(&a, &["192.0.2.2"])?.stop_wanting()?;
    Resolving::start(&a, &["192.0.2.2"])?.stop_listening()
}
