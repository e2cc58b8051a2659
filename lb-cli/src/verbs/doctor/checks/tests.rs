//! Judgements by tables: how a host that is in order changes, and what is found then.

use std::net::IpAddr;

use lb_daemon::{
    dataplane::{AttachedMode, Linked, Role},
    net::{
        Interface, Unresolved,
        device::XdpFeatures,
        survey::{Address, Device, Neighbour, Survey, Way},
    },
};

use super::judge;
use crate::verbs::doctor::{
    facts::{
        Backend, Balancer, Card, Daemon, Facts, Holder, Host, Installed, Network, Places, Receiver,
        Sysctls,
    },
    finding::Level::{self, Ok, Problem, Warning},
};

const LO: u32 = 1;
const ETH0: u32 = 2;
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
const ALL_CAPABILITIES: u64 = 1 << 12 | 1 << 38 | 1 << 39;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn device(index: u32, name: &str, mtu: u32) -> Device {
    let ethernet = index != LO;
    let interface = Interface {
        index,
        name: name.into(),
        mac: ethernet.then_some(MAC),
        mtu,
        up: true,
        carrier: true,
        noarp: false,
    };
    Device { interface, kind: None, lower: None }
}

fn address(interface: u32, address: &str, prefix: u8) -> Address {
    Address { interface, address: ip(address), prefix, deprecated: false }
}

fn way(gateway: &str) -> Result<Way, Unresolved> {
    Result::Ok(Way { interface: ETH0, gateway: ip(gateway), mtu: None, advmss: None })
}

/// What both roles have in common, with a role on `eth0`.
fn host(role: Role) -> Facts {
    let card = Card {
        offloads: Some(["rx-gro".to_owned()].into()),
        xdp: Some(XdpFeatures { native: true, transmits: true }),
        driver: Some("ixgbe".into()),
    };
    let neighbour =
        Neighbour { interface: ETH0, address: ip("10.0.0.1"), mac: Some(MAC), failed: false };
    let sysctls = [
        ("net.ipv4.ip_forward", 0),
        ("net.ipv6.conf.all.forwarding", 0),
        ("net.ipv4.conf.all.rp_filter", 2),
        ("net.ipv4.conf.all.arp_ignore", 1),
        ("net.ipv4.conf.all.arp_announce", 2),
    ];
    Facts {
        host: Host {
            release: "6.1.0-30-amd64".into(),
            btf: true,
            bpffs: true,
            jit: Some(1),
            capabilities: ALL_CAPABILITIES,
        },
        places: Places {
            bpffs: "/sys/fs/bpf".into(),
            state_directory: "/var/lib/spillway".into(),
            socket: "/run/spillway/spillwayd.sock".into(),
            spillwayd: "spillwayd".into(),
            client_mtu: 1500,
        },
        roles: vec![Installed {
            role,
            links: vec![Linked {
                name: "eth0".into(),
                index: Some(ETH0),
                mode: Some(AttachedMode::Native),
            }],
            holder: Some(Holder {
                pid: 7,
                command: vec!["/d".into(), role.name().into()],
                capabilities: Some(ALL_CAPABILITIES),
                unit: None,
            }),
            broken: None,
        }],
        network: Network {
            survey: Survey {
                devices: vec![device(LO, "lo", 65536), device(ETH0, "eth0", 1540)],
                addresses: vec![address(LO, "127.0.0.1", 8), address(ETH0, "10.0.0.2", 24)],
                ways: [(ip("1.0.0.1"), way("10.0.0.1")), (ip("2600::1"), way("fd00::1"))].into(),
                neighbours: vec![neighbour],
            },
            cards: [(ETH0, card)].into(),
        },
        sysctls: Sysctls(sysctls.map(|(name, value)| (name.to_owned(), value)).into()),
        ..Facts::default()
    }
}

fn balancer() -> Facts {
    let mut facts = host(Role::Balancer);
    facts.balancer = Some(Balancer {
        region: Some("eu".into()),
        vips: [ip("203.0.113.1")].into(),
        backends: vec![Backend { address: ip("10.1.0.11"), mtu: 1540, hop: Some((MAC, ETH0)) }],
        sources: [ip("10.0.0.2")].into(),
        too_large: 0,
    });
    facts.daemon = Some(Daemon::Answers {
        version: env!("CARGO_PKG_VERSION").into(),
        generation: 3,
        behind: String::new(),
        troubles: Vec::new(),
    });
    let ways = &mut facts.network.survey.ways;
    ways.insert(ip("10.1.0.11"), way("10.0.0.1"));
    ways.insert(ip("203.0.113.1"), way("10.0.0.1"));
    facts
}

