use super::{following::FOLLOWING, *};

/// Method, request, and the answer without its etags; each step goes on from the one before.
pub(super) type Step = (&'static str, &'static str, &'static str);

const REGION: &[Step] = &[
    (
        "CreateRegion",
        r#"region { name: "asia" overflow_to: "eu" } validate_only: true"#,
        r#"region { name: "asia" overflow_to: "eu" }
           result { generation: 1
           changes { kind: KIND_ADDED object { kind: KIND_REGION name: "asia" } text: "region asia" } }"#,
    ),
    (
        "CreateRegion",
        r#"region { name: "asia" overflow_to: "eu" }"#,
        r#"region { name: "asia" overflow_to: "eu" }
           result { generation: 2
           changes { kind: KIND_ADDED object { kind: KIND_REGION name: "asia" } text: "region asia" } }"#,
    ),
    (
        "CreateRegion",
        r#"region { name: "asia" overflow_to: "eu" }"#,
        r#"region { name: "asia" overflow_to: "eu" }
           result { generation: 2 }"#,
    ),
    ("GetRegion", r#"name: "asia""#, r#"name: "asia" overflow_to: "eu""#),
    (
        "UpdateRegion",
        r#"region { name: "asia" overflow_to: "us" overflow_to: "eu" } update_mask { paths: "overflow_to" }"#,
        r#"region { name: "asia" overflow_to: "us" overflow_to: "eu" }
           result { generation: 3
           changes { kind: KIND_CHANGED object { kind: KIND_REGION name: "asia" } text: "region asia"
             fields { field: "overflow_to" old: "eu" new: "us, eu" text: "overflow_to: eu -> us, eu" } } }"#,
    ),
    // Without a mask what is unset stays.
    (
        "UpdateRegion",
        r#"region { name: "asia" }"#,
        r#"region { name: "asia" overflow_to: "us" overflow_to: "eu" }
           result { generation: 3 }"#,
    ),
    (
        "UpdateRegion",
        r#"region { name: "asia" } update_mask { paths: "*" }"#,
        r#"region { name: "asia" }
           result { generation: 4
           changes { kind: KIND_CHANGED object { kind: KIND_REGION name: "asia" } text: "region asia"
             fields { field: "overflow_to" old: "us, eu" new: "none" text: "overflow_to: us, eu -> none" } } }"#,
    ),
    (
        "ListRegions",
        "",
        r#"regions { name: "asia" }
           regions { name: "eu" overflow_to: "us" }
           regions { name: "us" }
           regions { name: "void" }
           generation: 4"#,
    ),
    (
        "DeleteRegion",
        r#"name: "asia" validate_only: true"#,
        r#"result { generation: 4 changes { kind: KIND_REMOVED object { kind: KIND_REGION name: "asia" } text: "region asia" } }"#,
    ),
    (
        "DeleteRegion",
        r#"name: "asia""#,
        r#"result { generation: 5 changes { kind: KIND_REMOVED object { kind: KIND_REGION name: "asia" } text: "region asia" } }"#,
    ),
    ("DeleteRegion", r#"name: "asia" allow_missing: true"#, "result { generation: 5 }"),
    (
        "UpdateRegion",
        r#"region { name: "asia" overflow_to: "us" } update_mask { paths: "name" } allow_missing: true"#,
        r#"region { name: "asia" overflow_to: "us" }
           result { generation: 6
           changes { kind: KIND_ADDED object { kind: KIND_REGION name: "asia" } text: "region asia" } }"#,
    ),
];

const HEALTH_CHECK: &[Step] = &[
    (
        "CreateHealthCheck",
        r#"health_check { name: "tls" port: 443 tcp {} }"#,
        r#"health_check { name: "tls" port: 443 tcp {} interval { seconds: 1 } timeout { seconds: 1 }
             fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           result { generation: 2
           changes { kind: KIND_ADDED object { kind: KIND_HEALTH_CHECK name: "tls" } text: "health check tls" } }"#,
    ),
    // Equal, with a default spelt out.
    (
        "CreateHealthCheck",
        r#"health_check { name: "tls" port: 443 tcp {} rise: 2 }"#,
        r#"health_check { name: "tls" port: 443 tcp {} interval { seconds: 1 } timeout { seconds: 1 }
             fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           result { generation: 2 }"#,
    ),
    // What is named and unset goes back to its default; 0 is a value where the field says so.
    (
        "UpdateHealthCheck",
        r#"health_check { name: "tls" jitter_percent: 0 fall: 5 timeout { nanos: 500000000 } }
           update_mask { paths: "jitter_percent" paths: "rise" paths: "timeout" }"#,
        r#"health_check { name: "tls" port: 443 tcp {} interval { seconds: 1 }
             timeout { nanos: 500000000 } fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 0 }
           result { generation: 3
           changes { kind: KIND_CHANGED object { kind: KIND_HEALTH_CHECK name: "tls" } text: "health check tls"
             fields { field: "timeout" old: "1s" new: "500ms" text: "timeout: 1s -> 500ms" }
             fields { field: "jitter_percent" old: "10" new: "0" text: "jitter_percent: 10 -> 0" } } }"#,
    ),
    // A field of a field, and one that is another of the same choice.
    (
        "UpdateHealthCheck",
        r#"health_check { name: "http" http { path: "/ready" } } update_mask { paths: "http.path" }"#,
        r#"health_check { name: "http" port: 80
             http { path: "/ready" host: "web.example" status_min: 200 status_max: 299 method: "GET" }
             interval { seconds: 1 } timeout { seconds: 1 } fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           result { generation: 4
           changes { kind: KIND_CHANGED object { kind: KIND_HEALTH_CHECK name: "http" } text: "health check http"
             fields { field: "http.path" old: "/alive" new: "/ready" text: "http.path: /alive -> /ready" } } }"#,
    ),
    (
        "UpdateHealthCheck",
        r#"health_check { name: "http" } update_mask { paths: "http.host" }"#,
        r#"health_check { name: "http" port: 80
             http { path: "/ready" status_min: 200 status_max: 299 method: "GET" }
             interval { seconds: 1 } timeout { seconds: 1 } fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           result { generation: 5
           changes { kind: KIND_CHANGED object { kind: KIND_HEALTH_CHECK name: "http" } text: "health check http"
             fields { field: "http.host" old: "web.example" new: "unset" text: "http.host: web.example -> unset" } } }"#,
    ),
    (
        "UpdateHealthCheck",
        r#"health_check { name: "http" tcp {} } update_mask { paths: "tcp" }"#,
        r#"health_check { name: "http" port: 80 tcp {}
             interval { seconds: 1 } timeout { seconds: 1 } fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           result { generation: 6
           changes { kind: KIND_CHANGED object { kind: KIND_HEALTH_CHECK name: "http" } text: "health check http"
             fields { field: "kind" old: "http" new: "tcp" text: "kind: http -> tcp" } } }"#,
    ),
    // A field of what is set in neither: nothing.
    (
        "UpdateHealthCheck",
        r#"health_check { name: "http" } update_mask { paths: "http.path" }"#,
        r#"health_check { name: "http" port: 80 tcp {}
             interval { seconds: 1 } timeout { seconds: 1 } fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           result { generation: 6 }"#,
    ),
    (
        "DeleteHealthCheck",
        r#"name: "tls""#,
        r#"result { generation: 7 changes { kind: KIND_REMOVED object { kind: KIND_HEALTH_CHECK name: "tls" } text: "health check tls" } }"#,
    ),
    (
        "ListHealthChecks",
        "",
        r#"health_checks { name: "http" port: 80 tcp {} interval { seconds: 1 }
             timeout { seconds: 1 } fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           health_checks { name: "spare" port: 81 tcp {} interval { seconds: 1 }
             timeout { seconds: 1 } fast_interval { seconds: 1 } rise: 2 fall: 3 jitter_percent: 10 }
           generation: 7"#,
    ),
];

const POOL: &[Step] = &[
    (
        "CreatePool",
        r#"pool { name: "dns" slots: 31 backends { address: "2001:DB8::0:1" region: "eu" } }"#,
        r#"pool { name: "dns" slots: 31 isolation: ISOLATION_NONE encapsulation: ENCAPSULATION_IP_IN_IP settle_time { seconds: 600 }
           hold_down { seconds: 10 } max_hold_down { seconds: 300 }
             backends { address: "2001:db8::1" region: "eu" weight: 1 admin_state: ADMIN_STATE_ACTIVE } }
           result { generation: 2 changes { kind: KIND_ADDED object { kind: KIND_POOL name: "dns" } text: "pool dns" } }"#,
    ),
    // Without a mask only what is set is taken over.
    (
        "UpdatePool",
        r#"pool { name: "dns" settle_time { seconds: 60 } }"#,
        r#"pool { name: "dns" slots: 31 isolation: ISOLATION_NONE encapsulation: ENCAPSULATION_IP_IN_IP settle_time { seconds: 60 }
           hold_down { seconds: 10 } max_hold_down { seconds: 300 }
             backends { address: "2001:db8::1" region: "eu" weight: 1 admin_state: ADMIN_STATE_ACTIVE } }
           result { generation: 3
           changes { kind: KIND_CHANGED object { kind: KIND_POOL name: "dns" } text: "pool dns"
             fields { field: "settle_time" old: "600s" new: "60s" text: "settle_time: 600s -> 60s" } } }"#,
    ),
    // A list is taken over whole.
    (
        "UpdatePool",
        r#"pool { name: "dns" backends { address: "10.0.0.9" region: "us" } }
           update_mask { paths: "backends" }"#,
        r#"pool { name: "dns" slots: 31 isolation: ISOLATION_NONE encapsulation: ENCAPSULATION_IP_IN_IP settle_time { seconds: 60 }
           hold_down { seconds: 10 } max_hold_down { seconds: 300 }
             backends { address: "10.0.0.9" region: "us" weight: 1 admin_state: ADMIN_STATE_ACTIVE } }
           result { generation: 4
           changes { kind: KIND_CHANGED object { kind: KIND_POOL name: "dns" } text: "pool dns" slots_moved: 31
             fields { field: "backends" region: "eu" old: "1" new: "0" text: "backends in eu: 1 -> 0 (1 gone)" }
             fields { field: "backends" region: "us" old: "0" new: "1" text: "backends in us: 0 -> 1 (1 new)" } }
           changes { kind: KIND_ADDED object { kind: KIND_BACKEND name: "10.0.0.9" pool: "dns" } text: "pool dns: backend 10.0.0.9" }
           changes { kind: KIND_REMOVED object { kind: KIND_BACKEND name: "2001:db8::1" pool: "dns" } text: "pool dns: backend 2001:db8::1" } }"#,
    ),
    (
        "GetPool",
        r#"name: "spare""#,
        r#"name: "spare" slots: 31 isolation: ISOLATION_NONE encapsulation: ENCAPSULATION_IP_IN_IP settle_time { seconds: 600 }
           hold_down { seconds: 10 } max_hold_down { seconds: 300 }"#,
    ),
    (
        "DeletePool",
        r#"name: "spare""#,
        r#"result { generation: 5 changes { kind: KIND_REMOVED object { kind: KIND_POOL name: "spare" } text: "pool spare" } }"#,
    ),
    (
        "DeletePool",
        r#"name: "dns""#,
        r#"result { generation: 6 changes { kind: KIND_REMOVED object { kind: KIND_POOL name: "dns" } text: "pool dns" } }"#,
    ),
    (
        "ListPools",
        "",
        r#"pools { name: "web" slots: 31 health_checks: "http"
             isolation: ISOLATION_NONE encapsulation: ENCAPSULATION_IP_IN_IP settle_time { seconds: 600 }
           hold_down { seconds: 10 } max_hold_down { seconds: 300 }
             groups { region: "us" capacity_per_second: 10 scaler: 1 }
             backends { address: "10.0.0.1" region: "eu" weight: 1 admin_state: ADMIN_STATE_ACTIVE }
             backends { address: "2001:db8::2" region: "us" weight: 3 admin_state: ADMIN_STATE_ACTIVE } }
           generation: 6"#,
    ),
];

