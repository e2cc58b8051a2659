use super::*;
use crate::{Affinity, Fragments, PortList, Protocol, WhenFull};

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn ports(text: &str) -> Ports {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        (first.parse().unwrap(), last.parse().unwrap())
    };
    match text {
        "any" => Ports::Any,
        listed => Ports::Listed(PortList::new(listed.split(',').map(range)).unwrap()),
    }
}

/// TCP services: name, address, ports.
fn services(services: &[(&str, &str, &str)]) -> Configuration {
    let service = |(at, address, of): &(&str, &str, &str)| {
        let service = Service {
            address: address.parse().unwrap(),
            ports: ports(of),
            protocol: Protocol::Tcp,
            pool: name("web"),
            affinity: Affinity::Connection,
            when_full: WhenFull::Nearest,
            idle_timeout: None,
            fragments: Fragments::Dropped,
        };
        (name(at), service)
    };
    Configuration { services: services.iter().map(service).collect(), ..Configuration::EMPTY }
}

fn own() -> OwnAddresses {
    let member = OwnAddress::Member(name("lb-2"));
    [
        ("10.0.0.2".parse().unwrap(), OwnAddress::Interface("eth0".into())),
        ("10.0.0.3".parse().unwrap(), member),
        ("2001:db8::2".parse().unwrap(), OwnAddress::Setting("`listen`")),
    ]
    .into()
}

/// The sentences about a change.
fn sentences(old: &[(&str, &str, &str)], new: &[(&str, &str, &str)]) -> Vec<String> {
    let found = takeovers(&services(old), &services(new), &own());
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn a_new_service_at_an_address_of_a_balancer_is_found() {
    let vip = ("web", "203.0.113.1", "80");
    let new = [
        vip,
        ("a", "10.0.0.2", "22"),
        ("b", "10.0.0.3", "any"),
        ("c", "2001:db8::2", "80"),
        ("d", "10.0.0.4", "80"),
    ];
    let expected = [
        "service a has 10.0.0.2, which is an address of eth0 of this balancer",
        "service b has 10.0.0.3, which is the address of balancer lb-2",
        "service c has 2001:db8::2, which is the address in `listen` of this balancer",
    ];
    assert_eq!(sentences(&[vip], &new), expected);
}

#[test]
fn what_stays_is_not_found_again_and_what_grows_is() {
    let old = [("a", "10.0.0.2", "80,443")];
    for (new, found) in [
        (("a", "10.0.0.2", "80,443"), false),
        (("a", "10.0.0.2", "443"), false),
        // The packets are the same ones.
        (("renamed", "10.0.0.2", "80"), false),
        (("a", "203.0.113.1", "80,443"), false),
        (("a", "10.0.0.2", "22,80,443"), true),
        (("a", "10.0.0.2", "80-443"), true),
        (("a", "10.0.0.2", "any"), true),
        (("a", "10.0.0.3", "80"), true),
    ] {
        assert_eq!(!sentences(&old, &[new]).is_empty(), found, "{new:?}");
    }
    assert_eq!(sentences(&[("a", "10.0.0.2", "any")], &[("a", "10.0.0.2", "22")]), [""; 0]);
}

#[test]
fn another_protocol_takes_other_packets() {
    let old = services(&[("a", "10.0.0.2", "53")]);
    let mut new = old.clone();
    for service in new.services.values_mut() {
        service.protocol = Protocol::Udp;
    }
    assert_eq!(takeovers(&old, &new, &own()).len(), 1);
}
