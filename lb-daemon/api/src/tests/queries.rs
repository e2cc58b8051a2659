//! Queries: what is explained, probed, and said of regions and memory.

use std::time::Duration;

use spillway_proto::v1::probe_vips_response::Event;
use tokio::time::timeout;
use tonic::Code;

use super::*;
use lb_common::abi::counter::GroupCounter;

#[tokio::test]
async fn a_packet_that_cannot_be_is_named_by_its_field() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let good = v1::ExplainRequest {
        client: "198.51.100.7:40000".into(),
        vip: "192.0.2.1:80".into(),
        protocol: v1::Protocol::Tcp.into(),
        open: false,
    };
    type Change = fn(&mut v1::ExplainRequest);
    let mistakes: [(Change, &str, &str); 8] = [
        (|r| r.client.clear(), "client", "must be set"),
        (|r| r.vip.clear(), "vip", "must be set"),
        (
            |r| r.client = "198.51.100.7".into(),
            "client",
            "\"198.51.100.7\" is not an address with a port; write 192.0.2.1:80 or [2001:db8::1]:80",
        ),
        (
            |r| r.vip = "[fe80::1%2]:80".into(),
            "vip",
            "\"[fe80::1%2]:80\" is not an address with a port; write 192.0.2.1:80 or [2001:db8::1]:80",
        ),
        (|r| r.vip = "192.0.2.1:0".into(), "vip", "port 0 is not possible; give 1 to 65535"),
        (
            |r| r.vip = "[2001:db8::1]:80".into(),
            "vip",
            "[2001:db8::1]:80 is of another IP version than 198.51.100.7:40000",
        ),
        (|r| r.protocol = 17, "protocol", "17 is not a value that this version knows"),
        (
            |r| (r.protocol, r.open) = (v1::Protocol::Udp.into(), true),
            "open",
            "is for TCP only; UDP has no connections",
        ),
    ];
    for (change, field, cause) in mistakes {
        let mut request = good.clone();
        change(&mut request);
        let status = client.explain(request.clone()).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{request:?}");
        assert_eq!(status.message(), format!("{field}: {cause}"));
        assert_eq!(status.metadata().get(lb_config::FIELD_TRAILER).unwrap(), field);
    }
    // Nothing is pinned where this daemon says that its maps are.
    let status = client.explain(good).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    let message = status.message();
    assert!(message.starts_with("the maps: ") && message.contains("/bpf/"), "{message}");
}

#[tokio::test]
async fn tables_that_cannot_be_read_are_said_to_be_unavailable() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    // Nothing is pinned where this daemon says that its maps are.
    for pool in ["", "web"] {
        let request = v1::TableRequest { pool: pool.into() };
        let status = client.table(request).await.unwrap_err();
        assert_eq!(status.code(), Code::Unavailable);
        let message = status.message();
        assert!(message.starts_with("the maps: ") && message.contains("/bpf/"), "{message}");
    }
}

fn request(packet_size: u32, pool: &str, backend: &str) -> v1::ProbeVipsRequest {
    v1::ProbeVipsRequest { packet_size, pool: pool.into(), backend: backend.into() }
}

#[tokio::test]
async fn a_probe_that_cannot_be_is_refused_with_its_field() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(apply(configuration())).await.unwrap();
    for (wrong, field, message) in [
        (
            request(1, "", ""),
            "packet_size",
            "packet_size: 1 bytes are not possible; give 1280 to 9000",
        ),
        (request(0, "", "web"), "backend", "backend: \"web\" is not an IPv4 or IPv6 address"),
    ] {
        let status = client.probe_vips(wrong).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, message));
        assert_eq!(status.metadata().get(lb_config::FIELD_TRAILER).unwrap(), field);
    }
    for (wrong, message) in [
        (request(0, "x", ""), "pool \"x\" does not exist"),
        (request(0, "web", "10.0.0.9"), "pool \"web\" has no backend 10.0.0.9"),
        (request(0, "", "10.0.0.9"), "backend 10.0.0.9: no pool has it"),
    ] {
        let status = client.probe_vips(wrong).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::NotFound, message));
    }
}

