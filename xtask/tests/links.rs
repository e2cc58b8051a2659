//! Each relative link of a document leads to a file that exists, and its fragment to a heading of that file.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// What other pages can ask of a page, and what it asks of them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    /// Fragments of its headings.
    headings: BTreeSet<String>,
    /// Targets of its links and pictures, as written.
    links: Vec<String>,
}

impl Page {
    fn read(markdown: &str) -> Self {
        let mut page = Self::default();
        let mut heading: Option<String> = None;
        for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => page.add_heading(&heading.take().unwrap()),
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        page
    }

    /// As GitHub derives a fragment from a heading; the second of a name gets a number.
    fn add_heading(&mut self, text: &str) {
        let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let name = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let numbered = (1..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone())
            .chain(numbered)
            .find(|candidate| !self.headings.contains(candidate));
        self.headings.extend(free);
    }
}

/// All documents below a folder, by their path from the root.
fn pages(root: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, Page>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            pages(root, &path, found);
        } else if name.ends_with(".md") {
            let page = Page::read(&fs::read_to_string(&path).unwrap());
            found.insert(path.strip_prefix(root).unwrap().into(), page);
        }
    }
}

/// What is wrong with a link of a page.
fn fault(
    root: &Path,
    pages: &BTreeMap<PathBuf, Page>,
    from: &Path,
    link: &str,
) -> Option<&'static str> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => from.to_owned(),
        file => normal(&from.parent().unwrap_or(Path::new("")).join(file)),
    };
    if !root.join(&target).exists() {
        return Some("no such file");
    }
    let page = pages.get(&target);
    let is_there = fragment.is_empty() || page.is_some_and(|it| it.headings.contains(fragment));
    (!is_there).then_some("no such heading")
}

/// A relative path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path {
        if part == ".." {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut all = BTreeMap::new();
    pages(root, root, &mut all);
    let (mut seen, mut faults) = (0, Vec::new());
    for (from, page) in &all {
        for link in &page.links {
            seen += 1;
            if let Some(fault) = fault(root, &all, from, link) {
                faults.push(format!("{}: {link}: {fault}", from.display()));
            }
        }
    }
    assert!(seen > 100, "{seen} links were found in {} documents", all.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text =
        "# A `b-c`, d\n## x\n## x\n[l](../README.md#a) ![p](q.svg \"t\")\n```\n[no](link)\n```\n";
    let page = Page::read(text);
    assert_eq!(page.headings, ["a-b-c-d", "x", "x-1"].map(str::to_owned).into());
    assert_eq!(page.links, ["../README.md#a", "q.svg"]);
    let pages = BTreeMap::from([(PathBuf::from("docs/api.md"), page)]);
    let fault = |link| fault(root, &pages, Path::new("docs/cli.md"), link);
    assert_eq!(fault("api.md#x-1"), None);
    assert_eq!(fault("../README.md"), None);
    assert_eq!(fault("https://nowhere.invalid/#x"), None);
    assert_eq!(fault("api.md#y"), Some("no such heading"));
    assert_eq!(fault("../api.md"), Some("no such file"));
}
