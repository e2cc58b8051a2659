//! Answers as they are printed.

use spillway_proto::v1;

use super::{
    answer::{Done, Got, Listed},
    calls::Answer,
};
use crate::output::Report as _;

fn applied() -> v1::ApplyResponse {
    v1::ApplyResponse { generation: 7, ..v1::ApplyResponse::default() }
}

fn backend(address: &str) -> Answer<v1::Backend> {
    let backend = v1::Backend {
        address: address.into(),
        region: "eu".into(),
        weight: Some(2),
        wanted: v1::WantedState::Drain.into(),
        max_connection_rate_per_second: Some(10.0),
        ..v1::Backend::default()
    };
    let (pool, etag) = ("web".into(), "00000000000012e4".into());
    Answer { pool, object: backend, etag, applied: applied() }
}

#[test]
fn a_list_is_a_table_and_wide_has_more_of_it() {
    let listed = Listed::new(7, vec![backend("10.0.0.1"), backend("2001:db8::1")]).unwrap();
    assert_eq!(
        listed.table(),
        "\
POOL  ADDRESS      REGION  WEIGHT  WANTED
web   10.0.0.1     eu      2       drain
web   2001:db8::1  eu      2       drain
"
    );
    assert_eq!(
        listed.wide(),
        "\
POOL  ADDRESS      REGION  WEIGHT  WANTED  MTU  MAX RATE  ETAG
web   10.0.0.1     eu      2       drain   -    10/s      00000000000012e4
web   2001:db8::1  eu      2       drain   -    10/s      00000000000012e4
"
    );
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
    let answer = Answer { pool, object: service, etag, applied: applied() };
    let table = Listed::new(7, vec![answer]).unwrap().table();
    assert!(table.lines().all(|line| line.len() <= 80), "{table}");
    assert!(table.contains(&name), "{table}");
}

/// An etag of digits, or of digits around an `e`, is a text in YAML too.
#[test]
fn json_and_yaml_say_the_same() {
    let listed = Listed::new(7, vec![backend("10.0.0.1")]).unwrap();
    let object = serde_json::json!({
        "pool": "web", "address": "10.0.0.1", "region": "eu", "weight": 2, "wanted": "drain",
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
  wanted: drain
  max_connection_rate: 10/s
  etag: \"00000000000012e4\"
"
    );
}

#[test]
fn one_is_printed_as_its_file_has_it() {
    let got = Got::new(backend("10.0.0.1")).unwrap();
    assert_eq!(
        got.table(),
        "\
# backend of pool web, generation 7, etag 00000000000012e4
address = \"10.0.0.1\"
region = \"eu\"
weight = 2
wanted = \"drain\"
max_connection_rate = \"10/s\"
"
    );
}

#[test]
fn a_change_is_told_with_the_object_as_it_is_then() {
    let change = v1::Change {
        kind: v1::change::Kind::Changed.into(),
        object: "pool web: backend 10.0.0.1".into(),
        details: vec!["wanted: active -> drain".into()],
        slots_moved: 0,
    };
    let applied = v1::ApplyResponse { changes: vec![change], ..applied() };
    let answer = Answer { applied, ..backend("10.0.0.1") };
    let done = Done::new(answer, false).unwrap();
    assert_eq!(
        done.table(),
        "\
generation 7 is in force: 1 change
~ pool web: backend 10.0.0.1
    wanted: active -> drain
"
    );
    let value = serde_json::to_value(&done).unwrap();
    assert_eq!(value["changes"][0]["object"], "pool web: backend 10.0.0.1");
    assert_eq!(value["backend"]["wanted"], "drain");
    assert_eq!((&value["generation"], &value["dry_run"]), (&7.into(), &false.into()));
}
