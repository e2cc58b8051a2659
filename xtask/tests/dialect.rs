//! Names that a reader would have to learn stay out, where operators and users of a crate meet them: the field has a
//! word for each. ARCHITECTURE.md's glossary says more.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Where a word may not stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Names in `proto/`.
    Proto,
    /// Names and labels in docs/metrics.md, which is made from the list of metrics.
    Metrics,
    /// Modules and items of the crates that are visible outside of their module, their fields and variants.
    Items,
    /// Help texts and flags.
    Help,
}

use Scope::{Help, Items, Metrics, Proto};

const EVERYWHERE: &[Scope] = &[Proto, Metrics, Items, Help];
const OUTSIDE: &[Scope] = &[Proto, Metrics, Help];
const NAMES: &[Scope] = &[Proto, Metrics, Items];
const ITEMS: &[Scope] = &[Items];

struct Row {
    /// A word of names, or several in turn, in small letters: it is found in any case, and in the plural.
    word: &'static str,
    /// Whether `word` is a whole name instead, found as it is written.
    is_name: bool,
    scopes: &'static [Scope],
    say: &'static str,
}

const fn word(word: &'static str, scopes: &'static [Scope], say: &'static str) -> Row {
    Row { word, is_name: false, scopes, say }
}

const fn name(name: &'static str, scopes: &'static [Scope], say: &'static str) -> Row {
    Row { word: name, is_name: true, scopes, say }
}

const ROWS: &[Row] = &[
    // Connections.
    word("exception", EVERYWHERE, "displaced connection, its entry"),
    word("away", &[Proto, Metrics], "displaced"),
    word("gate", EVERYWHERE, "displaced check"),
    word("record", &[Proto, Metrics], "handshake entry"),
    name("RECORDS", ITEMS, "HANDSHAKES"),
    word("former", EVERYWHERE, "previous"),
    word("out of home", EVERYWHERE, "marked out"),
    word("absence", EVERYWHERE, "marked out"),
    // States.
    word("unfit", EVERYWHERE, "unhealthy"),
    word("dead", &[Proto, Items, Help], "unreachable"),
    name("HOSTS", ITEMS, "BACKEND_STATES"),
    name("HostWord", ITEMS, "BackendState"),
    word("trouble", EVERYWHERE, "condition"),
    // Capacity.
    word("meter", EVERYWHERE, "limiter"),
    word("spill", EVERYWHERE, "overflow"),
    word("spilled", EVERYWHERE, "overflow"),
    word("overrun", OUTSIDE, "over capacity"),
    name("overrun", ITEMS, "over capacity"),
    name("Overrun", ITEMS, "over capacity"),
    name("PoolRegion", NAMES, "Group"),
    name("RegionStatus", NAMES, "GroupStatus"),
    name("RegionCounters", NAMES, "GroupCounters"),
    name("RegionRates", NAMES, "GroupRates"),
    // Health.
    name("TcpProbe", NAMES, "TcpCheck"),
    name("HttpProbe", NAMES, "HttpCheck"),
    name("ProbeRequest", NAMES, "ProbeVipsRequest"),
    word("reach", NAMES, "VIP probe"),
    word("unwell", ITEMS, "unhealthy"),
    // The daemon.
    name("Rests", ITEMS, "Quarantine"),
    word("wanted", OUTSIDE, "what is configured, requested or expected"),
    word("unheard", EVERYWHERE, "why there is no agent report"),
    name("Told", ITEMS, "what it holds"),
    word("seldom", ITEMS, "rate-limited log"),
    word("farewell", ITEMS, "shutdown"),
    word("blind", ITEMS, "what is not known"),
    // The packet path.
    name("at_once", ITEMS, "fast_path"),
    name("aside", ITEMS, "parse_slow"),
    // Tests.
    word("scene", ITEMS, "fixture"),
    word("world", ITEMS, "fake, fixture"),
    word("twin", ITEMS, "fake"),
];

/// Names that are the kernel's, as words.
const KERNEL: [[&str; 2]; 1] = [["xdp", "exception"]];

/// A name, and where it stands.
struct Name {
    text: String,
    place: String,
}

