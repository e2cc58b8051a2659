use tonic::Code;

use super::*;

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
        (|r| r.protocol = 17, "protocol", "17 is not a protocol of this version"),
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
