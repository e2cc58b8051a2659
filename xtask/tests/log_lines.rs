//! Lines of the log begin with what they are about. A field after the text is no subject: readers see the
//! text first, and many see nothing else.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Fields that name what a line is about: the text has to name it too.
const SUBJECTS: &[&str] =
    &["subject", "interface", "path", "address", "backend", "pool", "client", "call", "condition"];
/// Words that a line begins with whose subject comes later, or never.
const NO_SUBJECTS: &[&str] = &["it", "its", "there", "they", "none", "is", "are", "was"];
/// Fewest words of a text that names nothing by a value.
const FEWEST: usize = 4;

/// A call of a macro of tracing: its fields, and its text as it stands in the code.
#[derive(Debug, PartialEq, Eq)]
struct Line {
    fields: Vec<String>,
    text: String,
}

/// The lines that a file logs.
fn lines(code: &str) -> Vec<Line> {
    let macros = ["error!(", "warn!(", "info!("];
    let mut found = Vec::new();
    for name in macros {
        for (start, _) in code.match_indices(name) {
            let is_whole =
                !code[..start].ends_with(|before: char| before == '_' || before.is_alphanumeric());
            if is_whole {
                found.push(line(&code[start + name.len()..]));
            }
        }
    }
    found
}

/// A call from behind its bracket.
fn line(call: &str) -> Line {
    let (mut fields, mut field, mut depth) = (Vec::new(), String::new(), 0);
    let mut letters = call.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                let text = literal(&mut letters);
                // A value's text is within its field.
                if field.trim().is_empty() && depth == 0 {
                    return Line { fields, text };
                }
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => fields.push(field_name(&std::mem::take(&mut field))),
            other => field.push(other),
        }
    }
    Line { fields, text: String::new() }
}

/// A text from behind its first quote, with what breaks its line taken out.
fn literal(letters: &mut impl Iterator<Item = char>) -> String {
    let mut text = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => match letters.next() {
                Some('\n') | None => text.push(' '),
                Some(escaped) => text.push(escaped),
            },
            other => text.push(other),
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `backend` of `backend = %address`, `pool` of `%pool`.
fn field_name(field: &str) -> String {
    let name = field.split(['=', ':']).next().unwrap_or_default();
    name.trim().trim_start_matches(['%', '?']).to_owned()
}

/// What is wrong with a line; `None`: nothing.
fn fault(line: &Line) -> Option<String> {
    let text = &line.text;
    let is_only_a_value = text.starts_with('{') && text.find('}') == Some(text.len() - 1);
    if text.is_empty() || is_only_a_value {
        return Some("says nothing but a value: write what it is of before it".into());
    }
    let first = text.split([' ', ',', ':']).next().unwrap_or_default().to_lowercase();
    if NO_SUBJECTS.contains(&first.as_str()) {
        return Some(format!("begins with \"{first}\": begin it with what it is about"));
    }
    if text.contains('{') {
        return None;
    }
    let subject = line.fields.iter().find(|field| SUBJECTS.contains(&field.as_str()));
    if let Some(subject) = subject {
        return Some(format!("names its {subject} in a field alone: begin the text with it"));
    }
    let words = text.split_whitespace().count();
    (words < FEWEST).then(|| "is no sentence with a subject".into())
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_of_tests = path.file_stem().is_some_and(|name| name == "tests");
        match () {
            () if is_of_tests => {}
            () if path.is_dir() => rust_files(&path, found),
            () if path.extension().is_some_and(|extension| extension == "rs") => found.push(path),
            () => {}
        }
    }
}

#[test]
fn every_line_of_the_log_begins_with_its_subject() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("lb-daemon");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    let (mut seen, mut faults) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        // Tests of a file stand at its end.
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for line in lines(code) {
            seen += 1;
            if let Some(fault) = fault(&line) {
                let file = file.strip_prefix(&root).unwrap_or(&file).display();
                faults.push(format!("{file}: {:?} {fault}", line.text));
            }
        }
    }
    assert!(seen > 60, "{seen} lines were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn lines_without_a_subject_are_found() {
    let fault = |code: &str| fault(&lines(code)[0]).unwrap_or_default();
    for (code, because) in [
        ("error!(subject, \"{cause}\");", "nothing but a value"),
        (
            "tracing::info!(path = %path.display(), \"mounting a BPF file system\")",
            "its path in a field",
        ),
        (
            "tracing::warn!(\n    backend = %address, why,\n    \"no next hop at all\"\n)",
            "its backend",
        ),
        ("info!(v4, v6, \"sources of tunnels\")", "no sentence"),
        ("info!(%pool, \"applied\")", "its pool"),
        ("error!(\"there is none on {name}, so packets are dropped\")", "begins with \"there\""),
    ] {
        assert!(fault(code).contains(because), "{code}: {:?}", fault(code));
    }
    for good in [
        "error!(subject, \"{subject}: {cause}\");",
        "info!(interface = own(\"a, b\"), \"interface {name}: attached\")",
        "warn!(\n    left_out,\n    \"calls that are under way \\\n     are cut off\"\n)",
    ] {
        assert_eq!(fault(good), "", "{good}");
    }
    assert_eq!(lines("let error = notinfo!(\"x\");"), []);
}