/// Nothing is sent where there is no way, and who is done lets the next one begin.
#[tokio::test]
async fn without_ways_a_probe_is_its_summary() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let mut none = configuration();
    none.services.clear();
    client.apply(apply(none)).await.unwrap();
    for (size, expected) in [(0, 1500), (9000, 9000)] {
        let mut told = client.probe_vips(request(size, "", "")).await.unwrap().into_inner();
        let summary = v1::VipProbeSummary { ways: 0, left_out: 0, packet_size: expected };
        let event = told.message().await.unwrap().unwrap().event;
        assert_eq!(event, Some(Event::Summary(summary)));
        assert_eq!(told.message().await.unwrap(), None);
    }
}

/// Two regions: two backends of 5/s each, of which one is up, and one without a limit.
fn two_regions() -> v1::Configuration {
    let mut configuration = configuration();
    configuration.balancers = 2;
    configuration.hash_key = "000102030405060708090a0b0c0d0e0f".into();
    configuration.regions[0].overflow_to = vec!["us".into()];
    configuration.regions.push(v1::Region { name: "us".into(), ..Default::default() });
    let pool = &mut configuration.pools[0];
    for backend in &mut pool.backends {
        backend.max_connection_rate_per_second = Some(5.0);
    }
    let far = v1::Backend { address: "10.0.1.1".into(), region: "us".into(), ..Default::default() };
    pool.backends.push(far);
    configuration
}