const BACKEND: &[Step] = &[
    (
        "CreateBackend",
        r#"backend { pool: "spare" address: "2001:DB8:0::2" region: "us" }"#,
        r#"backend { pool: "spare" address: "2001:db8::2" region: "us" weight: 1 admin_state: ADMIN_STATE_ACTIVE }
           result { generation: 2
           changes { kind: KIND_CHANGED object { kind: KIND_POOL name: "spare" } text: "pool spare"
             fields { field: "backends" region: "us" old: "0" new: "1" text: "backends in us: 0 -> 1 (1 new)" } }
           changes { kind: KIND_ADDED object { kind: KIND_BACKEND name: "2001:db8::2" pool: "spare" } text: "pool spare: backend 2001:db8::2" } }"#,
    ),
    (
        "UpdateBackend",
        r#"backend { pool: "spare" address: "2001:db8:0:0:0:0:0:2" admin_state: ADMIN_STATE_DRAIN }
           update_mask { paths: "admin_state" }"#,
        r#"backend { pool: "spare" address: "2001:db8::2" region: "us" weight: 1 admin_state: ADMIN_STATE_DRAIN }
           result { generation: 3
           changes { kind: KIND_CHANGED object { kind: KIND_BACKEND name: "2001:db8::2" pool: "spare" } text: "pool spare: backend 2001:db8::2"
             fields { field: "admin_state" old: "active" new: "drain" text: "admin_state: active -> drain" } } }"#,
    ),
    // The id is one of the fields; it may be spelt in another way.
    (
        "UpdateBackend",
        r#"backend { pool: "spare" address: "2001:DB8::2" } update_mask { paths: "address" paths: "admin_state" }"#,
        r#"backend { pool: "spare" address: "2001:db8::2" region: "us" weight: 1 admin_state: ADMIN_STATE_ACTIVE }
           result { generation: 4
           changes { kind: KIND_CHANGED object { kind: KIND_BACKEND name: "2001:db8::2" pool: "spare" } text: "pool spare: backend 2001:db8::2"
             fields { field: "admin_state" old: "drain" new: "active" text: "admin_state: drain -> active" } } }"#,
    ),
    (
        "GetBackend",
        r#"pool: "spare" address: "2001:DB8::2""#,
        r#"pool: "spare" address: "2001:db8::2" region: "us" weight: 1 admin_state: ADMIN_STATE_ACTIVE"#,
    ),
    (
        "UpdateBackend",
        r#"backend { pool: "spare" address: "10.0.0.1" region: "eu" weight: 0 } allow_missing: true"#,
        r#"backend { pool: "spare" address: "10.0.0.1" region: "eu" weight: 0 admin_state: ADMIN_STATE_ACTIVE }
           result { generation: 5 changes { kind: KIND_ADDED object { kind: KIND_BACKEND name: "10.0.0.1" pool: "spare" } text: "pool spare: backend 10.0.0.1" } }"#,
    ),
    (
        "ListBackends",
        r#"pool: "spare""#,
        r#"backends { pool: "spare" address: "10.0.0.1" region: "eu" weight: 0 admin_state: ADMIN_STATE_ACTIVE }
           backends { pool: "spare" address: "2001:db8::2" region: "us" weight: 1 admin_state: ADMIN_STATE_ACTIVE }
           generation: 5"#,
    ),
    (
        "DeleteBackend",
        r#"pool: "spare" address: "10.0.0.1""#,
        r#"result { generation: 6 changes { kind: KIND_REMOVED object { kind: KIND_BACKEND name: "10.0.0.1" pool: "spare" } text: "pool spare: backend 10.0.0.1" } }"#,
    ),
    (
        "ListBackends",
        "",
        r#"backends { pool: "spare" address: "2001:db8::2" region: "us" weight: 1 admin_state: ADMIN_STATE_ACTIVE }
           backends { pool: "web" address: "10.0.0.1" region: "eu" weight: 1 admin_state: ADMIN_STATE_ACTIVE }
           backends { pool: "web" address: "2001:db8::2" region: "us" weight: 3 admin_state: ADMIN_STATE_ACTIVE }
           generation: 6"#,
    ),
    (
        "DeleteBackend",
        r#"pool: "none" address: "10.0.0.1" allow_missing: true"#,
        "result { generation: 6 }",
    ),
];

