//! Slots of pools: what calls leave unset stays, and each answer has a number.

use tonic::Code;

use super::*;

/// Twelve backends in region `eu`: too many for 1009 slots.
fn twelve() -> String {
    let backend = |number| format!(r#"backends {{ address: "10.0.1.{number}" region: "eu" }}"#);
    (1..=12).map(backend).collect::<Vec<_>>().join(" ")
}

/// The slots in an answer, and how many changes there were.
async fn call(caller: &mut Caller, method: &str, request: &str) -> (u32, usize) {
    let answer = caller.call(method, request).await.unwrap();
    let slots = object(&answer).get_field_by_name("slots").unwrap().as_u32().unwrap();
    let is_change = answer.get_field_by_name("result").is_some();
    let changes =
        if is_change { of_result(&answer, "changes").as_list().unwrap().len() } else { 0 };
    (slots, changes)
}

#[tokio::test]
async fn only_a_call_that_sets_slots_changes_them() {
    let (daemon, mut caller) = scene().await;
    let caller = &mut caller;
    let create = r#"pool { name: "more" backends { address: "10.0.1.1" region: "eu" } }"#;
    assert_eq!(
        call(caller, "CreatePool", &format!("{create} validate_only: true")).await,
        (1_009, 1)
    );
    assert_eq!(call(caller, "CreatePool", create).await, (1_009, 1));
    // The same again is the same pool.
    assert_eq!(call(caller, "CreatePool", create).await, (1_009, 0));
    let grow = format!(r#"pool {{ name: "more" {} }}"#, twelve());
    assert_eq!(call(caller, "UpdatePool", &grow).await, (1_009, 12));

    // As does a call that replaces everything, or names the field and leaves it unset.
    let whole = format!(r#"{grow} update_mask {{ paths: "*" }}"#);
    assert_eq!(call(caller, "UpdatePool", &whole).await, (1_009, 0));
    let named = r#"pool { name: "more" } update_mask { paths: "slots" }"#;
    assert_eq!(call(caller, "UpdatePool", named).await, (1_009, 0));
    let other = r#"pool { name: "more" settle_time { seconds: 60 } }"#;
    assert_eq!(call(caller, "UpdatePool", other).await, (1_009, 1));
    assert_eq!(call(caller, "GetPool", r#"name: "more""#).await, (1_009, 0));

    // Each of these asks.
    let choose = r#"pool { name: "more" slots: 0 }"#;
    assert_eq!(
        call(caller, "UpdatePool", &format!("{choose} validate_only: true")).await,
        (4_093, 1)
    );
    assert_eq!(call(caller, "GetPool", r#"name: "more""#).await, (1_009, 0));
    assert_eq!(call(caller, "UpdatePool", choose).await, (4_093, 1));
    let set = r#"pool { name: "more" slots: 31 } update_mask { paths: "slots" }"#;
    assert_eq!(call(caller, "UpdatePool", set).await, (31, 1));
    let choose = r#"pool { name: "more" slots: 0 } update_mask { paths: "slots" }"#;
    assert_eq!(call(caller, "UpdatePool", choose).await, (4_093, 1));
    let tables = daemon.packets.content().plan.tables.values().map(|it| it.slots()).max();
    assert_eq!(tables, Some(4_093));
    // A pool that was deleted keeps nothing.
    caller.call("DeletePool", r#"name: "more""#).await.unwrap();
    assert_eq!(call(caller, "CreatePool", create).await, (1_009, 1));
}

#[tokio::test]
async fn with_several_balancers_a_new_pool_needs_a_number() {
    let daemon = Daemon::start();
    let configuration = v1::Configuration { balancers: 2, ..text_fixture() };
    daemon.client().await.apply(apply(configuration)).await.unwrap();
    let mut caller = Caller::of(&daemon).await;
    for slots in ["", "slots: 0"] {
        let request = format!(r#"pool {{ name: "more" {slots} {} }}"#, twelve());
        let status = caller.call("CreatePool", &request).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(
            status.message(),
            r#"pool "more": slots: must be a number, the same on all 2 balancers"#
        );
        let trailer = |name| status.metadata().get(name).unwrap().to_str().unwrap();
        assert_eq!(trailer(lb_config::FIELD_TRAILER), "pool.slots");
        let hint = trailer(lb_config::HINT_TRAILER);
        assert!(hint.starts_with("set slots = 4093 in pool more, in the config"), "{hint}");
    }
    let request = format!(r#"pool {{ name: "more" slots: 4093 {} }}"#, twelve());
    assert_eq!(call(&mut caller, "CreatePool", &request).await, (4_093, 1));
    // What is not about slots needs none: the generation has them.
    let other = r#"pool { name: "web" settle_time { seconds: 60 } }"#;
    assert_eq!(call(&mut caller, "UpdatePool", other).await, (31, 1));
}