/// The words of a name, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let letters: Vec<char> = name.chars().collect();
    for (at, &letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let starts = letter.is_uppercase()
            && (before.is_some_and(char::is_lowercase)
                || letters.get(at + 1).is_some_and(|next| next.is_lowercase()));
        if (starts || !letter.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

/// Whether a text has the name of a row in it, or a name with its word.
fn has(text: &str, row: &Row) -> bool {
    if row.is_name {
        return text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == row.word);
    }
    let sought: Vec<_> = row.word.split(' ').collect();
    let is_word = |there: &str, sought: &str| {
        there.strip_prefix(sought).is_some_and(|rest| rest.is_empty() || rest == "s")
    };
    words(text)
        .windows(sought.len())
        .any(|there| there.iter().zip(&sought).all(|(there, sought)| is_word(there, sought)))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Files of an extension below a folder.
fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if !path.ends_with("target") {
                files(&path, extension, found);
            }
        } else if path.extension().is_some_and(|it| it == extension) {
            found.push(path);
        }
    }
}

/// Names that `read` finds in a file, by its lines.
fn names(path: &Path, read: impl FnOnce(&str) -> Vec<(usize, String)>) -> Vec<Name> {
    let shown = path.strip_prefix(root()).unwrap().display().to_string();
    let found = read(&fs::read_to_string(path).unwrap());
    let name = |(line, text): (usize, String)| Name { place: format!("{shown}:{line}"), text };
    found.into_iter().map(name).collect()
}

/// Lines without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines().map(|line| line.split("//").next().unwrap_or_default()))
}

fn proto_names(text: &str) -> Vec<(usize, String)> {
    code(text).map(|(number, line)| (number, line.to_owned())).collect()
}

/// Of each row of the table the metric and its labels.
fn metric_names(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| line.starts_with("| `")) {
        let cells: Vec<_> = line.split('|').collect();
        found.extend([cells[1], cells[3]].map(|cell| (number, cell.to_owned())));
    }
    found
}

/// The name that a line declares, if it can be seen outside of its module.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let (is_public, rest) = match line.strip_prefix("pub") {
        Some(rest) => {
            (true, rest.strip_prefix('(').map_or(rest, |it| it.split_once(')').unwrap().1))
        }
        None => (false, line),
    };
    let kinds = ["mod", "fn", "struct", "enum", "trait", "type", "static", "const", "union"];
    let mut parts =
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|it| !it.is_empty());
    let first = parts.next()?;
    match first {
        "mod" => parts.next(),
        _ if !is_public || first == "use" => None,
        "unsafe" | "async" | "extern" => parts.find(|it| *it == "fn").and(parts.next()),
        "const" => parts.next().and_then(|it| if it == "fn" { parts.next() } else { Some(it) }),
        kind if kinds.contains(&kind) => parts.next(),
        field => Some(field),
    }
}

/// Items, fields and variants that can be seen outside of their module.
fn item_names(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut variants: Option<usize> = None;
    for (number, line) in code(text) {
        let indent = line.len() - line.trim_start().len();
        found.extend(declared(line).map(|name| (number, name.to_owned())));
        let is_enum =
            line.trim_start().starts_with("pub") && line.contains("enum ") && line.ends_with('{');
        match variants {
            Some(outer) if indent <= outer && line.trim() == "}" => variants = None,
            Some(outer)
                if indent == outer + 4 && line.trim_start().starts_with(char::is_uppercase) =>
            {
                let name = line.trim_start().split(|c: char| !c.is_alphanumeric()).next();
                found.extend(name.map(|name| (number, name.to_owned())));
            }
            None if is_enum => variants = Some(indent),
            _ => {}
        }
    }
    found
}

/// What clap makes help and flags of: comments and names within types that derive its traits.
fn help_texts(text: &str) -> Vec<(usize, String)> {
    const DERIVED: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];
    let mut found = Vec::new();
    let mut is_inside = false;
    for (number, line) in (1..).zip(text.lines()) {
        is_inside |= line.contains("derive(") && DERIVED.iter().any(|name| line.contains(name));
        is_inside &= line != "}";
        if is_inside && !line.trim_start().starts_with("#[derive") {
            found.push((number, line.to_owned()));
        }
    }
    found
}

