//! The checked-in Rust is what the `.proto` files say.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../examples/regenerate/generate.rs"]
mod generate;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().into(), fs::read(&path).unwrap())
        })
        .collect()
}

#[test]
fn the_generated_code_is_current() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("regenerated");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    generate::into(&folder).unwrap();

    let expected = files(&folder);
    let kept = files(&generate::checked_in());
    assert_eq!(kept.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, content) in expected {
        assert!(
            kept[&name] == content,
            "{} is out of date: run `cargo run -p spillway-proto --example regenerate`",
            name.display()
        );
    }
}
