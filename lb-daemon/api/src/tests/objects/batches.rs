//! Many backends in one call: all of the change, or none.

use tonic::Code::{self, AlreadyExists, FailedPrecondition, InvalidArgument, NotFound};

use super::*;

#[tokio::test]
async fn a_batch_is_one_generation() {
    let (daemon, mut caller) = scene().await;
    let create = r#"backends { pool: "spare" address: "10.0.0.8" region: "eu" }
                    backends { pool: "spare" address: "2001:DB8::9" region: "us" }
                    backends { pool: "web" address: "10.0.0.3" region: "us" weight: 2 }"#;
    let dry = caller.call("BatchCreateBackends", &format!("{create} validate_only: true")).await;
    let created = caller.call("BatchCreateBackends", create).await.unwrap();
    let expected = |generation: u64| {
        format!(
            r#"backends {{ pool: "spare" address: "10.0.0.8" region: "eu" weight: 1 admin_state: ADMIN_STATE_ACTIVE }}
               backends {{ pool: "spare" address: "2001:db8::9" region: "us" weight: 1 admin_state: ADMIN_STATE_ACTIVE }}
               backends {{ pool: "web" address: "10.0.0.3" region: "us" weight: 2 admin_state: ADMIN_STATE_ACTIVE }}
               result {{ generation: {generation} }}"#
        )
    };
    let without_changes = |mut answer| {
        answer = essence(answer);
        let result = answer.get_field_by_name_mut("result").unwrap().as_message_mut().unwrap();
        assert!(result.has_field_by_name("changes"));
        result.clear_field_by_name("changes");
        result.clear_field_by_name("movements");
        answer
    };
    for (answer, generation) in [(dry.unwrap(), 1), (created.clone(), 2)] {
        let expected = caller.answer("BatchCreateBackends", &expected(generation));
        assert_eq!(without_changes(answer), expected);
    }
    // Each has the etag that it has alone.
    let backends = created.get_field_by_name("backends").unwrap().into_owned();
    for backend in backends.as_list().unwrap() {
        let backend: v1::Backend = backend.as_message().unwrap().transcode_to().unwrap();
        let get = format!(r#"pool: "{}" address: "{}""#, backend.pool, backend.address);
        let alone = caller.call("GetBackend", &get).await.unwrap();
        assert_eq!(alone.transcode_to::<v1::Backend>().unwrap(), backend);
    }
    // The same again is the same.
    let again = caller.call("BatchCreateBackends", create).await.unwrap();
    assert_eq!(of_result(&again, "generation").as_u64(), Some(2));
    assert_eq!(daemon.packets.content().plan.tables.len(), 4);

    // A mask is for all of them.
    let update = r#"backends { pool: "spare" address: "10.0.0.8" admin_state: ADMIN_STATE_DRAIN region: "us" }
                    backends { pool: "web" address: "10.0.0.1" admin_state: ADMIN_STATE_DISABLED }
                    update_mask { paths: "admin_state" }"#;
    let updated = caller.call("BatchUpdateBackends", update).await.unwrap();
    assert_eq!(of_result(&updated, "generation").as_u64(), Some(3));
    let expected = r#"
        backends { pool: "spare" address: "10.0.0.8" region: "eu" weight: 1 admin_state: ADMIN_STATE_DRAIN }
        backends { pool: "web" address: "10.0.0.1" region: "eu" weight: 1 admin_state: ADMIN_STATE_DISABLED }"#;
    let expected = caller.answer("BatchUpdateBackends", expected);
    let backends = |answer| essence(answer).get_field_by_name("backends").unwrap().into_owned();
    assert_eq!(backends(updated), backends(expected));

    // All of a region, with a setting that goes with them.
    let delete = r#"backends { pool: "spare" address: "10.0.0.8" }
                    backends { pool: "spare" address: "2001:db8:0::9" }
                    backends { pool: "none" address: "10.9.9.9" } allow_missing: true"#;
    let deleted = caller.call("BatchDeleteBackends", delete).await.unwrap();
    assert_eq!(of_result(&deleted, "generation").as_u64(), Some(4));
    let left = caller.call("ListBackends", r#"pool: "spare""#).await.unwrap();
    assert!(left.get_field_by_name("backends").unwrap().as_list().unwrap().is_empty());

    let history = daemon.client().await.list_generations(v1::ListGenerationsRequest {}).await;
    let why: Vec<_> =
        history.unwrap().into_inner().generations.into_iter().map(|it| it.why).collect();
    let deletion = "deletion of 3 backends";
    assert_eq!(&why[..3], [deletion, "update of 2 backends", "creation of 3 backends"]);
}

const REFUSALS: &[Refusal] = &[
    ("BatchCreateBackends", "", InvalidArgument, "backends: must be set", "backends"),
    (
        "BatchCreateBackends",
        r#"backends { pool: "web" address: "10.0.0.7" region: "eu" } backends { address: "10.0.0.8" }"#,
        InvalidArgument,
        "backends[1].pool: must be set",
        "backends[1].pool",
    ),
    (
        "BatchUpdateBackends",
        r#"backends { pool: "web" address: "2001:db8::2" } backends { pool: "web" address: "2001:DB8::2" }"#,
        InvalidArgument,
        "backends[1]: is the same backend as backends[0]",
        "backends[1]",
    ),
    (
        "BatchCreateBackends",
        r#"backends { pool: "spare" address: "10.0.0.7" region: "eu" } backends { pool: "none" address: "10.0.0.8" }"#,
        NotFound,
        "pool \"none\" does not exist",
        "",
    ),
    (
        "BatchCreateBackends",
        r#"backends { pool: "spare" address: "10.0.0.7" region: "eu" }
           backends { pool: "web" address: "10.0.0.1" region: "eu" weight: 9 }"#,
        AlreadyExists,
        "pool \"web\": backend 10.0.0.1 already exists and differs from the one that was sent",
        "",
    ),
    // The mistake is that of the one that was sent.
    (
        "BatchCreateBackends",
        r#"backends { pool: "spare" address: "10.0.0.7" region: "eu" }
           backends { pool: "web" address: "10.0.0.9" region: "mars" }"#,
        InvalidArgument,
        "backend \"10.0.0.9\": region: \"mars\" is not among the regions",
        "backends[1].region",
    ),
    (
        "BatchUpdateBackends",
        r#"backends { pool: "web" address: "10.0.0.1" weight: 2 } backends { pool: "web" address: "10.0.0.9" weight: 2 }"#,
        NotFound,
        "pool \"web\": backend 10.0.0.9 does not exist",
        "",
    ),
    (
        "BatchUpdateBackends",
        r#"backends { pool: "web" address: "10.0.0.1" weight: 2 etag: "0123456789abcdef" }"#,
        Code::Aborted,
        "pool \"web\": backend 10.0.0.1: its etag is 2c32ebcb211159fd, not \"0123456789abcdef\"",
        "",
    ),
    (
        "BatchDeleteBackends",
        r#"backends { pool: "web" address: "10.0.0.1" } backends { pool: "web" address: "10.0.0.9" }"#,
        NotFound,
        "pool \"web\": backend 10.0.0.9 does not exist",
        "",
    ),
    (
        "BatchDeleteBackends",
        r#"backends { pool: "web" address: "10.0.0.1" } backends { pool: "web" address: "2001:db8::2" }"#,
        FailedPrecondition,
        "pool \"web\": backend 2001:db8::2 is in use by \
         pool \"web\" (has a capacity or scaler for region \"us\", and no other backend there)",
        "",
    ),
];

#[tokio::test]
async fn a_batch_with_a_mistake_changes_nothing() {
    let (daemon, mut caller) = scene().await;
    let before = daemon.client().await.export(v1::ExportRequest {}).await.unwrap().into_inner();
    for refusal in REFUSALS {
        caller.refused(refusal).await;
    }
    let many = r#"backends { pool: "web" address: "10.0.0.1" }"#.repeat(10_001);
    let status = caller.call("BatchDeleteBackends", &many).await.unwrap_err();
    assert_eq!(status.message(), "backends: has 10001 entries; at most 10000 are allowed");
    // What a caller chose to send is quoted, in short.
    let pool = "x\\n".repeat(1_000);
    let nowhere = format!(r#"backends {{ pool: "{pool}" address: "10.0.0.1" }}"#);
    let two = format!("{nowhere} {}", nowhere.replace("10.0.0.1", "10.0.0.2"));
    let status = caller.call("BatchDeleteBackends", &two).await.unwrap_err();
    assert!(status.code() == NotFound && status.message().len() < 1_000, "{status}");
    let paths = r#"paths: "weight" "#.repeat(101);
    let update = format!(
        r#"backends {{ pool: "web" address: "10.0.0.1" weight: 2 }} update_mask {{ {paths} }}"#
    );
    let status = caller.call("BatchUpdateBackends", &update).await.unwrap_err();
    assert_eq!(status.message(), "update_mask: has 101 paths; at most 100 are allowed");
    let after = daemon.client().await.export(v1::ExportRequest {}).await.unwrap().into_inner();
    assert_eq!(before, after);
}