fn backend() -> Facts {
    let mut facts = host(Role::Receiver);
    let sources = vec!["10.0.0.2/32".into()];
    facts.receiver = Some(Receiver { sources, vips: vec![ip("203.0.113.1")] });
    facts.network.survey.addresses.push(address(LO, "203.0.113.1", 32));
    facts
}

/// A host that is in order, what happens to it, and what is found then: check, level, subject, and the
/// first command that mends it.
type Row = (fn() -> Facts, fn(&mut Facts), &'static str, Level, &'static str, &'static str);

const RESTART: &str = "kill 7; tail --pid=7 -f /dev/null; setsid -f /d balancer";

const ROWS: &[Row] = &[
    (
        balancer,
        |f| f.host.release = "5.10.0".into(),
        "kernel",
        Problem,
        "5.10.0",
        "apt-get install -y linux-image-$(dpkg --print-architecture) && reboot",
    ),
    (
        balancer,
        |f| f.host.release = "6.0.19".into(),
        "kernel",
        Problem,
        "6.0.19",
        "apt-get install -y linux-image-$(dpkg --print-architecture) && reboot",
    ),
    (balancer, |f| f.host.release = "custom".into(), "kernel", Warning, "custom", ""),
    (
        balancer,
        |f| f.host.btf = false,
        "btf",
        Problem,
        "/sys/kernel/btf/vmlinux",
        "apt-get install -y linux-image-$(dpkg --print-architecture) && reboot",
    ),
    (
        balancer,
        |f| f.host.bpffs = false,
        "bpffs",
        Problem,
        "/sys/fs/bpf",
        "mount -t bpf bpf /sys/fs/bpf",
    ),
    (
        balancer,
        |f| f.host.jit = Some(0),
        "jit",
        Problem,
        "net.core.bpf_jit_enable",
        "sysctl -w net.core.bpf_jit_enable=1",
    ),
    (
        balancer,
        |f| f.host.capabilities = 1 << 12 | 1 << 38,
        "capabilities",
        Problem,
        "spillway doctor",
        "sudo spillway doctor",
    ),
    (
        balancer,
        |f| holder(f).capabilities = Some(1 << 39 | 1 << 38),
        "capabilities",
        Problem,
        "spillwayd balancer (process 7)",
        RESTART,
    ),
    (
        balancer,
        |f| f.roles[0].broken = Some("/p: no such pin: …".into()),
        "pins",
        Problem,
        "/sys/fs/bpf/spillway/balancer-v1",
        RESTART,
    ),
    (
        balancer,
        |f| f.roles[0].broken = Some("/p: has 3 entries, expected 4".into()),
        "pins",
        Problem,
        "/sys/fs/bpf/spillway/balancer-v1",
        "spillway detach --role balancer  # once the daemon is stopped; then start it anew",
    ),
    (
        balancer,
        |f| f.other_pins = vec!["/sys/fs/bpf/spillway/balancer-v0".into()],
        "pins",
        Warning,
        "/sys/fs/bpf/spillway/balancer-v0",
        "rm -r /sys/fs/bpf/spillway/balancer-v0",
    ),
    (
        balancer,
        dead,
        "daemon",
        Problem,
        "balancer",
        "setsid -f spillwayd balancer --interface eth0 --region eu",
    ),
    (
        balancer,
        |f| f.daemon = Some(Daemon::Silent("no answer".into())),
        "daemon",
        Problem,
        "balancer",
        RESTART,
    ),
    (
        balancer,
        |f| answers(f, env!("CARGO_PKG_VERSION"), 3, "map X: full"),
        "daemon",
        Problem,
        "balancer",
        RESTART,
    ),
    (balancer, |f| answers(f, "0.0.1", 3, ""), "daemon", Warning, "balancer", RESTART),
    (
        balancer,
        |f| answers(f, env!("CARGO_PKG_VERSION"), 0, ""),
        "daemon",
        Warning,
        "balancer",
        "spillway apply -f FILE",
    ),
    (balancer, trouble, "daemon", Warning, "/etc/web.toml", "kill -HUP 7  # once it is corrected"),
    (
        balancer,
        |f| f.roles[0].links[0].mode = Some(AttachedMode::Generic),
        "mode",
        Warning,
        "eth0",
        "kill 7; tail --pid=7 -f /dev/null; setsid -f /d balancer --xdp-mode native",
    ),
    (balancer, generic_only, "mode", Warning, "eth0", ""),
    (balancer, |f| f.roles[0].links[0].mode = None, "mode", Problem, "eth0", RESTART),
    (balancer, |f| offload(f, "rx-lro"), "offloads", Problem, "eth0", "ethtool -K eth0 lro off"),
    (
        balancer,
        |f| offload(f, "rx-gro-hw"),
        "offloads",
        Problem,
        "eth0",
        "ethtool -K eth0 rx-gro-hw off",
    ),
    (balancer, trunk, "offloads", Problem, "eth0", "ethtool -K eth0 rxvlan off"),
    (balancer, unfinished, "offloads", Problem, "eth0", "ethtool -K eth0 tx off"),
    (
        balancer,
        |f| f.network.survey.addresses.push(address(ETH0, "203.0.113.9", 24)),
        "nothing",
        Ok,
        "",
        "",
    ),
    (
        balancer,
        on_link,
        "vip_routes",
        Problem,
        "203.0.113.1",
        "ip address add 203.0.113.1/32 dev eth0",
    ),
    (
        balancer,
        elsewhere,
        "vip_routes",
        Problem,
        "203.0.113.1",
        "ip address delete 203.0.113.1/32 dev eth1",
    ),
    (
        balancer,
        no_route,
        "neighbours",
        Problem,
        "10.1.0.11",
        "ip route replace 10.1.0.11/32 via GATEWAY",
    ),
    (
        balancer,
        silent,
        "neighbours",
        Problem,
        "10.0.0.1 on eth0",
        "ip neighbour flush to 10.0.0.1 dev eth0; ping -c 3 -I eth0 10.0.0.1",
    ),
    (balancer, noarp, "neighbours", Problem, "10.0.0.1 on eth0", "ip link set dev eth0 arp on"),
    (
        balancer,
        |f| eth0(f).interface.up = false,
        "neighbours",
        Problem,
        "10.0.0.1 on eth0",
        "ip link set dev eth0 up",
    ),
    (balancer, moved, "neighbours", Problem, "10.0.0.1 on eth0", RESTART),
    (
        balancer,
        |f| eth0(f).interface.mtu = 1519,
        "mtu",
        Warning,
        "eth0",
        "ip link set dev eth0 mtu 1540",
    ),
    (balancer, dropped, "mtu", Problem, "eth0", "ip link set dev eth0 mtu 1540"),
    (
        balancer,
        narrow_route,
        "mtu",
        Warning,
        "route to 10.1.0.11",
        "ip route change $(ip route get fibmatch 10.1.0.11) mtu 1520",
    ),
    (
        balancer,
        |f| f.balancer.as_mut().unwrap().backends[0].mtu = 1500,
        "mtu",
        Warning,
        "pinned maps",
        RESTART,
    ),
    (
        balancer,
        |f| set(f, "net.ipv4.ip_forward", 1),
        "forwarding",
        Warning,
        "net.ipv4.ip_forward",
        "sysctl -w net.ipv4.ip_forward=0",
    ),
    (balancer, |f| set(f, "net.ipv6.conf.all.forwarding", 1), "nothing", Ok, "", ""),
    (
        backend,
        |f| f.receiver.as_mut().unwrap().sources.push("0.0.0.0/0".into()),
        "allow_lists",
        Warning,
        "0.0.0.0/0",
        "kill 7; tail --pid=7 -f /dev/null; setsid -f /d receiver \
         --allow-source BALANCER_ADDRESS",
    ),
    (
        backend,
        |f| {
            f.network.survey.addresses.pop();
        },
        "served_vips",
        Problem,
        "203.0.113.1",
        "ip address add 203.0.113.1/32 dev lo",
    ),
    (
        backend,
        |f| f.network.survey.addresses.push(address(ETH0, "203.0.113.1", 24)),
        "served_vips",
        Problem,
        "203.0.113.1",
        "ip address delete 203.0.113.1/24 dev eth0; ip address add 203.0.113.1/32 dev lo",
    ),
    (
        backend,
        |f| set(f, "net.ipv4.conf.all.arp_ignore", 0),
        "arp",
        Warning,
        "eth0",
        "sysctl -w net.ipv4.conf.all.arp_ignore=1",
    ),
    (
        backend,
        |f| set(f, "net.ipv4.conf.all.arp_announce", 1),
        "arp",
        Warning,
        "eth0",
        "sysctl -w net.ipv4.conf.all.arp_announce=2",
    ),
    (backend, answered_for, "arp", Problem, "eth0", "sysctl -w net.ipv4.conf.all.arp_ignore=1"),
    (
        backend,
        |f| set(f, "net.ipv4.conf.all.rp_filter", 1),
        "rp_filter",
        Warning,
        "eth0",
        "sysctl -w net.ipv4.conf.all.rp_filter=2",
    ),
    (
        backend,
        elsewhere_back,
        "rp_filter",
        Problem,
        "eth0",
        "sysctl -w net.ipv4.conf.all.rp_filter=2",
    ),
    (backend, |f| set(f, "net.ipv4.conf.all.rp_filter", 0), "nothing", Ok, "", ""),
    (
        backend,
        |f| eth0(f).interface.mtu = 1500,
        "mtu",
        Warning,
        "eth0",
        "ip link set dev eth0 mtu 1520",
    ),
    (backend, asked_for_less, "nothing", Ok, "", ""),
    (
        backend,
        |f| f.roles[0].holder = None,
        "daemon",
        Warning,
        "receiver",
        "setsid -f spillwayd receiver --interface eth0 --allow-source 10.0.0.2/32 \
         --vip 203.0.113.1",
    ),
];

fn holder(facts: &mut Facts) -> &mut Holder {
    facts.roles[0].holder.as_mut().unwrap()
}

fn eth0(facts: &mut Facts) -> &mut Device {
    &mut facts.network.survey.devices[1]
}

fn card(facts: &mut Facts) -> &mut Card {
    facts.network.cards.get_mut(&ETH0).unwrap()
}

fn set(facts: &mut Facts, name: &str, value: i64) {
    facts.sysctls.0.insert(name.into(), value);
}

fn offload(facts: &mut Facts, name: &str) {
    card(facts).offloads.as_mut().unwrap().insert(name.into());
}

fn answers(facts: &mut Facts, version: &str, generation: u64, behind: &str) {
    let (version, behind) = (version.into(), behind.into());
    facts.daemon = Some(Daemon::Answers { version, generation, behind, troubles: Vec::new() });
}

fn dead(facts: &mut Facts) {
    facts.roles[0].holder = None;
    facts.daemon = Some(Daemon::Silent("nothing listens there".into()));
}

fn trouble(facts: &mut Facts) {
    let Some(Daemon::Answers { troubles, .. }) = &mut facts.daemon else { panic!("it answers") };
    troubles.push(("/etc/web.toml".into(), "line 3: unknown field".into()));
}

fn generic_only(facts: &mut Facts) {
    facts.roles[0].links[0].mode = Some(AttachedMode::Generic);
    card(facts).xdp = Some(XdpFeatures { native: false, transmits: false });
}

fn trunk(facts: &mut Facts) {
    offload(facts, "rx-vlan-hw-parse");
    let vlan = Device { kind: Some("vlan".into()), lower: Some(ETH0), ..device(3, "eth0.5", 1540) };
    facts.network.survey.devices.push(vlan);
}

fn unfinished(facts: &mut Facts) {
    offload(facts, "tx-checksum-ip-generic");
    card(facts).driver = Some("veth".into());
}

fn on_link(facts: &mut Facts) {
    facts.network.survey.ways.insert(ip("203.0.113.1"), way("203.0.113.1"));
}

fn elsewhere(facts: &mut Facts) {
    facts.network.survey.devices.push(device(3, "eth1", 1540));
    facts.network.survey.addresses.push(address(3, "203.0.113.1", 32));
}

fn no_route(facts: &mut Facts) {
    facts.network.survey.ways.insert(ip("10.1.0.11"), Err(Unresolved::NoRoute));
}

fn silent(facts: &mut Facts) {
    facts.balancer.as_mut().unwrap().backends[0].hop = None;
    let neighbour = &mut facts.network.survey.neighbours[0];
    (neighbour.mac, neighbour.failed) = (None, true);
}

fn noarp(facts: &mut Facts) {
    facts.balancer.as_mut().unwrap().backends[0].hop = None;
    facts.network.survey.neighbours.clear();
    eth0(facts).interface.noarp = true;
}

/// Its gateway has another MAC than the packet path goes by.
fn moved(facts: &mut Facts) {
    facts.network.survey.neighbours[0].mac = Some([2, 0, 0, 0, 0, 9]);
}

fn dropped(facts: &mut Facts) {
    eth0(facts).interface.mtu = 1500;
    facts.balancer.as_mut().unwrap().too_large = 12;
}

fn narrow_route(facts: &mut Facts) {
    let narrow = way("10.0.0.1").map(|way| Way { mtu: Some(1500), ..way });
    facts.network.survey.ways.insert(ip("10.1.0.11"), narrow);
}

/// The VIP is of the backend's own subnet, where it is asked for.
fn answered_for(facts: &mut Facts) {
    facts.network.survey.addresses.push(address(ETH0, "203.0.113.9", 24));
    set(facts, "net.ipv4.conf.all.arp_ignore", 0);
}

fn elsewhere_back(facts: &mut Facts) {
    set(facts, "net.ipv4.conf.all.rp_filter", 1);
    let other = way("10.0.0.1").map(|way| Way { interface: 3, ..way });
    facts.network.survey.ways.insert(ip("1.0.0.1"), other);
}

fn asked_for_less(facts: &mut Facts) {
    eth0(facts).interface.mtu = 1500;
    let less = way("10.0.0.1").map(|way| Way { advmss: Some(1400), ..way });
    facts.network.survey.ways.insert(ip("1.0.0.1"), less);
}

#[test]
fn a_host_that_is_in_order_has_no_finding() {
    for facts in [balancer(), backend()] {
        let wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
        assert_eq!(wrong, []);
    }
}

/// Each thing that can be wrong is found once, and nothing else with it.
#[test]
fn each_fault_is_found_and_no_other() {
    for (facts, change, check, level, subject, mend) in ROWS {
        let mut facts = facts();
        change(&mut facts);
        let wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
        if *level == Ok {
            assert_eq!(wrong, []);
            continue;
        }
        assert_eq!(wrong.len(), 1, "{check} {subject}: {wrong:#?}");
        let found = (wrong[0].check, wrong[0].level, wrong[0].subject.as_str());
        assert_eq!(found, (*check, *level, *subject));
        let first = wrong[0].mend.first().map(String::as_str).unwrap_or_default();
        assert_eq!(first, *mend, "{check} {subject}");
        assert!(!wrong[0].why.is_empty(), "{check} {subject}: why?");
    }
}

#[test]
fn where_no_program_is_pinned_that_is_the_finding() {
    let mut facts = balancer();
    (facts.roles, facts.balancer, facts.daemon) = (Vec::new(), None, None);
    let wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!(wrong[0].mend[0], "setsid -f spillwayd balancer --interface INTERFACE");
    assert_eq!(
        wrong[0].mend[1],
        "setsid -f spillwayd receiver --interface INTERFACE --allow-source BALANCER_ADDRESS --vip VIP"
    );
}

/// Backends behind one gateway are one finding.
#[test]
fn a_thousand_backends_behind_one_gateway_are_one_finding() {
    let mut facts = balancer();
    silent(&mut facts);
    let backends = &mut facts.balancer.as_mut().unwrap().backends;
    let one = backends[0].clone();
    for number in 0..999_u32 {
        let address = IpAddr::from((0x0a02_0000 + number).to_be_bytes());
        backends.push(Backend { address, ..one.clone() });
        facts.network.survey.ways.insert(address, way("10.0.0.1"));
    }
    let wrong: Vec<_> = judge(&facts).into_iter().filter(|f| f.level != Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert_eq!(wrong[0].found, "does not answer (1000 backends behind it)");
}
