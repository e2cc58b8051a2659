//! Any document, and any text.

use std::num::NonZeroU32;

use lb_base::bytes::Bytes;
use lb_model::{
    AdminState, Affinity, EncapsulationKind, Fragments, HostProbe, Isolation, NamedValue, Protocol,
    UdpMode, Unserved, Via, WhenFull,
};
use proptest::{collection::vec, option, prelude::*, sample::select};

use super::{whole::FILE, *};

fn number() -> impl Strategy<Value = Option<NonZeroU32>> {
    option::of((1u32..).prop_map(|n| NonZeroU32::new(n).unwrap()))
}

fn text() -> impl Strategy<Value = Option<String>> {
    option::of(".{1,8}")
}

fn time() -> impl Strategy<Value = Option<Duration>> {
    option::of((0u64..4_000_000_000_000).prop_map(Duration::from_nanos))
}

fn bytes() -> impl Strategy<Value = Option<Bytes>> {
    option::of(
        prop_oneof![vec(any::<u8>(), 1..8), "(hex:)?.{1,8}".prop_map(String::into_bytes),]
            .prop_map(Bytes),
    )
}

fn kind() -> impl Strategy<Value = CheckKind> {
    prop_oneof![
        Just(CheckKind::Tcp),
        (text(), text(), text(), number(), number(), text(), text()).prop_map(
            |(method, path, host, status_min, status_max, body_contains, agent_header)| {
                CheckKind::Http(HttpCheck {
                    method,
                    path,
                    host,
                    status_min,
                    status_max,
                    body_contains,
                    agent_header,
                })
            },
        ),
        (text(), text())
            .prop_map(|(service, authority)| { CheckKind::Grpc(GrpcCheck { service, authority }) }),
        (bytes(), bytes(), bytes()).prop_map(|(request, answer_prefix, answer_contains)| {
            CheckKind::Udp(UdpCheck { request, answer_prefix, answer_contains })
        }),
        bytes().prop_map(|send| CheckKind::Agent(AgentCheck { send })),
    ]
}

fn tls() -> impl Strategy<Value = CheckTls> {
    (text(), any::<Option<bool>>(), text()).prop_map(|(server_name, verify, ca_file)| CheckTls {
        server_name,
        verify,
        ca_file,
    })
}

prop_compose! {
    fn check()(
        name in ".{0,8}", port in any::<u32>(), interval in time(), fast_interval in time(),
        timeout in time(), rise in number(), fall in number(),
        jitter_percent in any::<Option<u32>>(), kind in kind(), tls in option::of(tls()),
        via in option::of(select(Via::ALL)),
        (host_probe, host_probe_port) in (option::of(select(HostProbe::ALL)), number()),
    ) -> HealthCheck {
        HealthCheck {
            name, kind: Some(kind), tls, via, port, interval, fast_interval, timeout, rise, fall, jitter_percent,
            host_probe, host_probe_port,
        }
    }
}

prop_compose! {
    fn backend()(
        address in ".{0,8}", region in ".{0,8}", weight in any::<Option<u32>>(), mtu in number(),
        admin_state in option::of(select(AdminState::ALL)),
        max_connection_rate in float(),
    ) -> Backend {
        Backend { address, region, weight, admin_state, mtu, max_connection_rate }
    }
}

prop_compose! {
    fn service()(
        name in ".{0,8}", address in ".{0,8}", port in number(), pool in ".{0,8}",
        ports in vec(ports(), 0..3), any_port in any::<bool>(),
        protocol in select(Protocol::ALL),
        affinity in option::of(select(Affinity::ALL)),
        fragments in option::of(select(Fragments::ALL)),
        when_full in option::of(select(WhenFull::ALL)),
        udp in option::of(select(UdpMode::ALL)),
        idle_timeout in time(),
    ) -> Service {
        Service {
            name, address, port, ports, any_port, protocol: Some(protocol), pool, affinity, when_full, udp,
            idle_timeout, fragments,
        }
    }
}

prop_compose! {
    /// A last port of 0 is none.
    fn ports()(first in any::<u32>(), last in 1u32.., one in any::<bool>()) -> PortRange {
        PortRange { first, last: if one { first } else { last } }
    }
}

/// Whatever a message can hold and a comparison can see.
fn float() -> impl Strategy<Value = Option<f64>> {
    use proptest::num::f64::{INFINITE, NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    option::of(POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO | INFINITE)
}

prop_compose! {
    fn pool()(
        name in ".{0,8}", health_checks in vec(".{0,8}", 0..3), slots in option::of(any::<u32>()),
        isolation in option::of(select(Isolation::ALL)),
        preferred_regions in vec(".{0,8}", 0..3), panic_threshold_percent in number(),
        settle_time in time(), slow_start in time(),
        [hold_down, max_hold_down] in [time(), time()],
        encapsulation in option::of(select(EncapsulationKind::ALL)),
        gue_port in number(),
        groups in vec((".{0,8}", float(), float(), any::<bool>()), 0..3),
        backends in vec(backend(), 0..3),
    ) -> Pool {
        let group = |(region, capacity, scaler, drained)| Group {
            region, capacity, scaler, drained,
        };
        Pool {
            name, health_checks, slots, isolation, preferred_regions, panic_threshold_percent,
            settle_time, slow_start, hold_down, max_hold_down, encapsulation, gue_port,
            groups: groups.into_iter().map(group).collect(),
            backends,
        }
    }
}

prop_compose! {
    fn document()(
        hash_key in text(),
        regions in vec((".{0,8}", vec(".{0,8}", 0..3)), 0..3),
        health_checks in vec(check(), 0..3),
        pools in vec(pool(), 0..3),
        services in vec(service(), 0..3),
        balancers in number(),
        vips in vec((".{0,8}", option::of(select(Unserved::ALL))), 0..3),
    ) -> Document {
        let region = |(name, overflow_to)| Region { name, overflow_to };
        Document {
            hash_key,
            balancers,
            regions: regions.into_iter().map(region).collect(),
            health_checks,
            pools,
            services,
            vips: vips.into_iter().map(|(prefix, unserved)| Vip { prefix, unserved }).collect(),
        }
    }
}

proptest! {
    #[test]
    fn every_document_survives_its_file_and_its_message(document in document()) {
        prop_assert_eq!(&Document::parse(&document.to_toml().unwrap()).unwrap(), &document);
        let message = v1::Configuration::from(document.clone());
        prop_assert_eq!(Document::try_from(message).unwrap(), document);
    }

    #[test]
    fn no_text_panics(text in any::<String>(), cut in any::<prop::sample::Index>()) {
        let _ = Document::parse(&text);
        let _ = Document::parse(&FILE[..cut.index(FILE.len())]);
    }
}
