//! Conditions about addresses that the settings name and this host takes no packets for.

use std::{collections::BTreeSet, net::IpAddr};

use lb_base::{
    conditions::{ConditionReason, Conditions, Subject},
    error_chain,
};
use lb_model::next_hop::GivenSources;
use lb_net::{LocalAddresses, NetError};

/// Addresses of a setting.
struct Named {
    addresses: Vec<IpAddr>,
    subject: Subject,
    /// What does not work without them, and what to do.
    consequence: String,
}

/// Follows what this host has of them for as long as the daemon runs.
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
    let sources_of_their_own = given.map(|address| {
        let effect =
            "answers to checks through tunnels, and ICMP errors about tunnels, do not come back";
        address_of_setting("source", address, effect)
    });
    let fleet = fleet.map(|address| {
        address_of_setting(
            "address in [fleet]",
            address,
            "no other balancer of the fleet reaches this one",
        )
    });
    let prefix = sources.prefix_v4.map(|prefix| Named {
        addresses: vec![prefix.first().into(), prefix.last().into()],
        subject: subject(format!("local route to {prefix}")),
        consequence: format!(
            "the tunnel-source-prefix is not local to this host: ICMP errors about tunnels are lost; `ip route add local \
             {prefix} dev lo`"
        ),
    });
    sources_of_their_own.chain(fleet).chain(prefix).collect()
}

fn address_of_setting(setting: &str, address: IpAddr, effect: &str) -> Named {
    Named {
        addresses: vec![address],
        subject: subject(format!("{setting} {address}")),
        consequence: format!(
            "not an address of this host: {effect}; give it to the host, or change the setting and restart"
        ),
    }
}

fn subject(text: String) -> Subject {
    Subject::named(ConditionReason::HostAddress, text)
}

async fn check_each(named: &[Named], conditions: &Conditions) -> Result<(), NetError> {
    let all = named.iter().flat_map(|it| it.addresses.iter().copied());
    let mut addresses = LocalAddresses::follow(all.collect())?;
    loop {
        check(named, &addresses.next().await?, conditions);
    }
}

fn check(named: &[Named], local: &BTreeSet<IpAddr>, conditions: &Conditions) {
    for Named { addresses, subject, consequence } in named {
        match addresses.iter().all(|it| local.contains(it)) {
            true => conditions.end(subject),
            false => conditions.begin(subject, consequence),
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
    fn a_prefix_is_local_with_both_ends() {
        let conditions = Conditions::default();
        let prefix_v4 = lb_model::Ipv4Prefix::new([10, 64, 0, 0].into(), 24);
        let named = named(GivenSources { prefix_v4, ..GivenSources::default() }, None);
        for (local, expected) in [
            (&["10.64.0.0"][..], &["local route to 10.64.0.0/24"][..]),
            (&["10.64.0.0", "10.64.0.255"], &[]),
            (&[], &["local route to 10.64.0.0/24"]),
        ] {
            check(&named, &local.iter().map(|it| ip(it)).collect(), &conditions);
            let subjects: Vec<_> = conditions.now().into_iter().map(|it| it.subject).collect();
            assert_eq!(subjects, expected, "{local:?}");
        }
    }
}
