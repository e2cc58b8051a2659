use std::fs;

use super::{next_hops::hop, *};
use crate::command::Warning;

/// The conditions, without that of the small tables of [`WEB`]: subject and cause.
async fn conditions(daemon: &Daemon) -> Vec<(String, String)> {
    let conditions = daemon.status().await.conditions.into_iter();
    let conditions = conditions.filter(|condition| !condition.subject.starts_with("slots of "));
    conditions.map(|condition| (condition.subject, condition.cause)).collect()
}

#[tokio::test]
async fn a_missing_source_address_is_a_condition() {
    let daemon = Daemon::new();
    assert_eq!(conditions(&daemon).await, []);
    daemon.apply(&web("10.0.0.2", "fd00::2")).await.unwrap();
    let missing = |family: &str, backends: &str| {
        let cause = format!(
            "missing: tunnels to {backends} have none, so no packets go there; give this host an {family} address \
             that is not a service's, or set `source` and restart"
        );
        (format!("{family} source address"), cause)
    };
    let without = NextHop { source: None, ..hop(1) };
    daemon.resolve("10.0.0.1", Ok(without)).await;
    let alone = missing("IPv4", "10.0.0.1");
    assert_eq!(conditions(&daemon).await, std::slice::from_ref(&alone));
    let status = daemon.backend("web", "10.0.0.1").await;
    let why =
        "no source address for the tunnel: this host has no IPv4 address that is not a service's";
    assert_eq!((status.next_hop, status.tunnel_source), (Err(why.into()), None));
    daemon.resolve("fd00::2", Ok(without)).await;
    assert_eq!(conditions(&daemon).await, [alone, missing("IPv6", "fd00::2")]);
    // An address of the host is enough, as the sensor then says.
    daemon.resolve("10.0.0.1", Ok(hop(1))).await;
    assert_eq!(conditions(&daemon).await, [missing("IPv6", "fd00::2")]);
    assert_eq!(daemon.backend("web", "10.0.0.1").await.tunnel_source, Some("10.0.0.250".into()));
    daemon.force("# nothing").await.unwrap();
    assert_eq!(conditions(&daemon).await, []);
}

#[tokio::test]
async fn direct_return_needs_no_source_address() {
    let daemon = Daemon::new();
    let direct = web("slots = 31", "slots = 31\n    encapsulation = \"direct\"");
    daemon.apply(&direct).await.unwrap();
    let on_link = NextHop { gateway: ip("10.0.0.1"), source: None, ..hop(1) };
    daemon.resolve("10.0.0.1", Ok(on_link)).await;
    assert_eq!(conditions(&daemon).await, []);
    let status = daemon.backend("web", "10.0.0.1").await;
    assert!(status.next_hop.is_ok(), "{status:?}");
    assert_eq!(status.tunnel_source, None);
}

#[tokio::test]
async fn unwritable_names_are_a_condition() {
    let daemon = Daemon::new();
    // A directory is in the place of the file.
    let file = daemon.directory.path().join("directory.json");
    fs::create_dir_all(file.join("in the way")).unwrap();
    daemon.apply("[[region]]\nname = \"eu\"\n").await.unwrap();
    let (subject, cause) = conditions(&daemon).await.remove(0);
    assert_eq!(subject, "names for the command line");
    let stale = format!("not up to date, so tables may show wrong names: {}: ", file.display());
    assert!(cause.starts_with(&stale), "{cause}");
    fs::remove_dir_all(&file).unwrap();
    daemon.apply("# nothing").await.unwrap();
    assert_eq!(conditions(&daemon).await, []);
}

impl Daemon {
    /// Reports the MTU of the path to a backend.
    async fn carries(&self, address: &str, mtu: u16) {
        let hop = NextHop {
            gateway: ip("10.0.0.254"),
            mac: [2, 0, 0, 0, 0, 1],
            interface: 1,
            vlan: None,
            interface_mac: [2, 0, 0, 0, 0, 2],
            mtu,
            source: Some(ip("10.0.0.250")),
        };
        let change = NextHopChange { address: ip(address), hop: Ok(hop) };
        self.running.network.send(NetChange::NextHops(vec![change])).await.unwrap();
        self.heard().await;
    }

    /// The condition about narrow paths of pool `web`.
    async fn narrow(&self) -> Option<String> {
        let found = conditions(self).await.into_iter().find(|(subject, _)| subject == "pool web");
        found.map(|(_, cause)| cause)
    }
}