#[tokio::test]
async fn regions_say_what_is_asked_of_them_and_what_is_missing() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    client.apply(apply(two_regions())).await.unwrap();
    daemon.judge("10.0.0.1", true).await;

    // Seven a second more in each second, of which the half of 5/s that is this balancer's and the rest
    // spill: as if all that was counted had come between two looks.
    let asked = v1::RegionsRequest { pool: "web".into() };
    let index = {
        let plan = &daemon.packets.content().plan;
        plan.pools.values().next().unwrap().groups[0].region
    };
    let mut total = 0;
    let found = timeout(Duration::from_secs(120), async {
        loop {
            total += 700;
            let counter = GroupCounter {
                offered: total,
                admitted: total * 2 / 7,
                overflow_out: total - total * 2 / 7,
                ..GroupCounter::default()
            };
            daemon.packets.content().counted.insert(index, counter);
            let answer = client.regions(asked.clone()).await.unwrap().into_inner();
            if answer.regions[0].rates.is_some_and(|rates| rates.offered > 0.0) {
                break answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let answer = found.await.expect("rates after two looks");
    assert_eq!(answer.balancers, 2);
    let window = Duration::try_from(answer.window.unwrap()).unwrap();
    assert!(window > Duration::from_millis(500), "{window:?}");
    let [eu, us] = &answer.regions[..] else { panic!("{answer:?}") };
    assert_eq!((&*eu.pool, &*eu.region, &*us.region), ("web", "eu", "us"));
    assert_eq!((eu.configured_per_second, eu.scaler), (Some(10.0), 1.0));
    assert_eq!((eu.capacity_per_second, eu.limit_per_second), (Some(5.0), Some(2.5)));
    assert_eq!(eu.portion, 0.5);
    assert_eq!((eu.backends_up, eu.backends, eu.backend_rate_per_second), (1, 2, Some(5.0)));
    let counters = eu.counters.unwrap();
    assert_eq!((counters.offered, counters.refused), (total, 0));
    let rates = eu.rates.unwrap();
    assert!((rates.offered - rates.admitted - rates.overflow_out).abs() < 1e-6, "{rates:?}");
    assert_eq!(eu.utilisation, Some(rates.admitted / 2.5));
    // One more backend is 2.5/s more of this balancer's.
    let missing = ((rates.offered - 2.5) / 2.5).ceil();
    assert_eq!(eu.missing_backends.map(f64::from), Some(missing));

    assert_eq!((us.configured_per_second, us.capacity_per_second), (None, None));
    assert_eq!((us.limit_per_second, us.backend_rate_per_second), (None, None));
    assert_eq!((us.utilisation, us.missing_backends), (None, Some(0)));
}

#[tokio::test]
async fn a_pool_that_is_not_there_is_not_found() {
    let daemon = Daemon::start();
    let mut client = daemon.client().await;
    let none = client.regions(v1::RegionsRequest::default()).await.unwrap().into_inner();
    assert_eq!((none.regions, none.balancers), (vec![], 1));
    client.apply(apply(two_regions())).await.unwrap();
    let all = client.regions(v1::RegionsRequest::default()).await.unwrap().into_inner();
    assert_eq!(all.regions.len(), 2);
    let asked = v1::RegionsRequest { pool: "nope".into() };
    let status = client.regions(asked).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(status.message(), "pool \"nope\" does not exist");
}

/// A chunk: 4 MiB of words, and its head has a page. The fake packet path gives each table one.
const CHUNK: u64 = (4 << 20) + 4096;

fn budget(limit: u64) -> Budget {
    let made = vec![("ARRAYS".into(), 1 << 20), ("TABLES".into(), 32_768 + CHUNK)];
    Budget { made, limit: Some(limit) }
}

fn memory(needed: u64, peak: u64, limit: u64) -> v1::MapMemory {
    let bytes = |map: &str, bytes| v1::MapBytes { map: map.into(), bytes };
    let tables = needed - (1 << 20);
    v1::MapMemory {
        needed_bytes: needed,
        peak_bytes: peak,
        limit_bytes: Some(limit),
        maps: vec![bytes("ARRAYS", 1 << 20), bytes("TABLES", tables)],
    }
}

#[tokio::test]
async fn a_dry_run_shows_the_memory_and_the_limit_holds() {
    const MADE: u64 = (1 << 20) + 32_768;
    let limit = MADE + 2 * CHUNK;
    let daemon = Daemon::with(budget(limit));
    let mut client = daemon.client().await;
    let dry_run = v1::ApplyRequest { validate_only: true, ..apply(configuration()) };
    let dry = client.apply(dry_run).await.unwrap().into_inner().result.unwrap();
    assert_eq!(dry.memory, Some(memory(MADE + CHUNK, MADE + CHUNK, limit)));
    let applied = client.apply(apply(configuration())).await.unwrap().into_inner().result.unwrap();
    assert_eq!(applied.memory, dry.memory);
    let again = client.apply(apply(configuration())).await.unwrap().into_inner().result.unwrap();
    assert_eq!((again.generation, again.memory), (1, None));

    // Another table in place of the first: both are there for a while.
    let mut other = configuration();
    other.pools[0].slots = Some(37);
    let dry_run = v1::ApplyRequest { validate_only: true, ..apply(other.clone()) };
    let dry = client.apply(dry_run).await.unwrap().into_inner().result.unwrap();
    assert_eq!(dry.memory, Some(memory(MADE + CHUNK, MADE + 2 * CHUNK, limit)));

    // Two more are beyond it for as long as the first is there.
    let mut more = other.pools[0].clone();
    (more.name, more.slots) = ("more".into(), Some(41));
    other.pools.push(more);
    for validate_only in [true, false] {
        let request = v1::ApplyRequest { validate_only, ..apply(other.clone()) };
        let status = client.apply(request).await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(
            status.message(),
            "the maps would take 13676544 bytes, more than the 9478144 of map-memory-limit; 9478144 \
             once earlier tables are gone"
        );
    }
    let status = client.status(v1::StatusRequest::default()).await.unwrap().into_inner();
    assert_eq!(status.generation, 1);
}
