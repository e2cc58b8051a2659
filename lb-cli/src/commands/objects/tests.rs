use serde_json::json;
use spillway_proto::v1;

use super::{
    backend::add_figures,
    calls::ObjectAnswer,
    report::{ChangeReport, ListReport, ObjectReport},
};
use crate::{
    commands::{
        backend_figures::{BackendFigures, examples},
        changes::change_message,
    },
    output::Report as _,
};

fn backend(address: &str) -> ObjectAnswer<v1::Backend> {
    let backend = v1::Backend {
        address: address.into(),
        region: "eu".into(),
        weight: Some(2),
        admin_state: v1::AdminState::Drain.into(),
        max_connection_rate_per_second: Some(10.0),
        ..v1::Backend::default()
    };
    let (pool, etag) = ("web".into(), "00000000000012e4".into());
    ObjectAnswer { pool, object: backend, etag }
}

#[test]
fn wide_has_more_columns() {
    let listed = ListReport::new(7, vec![backend("10.0.0.1"), backend("2001:db8::1")]).unwrap();
    assert_eq!(
        listed.table(),
        "\
POOL  ADDRESS      REGION  WEIGHT  STATE  SHARE  CONN/S  OVERRIDES
web   10.0.0.1     eu      2       -      -      -       -
web   2001:db8::1  eu      2       -      -      -       -
"
    );
    assert_eq!(
        listed.wide(),
        "\
POOL  ADDRESS      REGION  WEIGHT  STATE  SHARE  CONN/S  OVERRIDES  ADMIN STATE  MTU  MAX RATE  ETAG
web   10.0.0.1     eu      2       -      -      -       -          drain        -    10/s      00000000000012e4
web   2001:db8::1  eu      2       -      -      -       -          drain        -    10/s      00000000000012e4
"
    );
}

/// What tables show beside the configuration is in no machine format: there an object is what `get` prints.
#[test]
fn backends_are_listed_with_their_state_share_rate_and_overrides() {
    let mut status = v1::StatusResponse {
        backends: vec![
            examples::backend("10.0.0.1", "eu", 2, Some(1.0)),
            examples::backend("2001:db8::1", "eu", 2, Some(0.5)),
        ],
        ..Default::default()
    };
    status.backends[1].overrides = vec!["backends/2001:db8::1/weight".into()];
    let rates = [("10.0.0.1".to_owned(), 21.0)].into();
    let figures = BackendFigures::new(&status, &rates);
    let mut listed = ListReport::new(7, vec![backend("10.0.0.1"), backend("2001:db8::1")]).unwrap();
    let before = serde_json::to_value(&listed).unwrap();
    listed.change_rows(|rows| add_figures(rows, &figures));
    assert_eq!(
        listed.table(),
        "\
POOL  ADDRESS      REGION  WEIGHT  STATE  SHARE  CONN/S
    OVERRIDES
web   10.0.0.1     eu      2       up     75%    21.0
    -
web   2001:db8::1  eu      2       up     25%    -
    backends/2001:db8::1/weight
"
    );
    assert_eq!(serde_json::to_value(&listed).unwrap(), before);
}

#[test]
fn the_longest_names_of_a_service_fit_in_eighty_columns() {
    let name = "n".repeat(15);
    let service = v1::Service {
        name: name.clone(),
        address: "2001:db8:1111:2222:3333:4444:5555:6666".into(),
        port: 65535,
        protocol: v1::Protocol::Tcp.into(),
        pool: "p".into(),
        ..v1::Service::default()
    };
    let (pool, etag) = (String::new(), String::new());
    let answer = ObjectAnswer { pool, object: service, etag };
    let table = ListReport::new(7, vec![answer]).unwrap().table();
    assert!(table.lines().all(|line| line.len() <= 80), "{table}");
    assert!(table.contains(&name), "{table}");
}

/// An etag of digits, or of digits around an `e`, is a text in YAML too.
#[test]
fn json_and_yaml_are_equal() {
    let listed = ListReport::new(7, vec![backend("10.0.0.1")]).unwrap();
    let object = serde_json::json!({
        "pool": "web", "address": "10.0.0.1", "region": "eu", "weight": 2, "admin_state": "drain",
        "max_connection_rate": "10/s", "etag": "00000000000012e4",
    });
    assert_eq!(
        serde_json::to_value(&listed).unwrap(),
        serde_json::json!({"generation": 7, "backends": [object]})
    );
    assert_eq!(
        serde_saphyr::to_string(&listed).unwrap(),
        "\
generation: 7
backends:
- pool: web
  address: \"10.0.0.1\"
  region: eu
  weight: 2
  admin_state: drain
  max_connection_rate: 10/s
  etag: \"00000000000012e4\"
"
    );
}

#[test]
fn an_object_is_printed_in_its_file_form() {
    let got = ObjectReport::new(backend("10.0.0.1")).unwrap();
    assert_eq!(
        got.table(),
        "\
# backend of pool web, etag 00000000000012e4
address = \"10.0.0.1\"
region = \"eu\"
weight = 2
admin_state = \"drain\"
max_connection_rate = \"10/s\"
"
    );
}

#[test]
fn a_change_is_printed_with_the_new_object() {
    let object = v1::ObjectReference {
        kind: v1::object_reference::Kind::Backend.into(),
        name: "10.0.0.1".into(),
        pool: "web".into(),
    };
    let (kind, fields) = (v1::change::Kind::Changed, ["admin_state: active -> drain"]);
    let change = v1::Change {
        object: Some(object),
        ..change_message(kind, "pool web: backend 10.0.0.1", &fields, 0)
    };
    let warning = v1::Warning {
        reason: v1::WarningReason::PoolUnserved.into(),
        object: None,
        text: "pool web has no backend left for new connections".into(),
    };
    let result = v1::ApplyResult {
        generation: 7,
        changes: vec![change],
        warnings: vec![warning.clone()],
        ..v1::ApplyResult::default()
    };
    let done = ChangeReport::new((backend("10.0.0.1"), result), false).unwrap();
    assert_eq!(done.warnings(), [warning.text.as_str()]);
    assert_eq!(
        done.table(),
        "\
generation 7 is in force: 1 change
~ pool web: backend 10.0.0.1
    admin_state: active -> drain
"
    );
    let value = serde_json::to_value(&done).unwrap();
    let change = json!({
        "kind": "changed",
        "object": {"kind": "backend", "name": "10.0.0.1", "pool": "web"},
        "text": "pool web: backend 10.0.0.1",
        "fields": [{
            "field": "admin_state", "region": null, "old": "active", "new": "drain",
            "text": "admin_state: active -> drain",
        }],
        "slots_moved": 0,
    });
    assert_eq!(value["changes"], json!([change]));
    let warning = json!({"reason": "pool_unserved", "object": null, "text": warning.text});
    assert_eq!(value["warnings"], json!([warning]));
    assert_eq!(value["backend"]["admin_state"], "drain");
    assert_eq!((&value["generation"], &value["dry_run"]), (&7.into(), &false.into()));
}
