use spillway_proto::v1::probe_vips_response::Event;
use tonic::Code;

use super::*;

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
            "packet_size: 1 bytes are not tried; give 1280 to 9000",
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
