use tonic::Code;

use super::*;

/// Changes with what becomes of connections, and of tables of 31 slots: how many there are then, and
/// until it has settled. The scene has two, for `web` has backends in two regions; services have none.
const CHANGES: &[(&str, &str, &str, [u64; 2])] = &[
    (
        "UpdateBackend",
        r#"backend { pool: "web" address: "10.0.0.1" admin_state: ADMIN_STATE_DISABLED }"#,
        r#"result { movements { object { kind: KIND_BACKEND name: "10.0.0.1" pool: "web" } text: "pool web: backend 10.0.0.1" effect: EFFECT_AT_ONCE share: 1 } }"#,
        [2, 2],
    ),
    (
        "DeleteBackend",
        r#"pool: "web" address: "10.0.0.1""#,
        r#"result { movements { object { kind: KIND_POOL name: "web" } text: "pool web" effect: EFFECT_SETTLE share: 1 } }"#,
        [1, 2],
    ),
    (
        "DeleteService",
        r#"name: "web""#,
        r#"result { movements { object { kind: KIND_SERVICE name: "web" } text: "service web" effect: EFFECT_END share: 1 } }"#,
        [2, 2],
    ),
    ("CreateRegion", r#"region { name: "asia" }"#, "", [2, 2]),
];

/// A chunk: 4 MiB of words, and its head has a page. The fake packet path gives each table one; the first is always
/// there.
const CHUNK: u64 = (4 << 20) + 4096;

#[tokio::test]
async fn a_dry_run_of_one_object_says_what_becomes_of_connections_and_memory() {
    const MADE: u64 = 1 << 20;
    let daemon = Daemon::with(Budget { made: vec![("ARRAYS".into(), MADE)], limit: None });
    daemon.client().await.apply(apply(Document::parse(SCENE).unwrap().into())).await.unwrap();
    let mut caller = Caller::of(&daemon).await;
    for (method, request, movements, tables) in CHANGES {
        let answer = caller.call(method, &format!("{request} validate_only: true")).await.unwrap();
        let expected = caller.answer(method, movements);
        assert_eq!(of_result(&answer, "movements"), of_result(&expected, "movements"), "{request}");
        let memory: v1::MapMemory =
            of_result(&answer, "memory").as_message().unwrap().transcode_to().unwrap();
        let bytes = [memory.needed_bytes, memory.peak_bytes];
        assert_eq!(bytes, tables.map(|tables| MADE + (tables - 1) * CHUNK), "{request}");
        assert_eq!(of_result(&answer, "generation").as_u64(), Some(1), "{request}");
    }
    // Nothing changes: nothing to say.
    let same =
        caller.call("CreateRegion", r#"region { name: "us" } validate_only: true"#).await.unwrap();
    let result = same.get_field_by_name("result").unwrap().into_owned();
    let result = result.as_message().unwrap();
    assert!(!result.has_field_by_name("memory") && !result.has_field_by_name("movements"));
}

/// Calls that leave all as it is in force. The second one is what a client repeats that has no answer to the first.
const EQUAL: &[(&str, &str)] = &[
    ("CreateRegion", r#"region { name: "asia" }"#),
    ("UpdateRegion", r#"region { name: "asia" } update_mask { paths: "overflow_to" }"#),
    ("DeleteRegion", r#"name: "none" allow_missing: true"#),
    ("DeleteBackend", r#"pool: "none" address: "10.0.0.1" allow_missing: true"#),
];

#[tokio::test]
async fn a_call_that_changes_nothing_is_no_success_before_packets_are_there() {
    let (daemon, mut caller) = scene().await;
    daemon.packets.content().failures = usize::MAX;
    let create = ("CreateRegion", r#"region { name: "asia" }"#);
    let first = caller.call(create.0, create.1).await.unwrap_err();
    let said = "generation 2 is in force, but not yet in the packet path, which is retried every second: groups: \
                1 contiguous entries are needed, the largest free range has 0";
    assert_eq!((first.code(), first.message()), (Code::Internal, said));
    for (method, request) in EQUAL {
        let again = caller.call(method, request).await.unwrap_err();
        assert_eq!((again.code(), again.message()), (Code::Internal, said), "{method} {request}");
        let planned = caller.call(method, &format!("{request} validate_only: true")).await.unwrap();
        let warnings = of_result(&planned, "warnings");
        let [warning] = warnings.as_list().unwrap() else { panic!("{method} {request}") };
        let warning: v1::Warning = warning.as_message().unwrap().transcode_to().unwrap();
        let reason = v1::WarningReason::PacketPathBehind;
        assert_eq!((warning.reason(), &*warning.text), (reason, said), "{method} {request}");
    }
    let applied = daemon.packets.content().applied;
    daemon.packets.content().failures = 0;
    for (method, request) in EQUAL {
        let answer = caller.call(method, request).await.unwrap();
        let generation = of_result(&answer, "generation").as_u64();
        assert_eq!(generation, Some(2), "{method} {request}");
        assert_eq!(daemon.packets.content().applied, applied + 1, "{method} {request}");
    }
}