#[tokio::test]
async fn a_path_too_narrow_for_ipv6_is_a_condition() {
    let expected = |carries, needs, more: &str| {
        Some(format!(
            "the path to 10.0.0.1 carries {carries} bytes, but IPv6 service six needs {needs} for the IPv6 minimum MTU and \
             its tunnel: raise its MTU{more}"
        ))
    };
    let six = format!(
        "{WEB}\n[[service]]\nname = \"six\"\naddress = \"2001:db8::1\"\nport = 80\nprotocol = \"tcp\"\n\
         pool = \"web\"\n"
    );
    let daemon = Daemon::new();
    daemon.apply(WEB).await.unwrap();
    daemon.carries("10.0.0.1", 1299).await;
    daemon.carries("10.0.0.2", 1300).await;
    assert_eq!(daemon.narrow().await, None, "IPv4 has no least packet that counts");
    daemon.apply(&six).await.unwrap();
    assert_eq!(daemon.narrow().await, expected(1299, 1300, ""));
    daemon.carries("10.0.0.2", 1200).await;
    let more = ", and that of the path to one more backend";
    assert_eq!(daemon.narrow().await, expected(1299, 1300, more));
    daemon.carries("10.0.0.2", 1300).await;
    assert_eq!(daemon.narrow().await, expected(1299, 1300, ""));
    daemon.carries("10.0.0.1", 1300).await;
    assert_eq!(daemon.narrow().await, None);
    // GUE needs more.
    let in_gue = |text: &str| text.replace("slots = 31", "slots = 31\n    encapsulation = \"gue\"");
    daemon.apply(&in_gue(&six)).await.unwrap();
    assert_eq!(daemon.narrow().await, expected(1300, 1312, more));
    // Without the service there is no need.
    daemon.apply(&in_gue(WEB)).await.unwrap();
    assert_eq!(daemon.narrow().await, None);
    daemon.carries("10.0.0.1", 576).await;
    assert_eq!(daemon.narrow().await, None);
}

/// [`WEB`] with a line added to a backend.
fn with(last: u8, line: &str) -> String {
    let address = format!("address = \"10.0.0.{last}\"\n");
    web(&address, &format!("{address}{line}\n"))
}

/// The warnings of a dry run of a change that may remove anything.
async fn dry(daemon: &Daemon, text: &str) -> Vec<Warning> {
    let (configuration, force) = (request(text), true);
    let apply = Apply { configuration, dry_run: true, force, ..Apply::default() };
    daemon.running.commands.apply(apply, None).await.unwrap().unwrap().warnings
}

#[tokio::test]
async fn removing_the_last_backend_for_new_connections_warns() {
    let daemon = Daemon::new();
    assert_eq!(daemon.apply(WEB).await.unwrap().warnings, [""; 0], "nobody was there before");
    daemon.report_health("web", "10.0.0.1", Passing, "all checks pass").await;
    daemon.report_health("web", "10.0.0.2", Failing, "check tcp: refused").await;

    let web_is_empty = "pool web has no backend left for new connections";
    let first = "[[pool.backend]]\n    address = \"10.0.0.1\"\n    region = \"eu\"\n";
    let third = "[[pool.backend]]\naddress = \"10.0.0.3\"\nregion = \"eu\"\n";
    let group = "slots = 31\n[[pool.group]]\nregion = \"eu\"\nscaler = 0.0";
    let drained = with(1, "admin_state = \"drain\"");
    for taken in [
        drained.clone(),
        with(1, "admin_state = \"disabled\""),
        with(1, "weight = 0"),
        web(first, ""),
        web("slots = 31", group),
    ] {
        assert_eq!(dry(&daemon, &taken).await, [web_is_empty], "{taken}");
    }
    for kept in [
        with(2, "admin_state = \"disabled\""),
        with(1, "weight = 5"),
        // In panic mode, backends whose checks fail get connections.
        drained.replace("slots = 31", "slots = 31\npanic_threshold_percent = 50"),
        // The state of a new backend is unknown.
        drained.replace("[[service]]", &format!("{third}[[service]]")),
        "# nothing".into(),
    ] {
        assert_eq!(dry(&daemon, &kept).await, [""; 0], "{kept}");
    }
    let elsewhere = web("pool = \"web\"", "pool = \"other\"") + "[[pool]]\nname = \"other\"\n";
    assert_eq!(
        dry(&daemon, &elsewhere).await,
        ["pool other has no backend left for new connections"],
        "the service is pointed at nobody"
    );

    assert_eq!(daemon.apply(&drained).await.unwrap().warnings, [web_is_empty]);
    assert_eq!(dry(&daemon, &web(first, "")).await, [""; 0], "there was nobody already");
    assert_eq!(dry(&daemon, WEB).await, [""; 0]);
}

