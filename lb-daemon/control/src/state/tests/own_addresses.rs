//! Services at addresses of balancers. What counts is tested with the rule itself, in lb-model.

use super::*;
use crate::command::{Warning, WarningReason};
use lb_model::{
    ObjectReference,
    own_addresses::{OwnAddress, OwnAddresses},
};

/// Service `web` at an address.
fn web(address: &str) -> String {
    format!(
        "[[region]]\nname = \"eu\"\n[[pool]]\nname = \"web\"\nslots = 31\n[[service]]\nname = \"web\"\n\
         address = \"{address}\"\nport = 80\nprotocol = \"tcp\"\npool = \"web\"\n"
    )
}

fn eth0(address: &str) -> OwnAddresses {
    [(ip(address), OwnAddress::Interface("eth0".into()))].into()
}

const OWN: &str = "service web has 10.0.0.2, which is an address of eth0 of this balancer";

impl Daemon {
    async fn put_at(&self, address: &str, how: Apply) -> Result<Applied, Refusal> {
        let apply = Apply { configuration: request(&web(address)), ..how };
        self.running.commands.apply(apply, None).await.unwrap()
    }

    /// One that has the address 10.0.0.2.
    fn at_10_0_0_2() -> Self {
        let daemon = Self::new();
        daemon.running.balancer_addresses.set(eth0("10.0.0.2"));
        daemon
    }
}

#[tokio::test]
async fn a_service_gets_an_address_of_the_balancer_only_by_force() {
    let daemon = Daemon::at_10_0_0_2();
    let refused = daemon.put_at("10.0.0.2", Apply::default()).await.unwrap_err();
    assert_eq!(refused.to_string(), OWN);
    assert_eq!(daemon.running.commands.export().await.unwrap().generation, 0);
    // Not by a role for some pools.
    let scoped = Apply { force: true, is_scoped: true, ..Apply::default() };
    let refused = daemon.put_at("10.0.0.2", scoped).await.unwrap_err();
    assert!(matches!(refused, Refusal::BalancerAddress(_)), "{refused}");
    daemon.put_at("203.0.113.1", Apply::default()).await.unwrap();

    let forced = Apply { force: true, ..Apply::default() };
    let applied = daemon.put_at("10.0.0.2", forced).await.unwrap();
    let taken: Vec<_> = applied.takeovers.iter().map(ToString::to_string).collect();
    assert_eq!((applied.generation, taken), (2, vec![OWN.to_owned()]));
    // It stays without force, whatever else changes.
    let more = format!("{}[[pool]]\nname = \"more\"\n", web("10.0.0.2"));
    assert_eq!(daemon.apply(&more).await.unwrap().takeovers, []);
    // What the host has is looked at each time.
    daemon.running.balancer_addresses.set(eth0("10.0.0.3"));
    let refused = daemon.put_at("10.0.0.3", Apply::default()).await.unwrap_err();
    assert!(refused.to_string().contains("has 10.0.0.3, which is"), "{refused}");
}

#[tokio::test]
async fn a_dry_run_warns_of_an_address_of_the_balancer() {
    let daemon = Daemon::at_10_0_0_2();
    let dry = |force| Apply { dry_run: true, force, ..Apply::default() };
    let warning = Warning {
        reason: WarningReason::ForceRequired,
        object: Some(ObjectReference::Service(name("web"))),
        text: format!("{OWN}: this needs --force"),
    };
    let unforced = daemon.put_at("10.0.0.2", dry(false)).await.unwrap();
    assert!(unforced.warnings.contains(&warning), "{:?}", unforced.warnings);
    let forced = daemon.put_at("10.0.0.2", dry(true)).await.unwrap();
    assert!(!forced.warnings.contains(&warning), "{:?}", forced.warnings);
}

/// A fleet has decided, where the change was made; whoever plans one for it is told, of the other members' addresses too.
#[tokio::test]
async fn a_fleet_is_told_of_the_addresses_of_all_members_and_followed_in_what_it_decided() {
    let daemon = Daemon::at_10_0_0_2();
    let shared = |number, dry_run| Apply {
        shared: Some(number),
        keep_hash_key: true,
        dry_run,
        member_addresses: [(ip("10.0.0.3"), OwnAddress::Member(name("lb-2")))].into(),
        ..Apply::default()
    };
    let planned = daemon.put_at("10.0.0.3", shared(1, true)).await.unwrap();
    let taken: Vec<_> = planned.takeovers.iter().map(ToString::to_string).collect();
    assert_eq!(taken, ["service web has 10.0.0.3, which is the address of balancer lb-2"]);
    let planned = daemon.put_at("10.0.0.2", shared(1, true)).await.unwrap();
    assert_eq!(planned.takeovers.len(), 1);
    let followed = daemon.put_at("10.0.0.2", shared(1, false)).await.unwrap();
    assert_eq!((followed.generation, followed.takeovers), (1, vec![]));
}
