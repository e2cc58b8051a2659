//! Calls that change nothing while the packet path is behind.

use tonic::Code;

use super::*;

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
        let planned = caller.call(method, &format!("{request} dry_run: true")).await.unwrap();
        let warnings = planned.get_field_by_name("warnings").unwrap().into_owned();
        let warnings = warnings.as_list().unwrap();
        assert_eq!(warnings.len(), 1, "{method} {request}");
        assert_eq!(warnings[0].as_str(), Some(said), "{method} {request}");
    }
    let applied = daemon.packets.content().applied;
    daemon.packets.content().failures = 0;
    for (method, request) in EQUAL {
        let answer = caller.call(method, request).await.unwrap();
        let generation = answer.get_field_by_name("generation").unwrap().as_u64();
        assert_eq!(generation, Some(2), "{method} {request}");
        assert_eq!(daemon.packets.content().applied, applied + 1, "{method} {request}");
    }
}