const SERVICE: &[Step] = &[
    (
        "CreateService",
        r#"service { name: "dns" address: "2001:DB8::53" port: 53 protocol: PROTOCOL_UDP pool: "spare" udp: UDP_MODE_TRACKED }"#,
        r#"service { name: "dns" address: "2001:db8::53" port: 53 protocol: PROTOCOL_UDP pool: "spare"
             udp: UDP_MODE_TRACKED idle_timeout { seconds: 60 } affinity: AFFINITY_CONNECTION
             when_full: WHEN_FULL_NEAREST fragments: FRAGMENTS_DROPPED }
           result { generation: 2
           changes { kind: KIND_ADDED object { kind: KIND_SERVICE name: "dns" } text: "service dns" }
           warnings { reason: WARNING_REASON_POOL_EMPTY object { kind: KIND_POOL name: "spare" } text: "pool spare has no backends, so all packets of service dns are dropped" } }"#,
    ),
    (
        "UpdateService",
        r#"service { name: "dns" pool: "web" when_full: WHEN_FULL_REJECT }"#,
        r#"service { name: "dns" address: "2001:db8::53" port: 53 protocol: PROTOCOL_UDP pool: "web"
             udp: UDP_MODE_TRACKED idle_timeout { seconds: 60 } affinity: AFFINITY_CONNECTION
             when_full: WHEN_FULL_REJECT fragments: FRAGMENTS_DROPPED }
           result { generation: 3
           changes { kind: KIND_CHANGED object { kind: KIND_SERVICE name: "dns" } text: "service dns"
             fields { field: "pool" old: "spare" new: "web" text: "pool: spare -> web" }
             fields { field: "when_full" old: "nearest" new: "reject" text: "when_full: nearest -> reject" } } }"#,
    ),
    (
        "DeleteService",
        r#"name: "web""#,
        r#"result { generation: 4 changes { kind: KIND_REMOVED object { kind: KIND_SERVICE name: "web" } text: "service web" }
           movements { object { kind: KIND_SERVICE name: "web" } text: "service web" effect: EFFECT_END share: 1 } }"#,
    ),
    (
        "GetService",
        r#"name: "dns""#,
        r#"name: "dns" address: "2001:db8::53" port: 53 protocol: PROTOCOL_UDP pool: "web"
             udp: UDP_MODE_TRACKED idle_timeout { seconds: 60 } affinity: AFFINITY_CONNECTION
             when_full: WHEN_FULL_REJECT fragments: FRAGMENTS_DROPPED"#,
    ),
    (
        "DeleteService",
        r#"name: "dns""#,
        r#"result { generation: 5 changes { kind: KIND_REMOVED object { kind: KIND_SERVICE name: "dns" } text: "service dns" }
           movements { object { kind: KIND_SERVICE name: "dns" } text: "service dns" effect: EFFECT_END share: 1 } }"#,
    ),
    (
        "ListServices",
        "",
        "
           generation: 5",
    ),
];

