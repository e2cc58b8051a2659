use tonic::Code::{self, AlreadyExists, FailedPrecondition, InvalidArgument, NotFound};

use super::*;

const REFUSALS: &[Refusal] = &[
    // Nothing, or nothing that names it.
    ("CreateRegion", "", InvalidArgument, "region: must be set", "region"),
    ("UpdateHealthCheck", "", InvalidArgument, "health_check: must be set", "health_check"),
    ("CreatePool", "pool {}", InvalidArgument, "pool.name: must be set", "pool.name"),
    ("GetService", "", InvalidArgument, "name: must be set", "name"),
    ("DeleteRegion", "", InvalidArgument, "name: must be set", "name"),
    (
        "CreateBackend",
        r#"backend { address: "10.0.0.9" }"#,
        InvalidArgument,
        "backend.pool: must be set",
        "backend.pool",
    ),
    (
        "UpdateBackend",
        r#"backend { pool: "web" }"#,
        InvalidArgument,
        "backend.address: must be set",
        "backend.address",
    ),
    (
        "GetBackend",
        r#"pool: "web" address: "web""#,
        InvalidArgument,
        "address: \"web\" is not an IPv4 or IPv6 address",
        "address",
    ),
    // What is not there.
    ("GetRegion", r#"name: "mars""#, NotFound, "region \"mars\" does not exist", ""),
    ("GetPool", r#"name: "A B""#, NotFound, "pool \"A B\" does not exist", ""),
    (
        "UpdateHealthCheck",
        r#"health_check { name: "none" rise: 3 }"#,
        NotFound,
        "health check \"none\" does not exist",
        "",
    ),
    (
        "UpdateService",
        r#"service { etag: "0123456789abcdef" name: "none" } allow_missing: true"#,
        NotFound,
        "service \"none\" does not exist",
        "",
    ),
    ("DeletePool", r#"name: "none""#, NotFound, "pool \"none\" does not exist", ""),
    (
        "CreateBackend",
        r#"backend { pool: "none" address: "10.0.0.9" region: "eu" }"#,
        NotFound,
        "pool \"none\" does not exist",
        "",
    ),
    ("ListBackends", r#"pool: "none""#, NotFound, "pool \"none\" does not exist", ""),
    (
        "DeleteBackend",
        r#"pool: "spare" address: "10.0.0.1""#,
        NotFound,
        "pool \"spare\": backend 10.0.0.1 does not exist",
        "",
    ),
    // What is there, and is another.
    (
        "CreateRegion",
        r#"region { name: "us" overflow_to: "void" }"#,
        AlreadyExists,
        "region \"us\" already exists and differs from the one that was sent",
        "",
    ),
    (
        "CreateBackend",
        r#"backend { pool: "web" address: "10.0.0.1" region: "eu" weight: 2 } validate_only: true"#,
        AlreadyExists,
        "pool \"web\": backend 10.0.0.1 already exists and differs from the one that was sent",
        "",
    ),
    // Fields that are wrong, in the object that was sent.
    (
        "CreateRegion",
        r#"region { name: "A" }"#,
        InvalidArgument,
        "region \"A\": name: may hold only a-z, 0-9 and '-', and must begin and end with a letter or digit",
        "region.name",
    ),
    (
        "UpdateService",
        r#"service { name: "web" port: 70000 }"#,
        InvalidArgument,
        "service \"web\": port: 70000 is not a port; give 1 to 65535",
        "service.port",
    ),
    (
        "CreateHealthCheck",
        r#"health_check { name: "odd" port: 80 http { path: "x" } }"#,
        InvalidArgument,
        "health check \"odd\": http.path: \"x\" must begin with '/'",
        "health_check.http.path",
    ),
    (
        "UpdateBackend",
        r#"backend { pool: "web" address: "10.0.0.1" mtu: 68 } validate_only: true"#,
        InvalidArgument,
        "backend \"10.0.0.1\": mtu: 68 is not within 1280 to 65535",
        "backend.mtu",
    ),
    (
        "UpdatePool",
        r#"pool { name: "web" backends { address: "10.0.0.1" region: "mars" } }"#,
        InvalidArgument,
        "pool \"web\": backends[0] \"10.0.0.1\": region: \"mars\" is not among the regions",
        "pool.backends[0].region",
    ),
    // What is named and unset is unset.
    (
        "UpdateService",
        r#"service { name: "web" } update_mask { paths: "pool" }"#,
        InvalidArgument,
        "service \"web\": pool: must be set",
        "service.pool",
    ),
    (
        "UpdateHealthCheck",
        r#"health_check { name: "http" } update_mask { paths: "http" }"#,
        InvalidArgument,
        "health check \"http\": kind: must be set; give tcp, http, grpc, udp or agent",
        "health_check.kind",
    ),
    // What goes wrong elsewhere.
    (
        "UpdateRegion",
        r#"region { name: "us" overflow_to: "eu" }"#,
        InvalidArgument,
        "regions[0] \"eu\": overflow_to: forms a loop: eu -> us -> eu",
        "regions[0].overflow_to",
    ),
    (
        "CreateBackend",
        r#"backend { pool: "spare" address: "10.0.0.1" region: "us" }"#,
        InvalidArgument,
        "pools[1] \"web\": backends[0] \"10.0.0.1\": region: is \"eu\" here but \"us\" in pool \"spare\"",
        "pools[1].backends[0].region",
    ),
    (
        "UpdateBackend",
        r#"backend { pool: "web" address: "2001:db8::2" region: "eu" }"#,
        InvalidArgument,
        "pools[1] \"web\": groups[0] \"us\": region: the pool has no backend in \"us\"",
        "pools[1].groups[0].region",
    ),
    // Masks.
    (
        "UpdateRegion",
        r#"region { name: "us" } update_mask { paths: "overflow" }"#,
        InvalidArgument,
        "update_mask: \"overflow\": \"overflow\" is not a field of Region, which has name, overflow_to",
        "update_mask",
    ),
    (
        "UpdateHealthCheck",
        r#"health_check { name: "http" } update_mask { paths: "rise" paths: "interval.second" }"#,
        InvalidArgument,
        "update_mask: \"interval.second\": \"second\" is not a field of Duration, which has seconds, nanos",
        "update_mask",
    ),
    (
        "UpdatePool",
        r#"pool { name: "web" } update_mask { paths: "backends.weight" }"#,
        InvalidArgument,
        "update_mask: \"backends.weight\": backends is a list, which can only be replaced as a whole",
        "update_mask",
    ),
    (
        "UpdatePool",
        r#"pool { name: "web" } update_mask { paths: "slots.high" }"#,
        InvalidArgument,
        "update_mask: \"slots.high\": slots has no fields",
        "update_mask",
    ),
    (
        "UpdatePool",
        r#"pool { name: "web" } update_mask { paths: "*" paths: "slots" }"#,
        InvalidArgument,
        "update_mask: \"*\" means all fields, so it must be the only path",
        "update_mask",
    ),
    (
        "UpdatePool",
        r#"pool { name: "web" } update_mask { paths: "settle_time." }"#,
        InvalidArgument,
        "update_mask: \"settle_time.\": \"\" is not a field of Duration, which has seconds, nanos",
        "update_mask",
    ),
    // What is in use.
    (
        "DeleteRegion",
        r#"name: "us""#,
        FailedPrecondition,
        "region \"us\" is in use by pool \"web\" (has a backend there), pool \"web\" (has settings for it), \
         region \"eu\" (overflows to it)",
        "",
    ),
    (
        "DeleteRegion",
        r#"name: "eu" allow_missing: true"#,
        FailedPrecondition,
        "region \"eu\" is in use by pool \"web\" (has a backend there)",
        "",
    ),
    (
        "DeleteHealthCheck",
        r#"name: "http""#,
        FailedPrecondition,
        "health check \"http\" is in use by pool \"web\"",
        "",
    ),
    (
        "DeletePool",
        r#"name: "web" validate_only: true"#,
        FailedPrecondition,
        "pool \"web\" is in use by service \"web\"",
        "",
    ),
    (
        "DeleteBackend",
        r#"pool: "web" address: "2001:db8::2""#,
        FailedPrecondition,
        "pool \"web\": backend 2001:db8::2 is in use by \
         pool \"web\" (has a capacity or scaler for region \"us\", and no other backend there)",
        "",
    ),
];

#[tokio::test]
async fn every_mistake_has_its_code_and_its_field_and_changes_nothing() {
    let (daemon, mut caller) = scene().await;
    let before = daemon.client().await.export(v1::ExportRequest {}).await.unwrap().into_inner();
    for refusal in REFUSALS {
        caller.refused(refusal).await;
    }
    let after = daemon.client().await.export(v1::ExportRequest {}).await.unwrap().into_inner();
    assert_eq!(before, after);
}

/// Method, request, and what programs read of the refusal: the reason and the metadata.
type Reason = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const REASONS: &[Reason] = &[
    ("GetRegion", "", "INVALID_FIELD", &[]),
    ("CreateRegion", r#"region { name: "A" }"#, "INVALID_CONFIGURATION", &[]),
    (
        "GetHealthCheck",
        r#"name: "none""#,
        "OBJECT_NOT_FOUND",
        &[("kind", "HEALTH_CHECK"), ("name", "none"), ("pool", "")],
    ),
    (
        "GetBackend",
        r#"pool: "web" address: "10.0.0.9""#,
        "OBJECT_NOT_FOUND",
        &[("kind", "BACKEND"), ("name", "10.0.0.9"), ("pool", "web")],
    ),
    (
        "CreateRegion",
        r#"region { name: "us" overflow_to: "void" }"#,
        "OBJECT_EXISTS",
        &[("kind", "REGION"), ("name", "us"), ("pool", "")],
    ),
    (
        "DeletePool",
        r#"name: "web""#,
        "OBJECT_IN_USE",
        &[("kind", "POOL"), ("name", "web"), ("pool", "")],
    ),
    (
        "UpdateBackend",
        r#"backend { pool: "web" address: "10.0.0.1" weight: 2 etag: "0" }"#,
        "ETAG_CONFLICT",
        &[("etag", "2c32ebcb211159fd"), ("kind", "BACKEND"), ("name", "10.0.0.1"), ("pool", "web")],
    ),
];

#[tokio::test]
async fn programs_read_why_a_call_was_refused() {
    let (daemon, mut caller) = scene().await;
    for (method, request, reason, metadata) in REASONS {
        let status = caller.call(method, request).await.unwrap_err();
        let metadata = metadata.iter().map(|(key, value)| ((*key).into(), (*value).into()));
        assert_eq!(
            error_info(&status),
            ((*reason).into(), metadata.collect()),
            "{method} {request}"
        );
    }
    let mut client = daemon.client().await;
    let conflict = v1::ApplyRequest { expected_generation: Some(7), ..apply(text_fixture()) };
    let (reason, metadata) = error_info(&client.apply(conflict).await.unwrap_err());
    let numbers = [("current", "1"), ("expected", "7")].map(|(key, it)| (key.into(), it.into()));
    assert_eq!((&*reason, metadata), ("GENERATION_CONFLICT", numbers.into()));
    let rollback = v1::RollbackRequest { generation: 9, ..Default::default() };
    let (reason, metadata) = error_info(&client.rollback(rollback).await.unwrap_err());
    assert_eq!((&*reason, &*metadata["generation"]), ("GENERATION_NOT_FOUND", "9"));
    let unreadable = client.stats(v1::StatsRequest {}).await.unwrap_err();
    assert_eq!(error_info(&unreadable).0, "MAPS_UNREADABLE");
    daemon.packets.content().full = true;
    let full = caller.call("CreatePool", r#"pool { name: "more" slots: 31 }"#).await.unwrap_err();
    assert_eq!(error_info(&full).0, "MAPS_FULL");
    daemon.packets.content().full = false;
    daemon.packets.content().failures = 1;
    let behind = caller.call("CreatePool", r#"pool { name: "more" slots: 31 }"#).await.unwrap_err();
    let (reason, metadata) = error_info(&behind);
    assert_eq!((&*reason, &*metadata["generation"]), ("PACKET_PATH_BEHIND", "2"));
}

#[tokio::test]
async fn of_many_users_some_are_named() {
    let (daemon, mut caller) = scene().await;
    for port in 1..=7 {
        let service = format!(
            r#"service {{ name: "s{port}" address: "192.0.2.7" port: {port} protocol: PROTOCOL_TCP pool: "spare" }}"#
        );
        caller.call("CreateService", &service).await.unwrap();
    }
    let status = caller.call("DeletePool", r#"name: "spare""#).await.unwrap_err();
    assert_eq!(
        status.message(),
        "pool \"spare\" is in use by service \"s1\", service \"s2\", \
         service \"s3\", service \"s4\", service \"s5\", and 2 more"
    );
    drop(daemon);
}

/// What the packet path says comes through as it does for Apply.
#[tokio::test]
async fn refusals_of_the_packet_path_are_those_of_apply() {
    let (daemon, mut caller) = scene().await;
    let request = r#"pool { name: "more" slots: 31 }"#;
    daemon.packets.content().full = true;
    let status = caller.call("CreatePool", request).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let no_room = "the packet path has no room for the configuration: groups: ";
    assert!(status.message().starts_with(no_room));
    daemon.packets.content().full = false;
    daemon.packets.content().failures = 1;
    let status = caller.call("CreatePool", request).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    let message = "generation 2 is in force, but not yet in the packet path";
    assert!(status.message().starts_with(message), "{}", status.message());
    // It is in force: the same call again is the same.
    let again = caller.call("CreatePool", request).await.unwrap();
    assert_eq!(of_result(&again, "generation").as_u64(), Some(2));
}
