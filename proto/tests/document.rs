//! docs/api.md names every service, and every call of each.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{collections::BTreeMap, fs, path::Path};

use prost_reflect::DescriptorPool;

/// Calls of `Objects` that each kind of object has: the document names the verb alone.
const OF_ANY_KIND: [&str; 5] = ["Create", "Get", "List", "Update", "Delete"];

#[test]
fn the_document_names_every_call() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/api.md");
    let document = fs::read_to_string(path).unwrap();
    let rows: BTreeMap<&str, &str> =
        document.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | ")).collect();
    let mut missing = Vec::new();
    let pool = DescriptorPool::decode(spillway_proto::DESCRIPTORS).unwrap();
    for service in pool.services() {
        let name = service.full_name();
        let row = rows.get(name).copied().unwrap_or_default();
        for method in service.methods() {
            let call = method.name();
            let is_of_any_kind = name == "spillway.v1.Objects" && !call.starts_with("Batch");
            let verb = OF_ANY_KIND.into_iter().find(|verb| call.starts_with(verb));
            let word = verb.filter(|_| is_of_any_kind).unwrap_or(call);
            if !row.contains(&format!("`{word}`")) {
                missing.push(format!("{name}/{call}"));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "docs/api.md");
}
