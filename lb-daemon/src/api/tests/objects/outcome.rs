use prost_reflect::DynamicMessage;

use super::*;

/// Changes with what becomes of connections, and of tables of 31 slots: how many there are then, and
/// until it has settled. The scene has two, for `web` has backends in two regions; services have none.
const CHANGES: &[(&str, &str, &str, [u64; 2])] = &[
    (
        "UpdateBackend",
        r#"pool: "web" backend { address: "10.0.0.1" admin_state: ADMIN_STATE_DISABLED }"#,
        r#"movements { object: "pool web: backend 10.0.0.1" effect: EFFECT_AT_ONCE share: 1 }"#,
        [2, 2],
    ),
    (
        "DeleteBackend",
        r#"pool: "web" address: "10.0.0.1""#,
        r#"movements { object: "pool web" effect: EFFECT_SETTLE share: 1 }"#,
        [1, 2],
    ),
    (
        "DeleteService",
        r#"name: "web""#,
        r#"movements { object: "service web" effect: EFFECT_END share: 1 }"#,
        [2, 2],
    ),
    ("CreateRegion", r#"region { name: "asia" }"#, "", [2, 2]),
];

/// Head and words of a table of 31 slots, a page each.
const TABLE: u64 = 2 * 4096;

#[tokio::test]
async fn a_dry_run_of_one_object_says_what_becomes_of_connections_and_memory() {
    const MADE: u64 = 1 << 20;
    let daemon = Daemon::with(Budget { made: vec![("POOLS".into(), MADE)], limit: None });
    daemon.client().await.apply(apply(Document::parse(SCENE).unwrap().into())).await.unwrap();
    let mut caller = Caller::of(&daemon).await;
    for (method, request, movements, tables) in CHANGES {
        let answer = caller.call(method, &format!("{request} dry_run: true")).await.unwrap();
        let field =
            |answer: &DynamicMessage, name| answer.get_field_by_name(name).unwrap().into_owned();
        let expected = caller.answer(method, movements);
        assert_eq!(field(&answer, "movements"), field(&expected, "movements"), "{request}");
        let memory: v1::MapMemory =
            field(&answer, "memory").as_message().unwrap().transcode_to().unwrap();
        let bytes = [memory.needed_bytes, memory.peak_bytes];
        assert_eq!(bytes, tables.map(|tables| MADE + tables * TABLE), "{request}");
        assert_eq!(field(&answer, "generation").as_u64(), Some(1), "{request}");
    }
    // Nothing changes: nothing to say.
    let same = caller.call("CreateRegion", r#"region { name: "us" } dry_run: true"#).await.unwrap();
    assert!(!same.has_field_by_name("memory") && !same.has_field_by_name("movements"));
}