/// Everything of a scope.
fn all(scope: Scope) -> Vec<Name> {
    let below = |folders: &[&str], extension: &str| {
        let mut found = Vec::new();
        folders.iter().for_each(|folder| files(&root().join(folder), extension, &mut found));
        found
    };
    let each = |paths: Vec<PathBuf>, read: fn(&str) -> Vec<(usize, String)>| {
        paths.iter().flat_map(|path| names(path, read)).collect()
    };
    const CRATES: &[&str] = &["lb-common", "lb-ebpf", "lb-daemon", "lb-cli", "tests"];
    match scope {
        Proto => each(below(&["proto/spillway"], "proto"), proto_names),
        Metrics => each(vec![root().join("docs/metrics.md")], metric_names),
        Items => each(below(CRATES, "rs"), item_names),
        Help => each(below(&["lb-daemon", "lb-cli"], "rs"), help_texts),
    }
}

#[test]
fn names_are_those_of_the_field() {
    let mut broken = Vec::new();
    for scope in EVERYWHERE {
        let names = all(*scope);
        assert!(names.len() > 100, "{scope:?}: only {} names", names.len());
        for row in ROWS.iter().filter(|row| row.scopes.contains(scope)) {
            let is_kernels =
                |name: &Name| KERNEL.iter().any(|kernels| words(&name.text) == kernels);
            let met = names.iter().filter(|name| has(&name.text, row) && !is_kernels(name));
            broken.extend(met.map(|name| {
                let (place, text) = (&name.place, name.text.trim());
                format!("{place}: {text}: not {:?}, but {}", row.word, row.say)
            }));
        }
    }
    assert!(broken.is_empty(), "{} names:\n{}", broken.len(), broken.join("\n"));
}

#[test]
fn a_name_is_its_words() {
    assert_eq!(words("BackendState"), ["backend", "state"]);
    assert_eq!(words("XDPMode_V4"), ["xdp", "mode", "v4"]);
    for (text, row) in [
        ("Unfit", word("unfit", ITEMS, "")),
        ("group_out_of_home", word("out of home", ITEMS, "")),
        ("DISPLACED_GATES", word("gate", ITEMS, "")),
        ("--reach-all", word("reach", ITEMS, "")),
        ("optional Rests rests = 1;", name("Rests", ITEMS, "")),
    ] {
        assert!(has(text, &row), "{text}");
    }
    for (text, row) in [
        ("deadline", word("dead", ITEMS, "")),
        ("aggregate", word("gate", ITEMS, "")),
        ("unreachable", word("reach", ITEMS, "")),
        ("home_out_of", word("out of home", ITEMS, "")),
        ("BAD_HOSTS, hosts", name("HOSTS", ITEMS, "")),
    ] {
        assert!(!has(text, &row), "{text}");
    }
}

#[test]
fn names_are_found_where_they_are_declared() {
    let found = |names: Vec<(usize, String)>| -> Vec<String> {
        names.into_iter().map(|(_, name)| name.trim().to_owned()).collect()
    };
    let items = "\
mod a;
pub(crate) enum B {
    C(u8),
    /// Not D.
    E { f: u8 },
}
struct G;
pub struct H {
    pub i: u8,
    j: u8,
}
pub const fn k() {}
    pub(super) const L: u8 = 1;
pub use m::N;
";
    assert_eq!(found(item_names(items)), ["a", "B", "C", "E", "H", "i", "k", "L"]);
    let metrics = "| metric | kind | labels |\n| `a_total` | counter | `b`, `c` | d |\ntext\n";
    assert_eq!(found(metric_names(metrics)), ["`a_total`", "`b`, `c`"]);
    let help = "#[derive(clap::Args)]\nstruct A {\n    /// Text\n    b: u8,\n}\n/// Other\n";
    assert_eq!(found(help_texts(help)), ["struct A {", "/// Text", "b: u8,"]);
    assert_eq!(found(proto_names("message A { // b\n")), ["message A {"]);
}
