//! Pages that list something have all of it, in its order.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().into()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

#[test]
fn the_first_page_leads_to_every_page() {
    let first = read("docs/README.md");
    let mut missing = Vec::new();
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_page = name.ends_with(".md") && name != "README.md";
        if is_page && !first.contains(&format!("]({name}")) {
            missing.push(name);
        }
    }
    assert_eq!(missing, Vec::<String>::new(), "docs/README.md");
    assert!(read("README.md").contains("(docs/README.md)"), "README.md: no first page");
}

#[test]
fn the_glossary_is_in_order() {
    let page = read("docs/glossary.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
    let words: Vec<_> = rows.map(|(word, _)| word.to_lowercase()).skip(1).collect();
    assert!(words.len() > 40, "{words:?}");
    let wrong: Vec<_> = words.windows(2).filter(|pair| pair[0] >= pair[1]).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