#[tokio::test]
async fn a_service_whose_pool_has_no_backends_warns_once() {
    let daemon = Daemon::new();
    let service = |name: &str, port: u16, pool: &str| {
        format!(
            "[[service]]\nname = \"{name}\"\naddress = \"192.0.2.9\"\nport = {port}\n\
             protocol = \"tcp\"\npool = \"{pool}\"\n"
        )
    };
    let empty = format!("[[pool]]\nname = \"empty\"\n{}", service("api", 80, "empty"));
    let api = "pool empty has no backends, so all packets of service api are dropped";
    assert_eq!(dry(&daemon, &empty).await, [api], "a dry run says it too");
    assert_eq!(daemon.apply(&empty).await.unwrap().warnings, [api]);

    // Unrelated changes do not repeat the warning. A change of the service does, and services of one pool are
    // listed together.
    let other = format!("{empty}[[pool]]\nname = \"unused\"\n");
    assert_eq!(daemon.apply(&other).await.unwrap().warnings, [""; 0]);
    let moved = other.replace("port = 80", "port = 81");
    assert_eq!(dry(&daemon, &moved).await, [api]);
    let many: String = (0..7).map(|n| service(&format!("s{n}"), 100 + n, "empty")).collect();
    assert_eq!(
        dry(&daemon, &format!("{other}{many}")).await,
        [
            "pool empty has no backends, so all packets of services s0, s1, s2, s3, s4 and 2 more are dropped"
        ]
    );
    let pointed = other.replace("pool = \"empty\"", "pool = \"unused\"");
    let unused = "pool unused has no backends, so all packets of service api are dropped";
    assert_eq!(dry(&daemon, &pointed).await, [unused]);

    // With a backend there is no warning. Removing it warns again, because it never passed a check.
    let region = "[[region]]\nname = \"eu\"\n[[health_check]]\nname = \"tcp\"\nport = 80\nvia = \"tunnel\"\ntcp = {}\n";
    let full = format!(
        "{region}[[pool]]\nname = \"empty\"\nhealth_checks = [\"tcp\"]\n[[pool.backend]]\n\
         address = \"10.0.0.1\"\nregion = \"eu\"\n{}",
        service("api", 80, "empty")
    );
    assert_eq!(daemon.apply(&full).await.unwrap().warnings, [""; 0]);
    daemon.report_health("empty", "10.0.0.1", Failing, "check tcp: refused").await;
    assert_eq!(dry(&daemon, &empty).await, [api]);
}

#[tokio::test]
async fn a_pool_whose_checks_avoid_its_tunnel_warns_once() {
    let daemon = Daemon::new();
    let warning = "pool web: no health check goes through the tunnel, so a backend without the VIP or the receiver counts \
                   as up; set via = \"tunnel\" in a health check";
    let around = WEB.replace("via = \"tunnel\"", "via = \"address\"");
    assert_ne!(around, WEB);
    assert_eq!(dry(&daemon, &around).await, [warning]);
    let direct = "slots = 31\nencapsulation = \"direct\"";
    assert_eq!(dry(&daemon, &around.replace("slots = 31", direct)).await, [""; 0], "no tunnel");
    let unchecked = around.replace("health_checks = [\"tcp\"]", "");
    assert_ne!(unchecked, around);
    assert_eq!(dry(&daemon, &unchecked).await, [""; 0], "no check passes");
    let second = "[[health_check]]\nname = \"second\"\nport = 80\ntcp = {}\nvia = \"tunnel\"\n";
    let both = around.replace("[\"tcp\"]", "[\"tcp\", \"second\"]") + second;
    assert_eq!(dry(&daemon, &both).await, [""; 0], "one is enough");

    assert_eq!(daemon.apply(&around).await.unwrap().warnings, [warning]);
    // It is not repeated when something else changes.
    let other = around.replace("slots = 31", "slots = 31\nsettle_time = \"99s\"");
    assert_eq!(daemon.apply(&other).await.unwrap().warnings, [""; 0]);
    assert_eq!(daemon.apply(WEB).await.unwrap().warnings, [""; 0]);
    assert_eq!(daemon.apply(&around).await.unwrap().warnings, [warning]);
}
