use std::fs;

use super::*;

/// What is wrong, by subject.
async fn conditions(daemon: &Daemon) -> Vec<(String, String)> {
    let conditions = daemon.status().await.conditions;
    conditions.into_iter().map(|condition| (condition.subject, condition.cause)).collect()
}

#[tokio::test]
async fn a_source_address_is_missed_where_a_backend_needs_it() {
    let daemon = Daemon::new();
    assert_eq!(conditions(&daemon).await, []);
    daemon.apply(WEB).await.unwrap();
    let missing = |family: &str| {
        let cause = format!(
            "missing, so packets to {family} backends are dropped; give the interface an \
             address, or set `source`, and start again"
        );
        (format!("{family} source address"), cause)
    };
    assert_eq!(conditions(&daemon).await, [missing("IPv4")]);
    daemon.apply(&web("10.0.0.2", "fd00::2")).await.unwrap();
    assert_eq!(conditions(&daemon).await, [missing("IPv4"), missing("IPv6")]);
    daemon.apply("# nothing").await.unwrap();
    assert_eq!(conditions(&daemon).await, []);
}

#[tokio::test]
async fn names_that_cannot_be_written_are_a_condition_until_they_are() {
    let daemon = Daemon::new();
    // A folder stands where the file is to go.
    let file = daemon.directory.path().join("directory.json");
    fs::create_dir_all(file.join("in the way")).unwrap();
    daemon.apply("[[region]]\nname = \"eu\"\n").await.unwrap();
    let (subject, cause) = conditions(&daemon).await.remove(0);
    assert_eq!(subject, "names for the command line");
    let stale = format!("are stale, and its tables may show wrong ones: {}: ", file.display());
    assert!(cause.starts_with(&stale), "{cause}");
    fs::remove_dir_all(&file).unwrap();
    daemon.apply("# nothing").await.unwrap();
    assert_eq!(conditions(&daemon).await, []);
}

impl Daemon {
    /// The way to a backend carries so much.
    async fn carries(&self, address: &str, mtu: u16) {
        let hop = NextHop {
            gateway: ip("10.0.0.254"),
            mac: [2, 0, 0, 0, 0, 1],
            interface: 1,
            vlan: None,
            interface_mac: [2, 0, 0, 0, 0, 2],
            mtu,
        };
        let change = NextHopChange { address: ip(address), hop: Ok(hop) };
        self.running.network.send(NetChange::NextHop(change)).await.unwrap();
        self.running.commands.export().await.unwrap();
    }

    /// What is wrong with the ways of a pool.
    async fn narrow(&self) -> Option<String> {
        let found = conditions(self).await.into_iter().find(|(subject, _)| subject == "pool web");
        found.map(|(_, cause)| cause)
    }
}

#[tokio::test]
async fn a_way_without_room_for_ipv6_is_a_condition_until_there_is() {
    let said = |carries, needs, more: &str| {
        Some(format!(
            "the way to 10.0.0.1 carries {carries} bytes, and IPv6 service six needs {needs}, for IPv6's \
             least packet and its tunnel: raise its MTU{more}"
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
    assert_eq!(daemon.narrow().await, said(1299, 1300, ""));
    daemon.carries("10.0.0.2", 1200).await;
    let more = ", and that of the way to one more backend";
    assert_eq!(daemon.narrow().await, said(1299, 1300, more));
    daemon.carries("10.0.0.2", 1300).await;
    assert_eq!(daemon.narrow().await, said(1299, 1300, ""));
    daemon.carries("10.0.0.1", 1300).await;
    assert_eq!(daemon.narrow().await, None);
    // In GUE more is needed.
    let in_gue = |text: &str| text.replace("slots = 31", "slots = 31\n    encapsulation = \"gue\"");
    daemon.apply(&in_gue(&six)).await.unwrap();
    assert_eq!(daemon.narrow().await, said(1300, 1312, more));
    // Without the service nobody needs it.
    daemon.apply(&in_gue(WEB)).await.unwrap();
    assert_eq!(daemon.narrow().await, None);
    daemon.carries("10.0.0.1", 576).await;
    assert_eq!(daemon.narrow().await, None);
}
