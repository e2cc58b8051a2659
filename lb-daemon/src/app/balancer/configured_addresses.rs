//! Conditions about addresses that the settings name and this host does not have.

use std::{collections::BTreeSet, net::IpAddr};

use lb_base::{
    conditions::{ConditionReason, Conditions, Subject},
    error_chain,
};
use lb_model::next_hop::GivenSources;
use lb_net::{HostAddresses, NetError};

/// An address of the settings.
struct Named {
    address: IpAddr,
    subject: Subject,
    /// What does not work without it.
    effect: &'static str,
}

/// Follows the addresses of this host for as long as the daemon runs.
pub(super) async fn follow(sources: GivenSources, fleet: Option<IpAddr>, conditions: Conditions) {
    let named = named(sources, fleet);
    if named.is_empty() {
        return;
    }
    if let Err(error) = check_each(&named, &conditions).await {
        let error = error_chain::message(&error);
        tracing::warn!(error, "addresses of the settings are not followed: {error}");
    }
}

fn named(sources: GivenSources, fleet: Option<IpAddr>) -> Vec<Named> {
    let given = [sources.own(true), sources.own(false)].into_iter().flatten();
    let sources = given.map(|address| Named {
        address,
        subject: subject(format!("source {address}")),
        effect: "answers to checks through tunnels, and ICMP errors about tunnels, do not come back",
    });
    let fleet = fleet.map(|address| Named {
        address,
        subject: subject(format!("address in [fleet] {address}")),
        effect: "no other balancer of the fleet reaches this one",
    });
    let followed = |it: &Named| !it.address.is_loopback() && !it.address.is_unspecified();
    sources.chain(fleet).filter(followed).collect()
}

fn subject(text: String) -> Subject {
    Subject::named(ConditionReason::HostAddress, text)
}

async fn check_each(named: &[Named], conditions: &Conditions) -> Result<(), NetError> {
    let mut addresses = HostAddresses::follow()?;
    loop {
        check(named, &addresses.next().await?, conditions);
    }
}

fn check(named: &[Named], own: &BTreeSet<IpAddr>, conditions: &Conditions) {
    for Named { address, subject, effect } in named {
        match own.contains(address) {
            true => conditions.end(subject),
            false => conditions.begin(
                subject,
                &format!(
                    "not an address of this host: {effect}; give it to the host, or change the setting and restart"
                ),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_that_the_host_loses_is_a_condition_until_it_is_back() {
        let conditions = Conditions::default();
        let sources = GivenSources { v4: Some([10, 0, 0, 2].into()), ..GivenSources::default() };
        let named = named(sources, Some(ip("fd00::2")));
        let subjects = |own: &[&str]| {
            check(&named, &own.iter().map(|it| ip(it)).collect(), &conditions);
            conditions.now().into_iter().map(|it| it.subject).collect::<Vec<_>>()
        };
        assert_eq!(subjects(&["10.0.0.2", "fd00::2"]), [""; 0]);
        assert_eq!(subjects(&["fd00::2"]), ["source 10.0.0.2"]);
        assert_eq!(subjects(&["10.0.0.3"]), ["address in [fleet] fd00::2", "source 10.0.0.2"]);
        assert_eq!(subjects(&["10.0.0.2", "fd00::2", "10.0.0.3"]), [""; 0]);
    }

    #[test]
    fn addresses_of_every_host_are_not_followed() {
        assert!(named(GivenSources::default(), None).is_empty());
        assert!(named(GivenSources::default(), Some(ip("127.0.0.1"))).is_empty());
        assert!(named(GivenSources::default(), Some(ip("::"))).is_empty());
    }
}