#[tokio::test]
async fn every_verb_of_every_kind_does_what_it_says() {
    for steps in [REGION, HEALTH_CHECK, POOL, BACKEND, SERVICE, FOLLOWING] {
        let (daemon, mut caller) = scene().await;
        for (method, request, answer) in steps {
            let answered = caller.call(method, request).await;
            let answered = answered.unwrap_or_else(|status| panic!("{method} {request}: {status}"));
            let expected = caller.answer(method, answer);
            let answered = essence(answered);
            let (is, be) = (answered.to_text_format(), expected.to_text_format());
            assert_eq!(answered, expected, "{method} {request}\n is {is}\nnot {be}");
        }
        drop(daemon);
    }
}

/// What calls make of the configuration is what the packet path gets.
#[tokio::test]
async fn an_object_is_in_the_packet_path_before_the_answer() {
    let (daemon, mut caller) = scene().await;
    let request = r#"service { name: "more" address: "192.0.2.9" port: 90 protocol: PROTOCOL_TCP pool: "web" }"#;
    caller.call("CreateService", &format!("{request} validate_only: true")).await.unwrap();
    assert_eq!(daemon.packets.content().plan.services.len(), 1);
    caller.call("CreateService", request).await.unwrap();
    assert_eq!(daemon.packets.content().plan.services.len(), 2);
    caller.call("DeleteService", r#"name: "web""#).await.unwrap();
    assert_eq!(daemon.packets.content().plan.services.len(), 1);
}

#[tokio::test]
async fn an_etag_stays_as_long_as_the_content_does() {
    let (daemon, mut caller) = scene().await;
    let get = r#"name: "web""#;
    let first = etag(&caller.call("GetPool", get).await.unwrap());
    assert!(first.len() == 16 && first.bytes().all(|byte| byte.is_ascii_hexdigit()), "{first}");
    // Another object changes, another generation comes: the pool's stays.
    let region = etag(&caller.call("GetRegion", r#"name: "void""#).await.unwrap());
    caller.call("DeleteRegion", r#"name: "void""#).await.unwrap();
    assert_eq!(etag(&caller.call("GetPool", get).await.unwrap()), first);
    // A backend is content of its pool. What it was before has the etag that it had.
    let backend = |admin_state: &str| {
        format!(
            r#"backend {{ pool: "web" address: "10.0.0.1" admin_state: ADMIN_STATE_{admin_state} }}"#
        )
    };
    let drained = caller.call("UpdateBackend", &backend("DRAIN")).await.unwrap();
    let second = etag(&caller.call("GetPool", get).await.unwrap());
    assert_ne!(second, first);
    let active = caller.call("UpdateBackend", &backend("ACTIVE")).await.unwrap();
    assert_ne!(etag(&drained), etag(&active));
    assert_eq!(etag(&caller.call("GetPool", get).await.unwrap()), first);

    // The same from another daemon with the same content, and from a list.
    let (other, mut caller) = scene().await;
    assert_eq!(etag(&caller.call("GetPool", get).await.unwrap()), first);
    let regions = caller.call("ListRegions", "").await.unwrap();
    let regions = regions.get_field_by_name("regions").unwrap().into_owned();
    let void = regions.as_list().unwrap().last().unwrap().as_message().unwrap().clone();
    assert_eq!(etag(&void), region);

    let with = |etag: &str| format!(r#"pool {{ name: "web" slots: 37 etag: "{etag}" }}"#);
    let status = caller.call("UpdatePool", &with(&second)).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Aborted);
    let message = format!("pool \"web\": its etag is {first}, not \"{second}\"");
    assert_eq!(status.message(), message);
    let updated = caller.call("UpdatePool", &with(&first)).await.unwrap();
    let delete = |etag: &str| format!(r#"name: "spare" etag: "{etag}""#);
    let status = caller.call("DeletePool", &delete(&etag(&updated))).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Aborted);
    let spare = etag(&caller.call("GetPool", r#"name: "spare""#).await.unwrap());
    caller.call("DeletePool", &delete(&spare)).await.unwrap();
    drop((daemon, other));
}

/// A drain goes with the last backend of its region, and ends as it began.
#[tokio::test]
async fn a_drain_is_no_setting_that_keeps_the_last_backend() {
    let (daemon, mut caller) = scene().await;
    let groups = |groups: &str| {
        format!(r#"pool {{ name: "web" {groups} }} update_mask {{ paths: "groups" }}"#)
    };
    let drained = groups(r#"groups { region: "us" drained: true }"#);
    caller.call("UpdatePool", &drained).await.unwrap();
    let gone = caller.call("DeleteBackend", r#"pool: "web" address: "2001:db8::2""#).await.unwrap();
    let expected = caller.answer(
        "DeleteBackend",
        r#"result { generation: 3
           changes { kind: KIND_CHANGED object { kind: KIND_POOL name: "web" } text: "pool web" slots_moved: 31
             fields { field: "drained" region: "us" old: "yes" new: "no" text: "drained in us: yes -> no" } fields { field: "backends" region: "us" old: "1" new: "0" text: "backends in us: 1 -> 0 (1 gone)" } }
           changes { kind: KIND_REMOVED object { kind: KIND_BACKEND name: "2001:db8::2" pool: "web" } text: "pool web: backend 2001:db8::2" } }"#,
    );
    assert_eq!(essence(gone), expected);
    drop(daemon);
}
