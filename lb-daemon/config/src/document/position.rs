//! Positions in the text of a file: of a field that validation refused, and of headers.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// Fields and lists that a file calls otherwise than the message: in a file the unit is part of the value.
const NAMES: [(&str, &str); 9] = [
    ("regions", "region"),
    ("health_checks", "health_check"),
    ("pools", "pool"),
    ("services", "service"),
    ("vips", "vip"),
    ("backends", "backend"),
    ("groups", "group"),
    ("capacity_per_second", "capacity"),
    ("max_connection_rate_per_second", "max_connection_rate"),
];

/// The first of these are the lists at the top. Objects have fields that are called as these lists are in a file.
const TOP: usize = 5;

/// The message's name of a field of a file, or of an object in it.
pub(super) fn message_name(in_file: &str, is_top: bool) -> &str {
    let names = if is_top { &NAMES[..TOP] } else { &NAMES[TOP..] };
    names.iter().find(|(_, file)| *file == in_file).map_or(in_file, |(message, _)| message)
}

/// Line and column, counted from 1, of the field at `path`, such as `services[2].port`. If the file leaves the field
/// out, those of its object; `None` if the file has neither.
pub fn find_field(text: &str, path: &str) -> Option<(usize, usize)> {
    let document = DeTable::parse(text).ok()?;
    line_and_column(text, find(document.get_ref(), path)?)
}

/// As [`find_field`]: the byte.
pub(super) fn find(document: &DeTable<'_>, path: &str) -> Option<usize> {
    let mut table = document;
    let mut found = None;
    for step in path.split('.') {
        let Some((at, next)) = descend(table, step) else { break };
        found = Some(at);
        match next {
            DeValue::Table(next) => table = next,
            _ => break,
        }
    }
    found
}

/// One step of a path: where it leads, and what is there.
fn descend<'t, 'i>(table: &'t DeTable<'i>, step: &str) -> Option<(usize, &'t DeValue<'i>)> {
    let (list, index) = match step.strip_suffix(']').and_then(|step| step.split_once('[')) {
        Some((list, index)) => (list, Some(index.parse::<usize>().ok()?)),
        None => (step, None),
    };
    let name = match NAMES.iter().find(|(message, _)| *message == list) {
        // A pool names its checks by a field that is called like their list.
        Some(_) if index.is_none() && list == "health_checks" => list,
        Some((_, file)) => file,
        None => list,
    };
    let (key, value) = table.get_key_value(name)?;
    match (value.get_ref(), index) {
        (DeValue::Array(items), Some(index)) => items.get(index).map(start),
        (value, _) => Some((key.span().start, value)),
    }
}

fn start<'t, 'i>(item: &'t Spanned<DeValue<'i>>) -> (usize, &'t DeValue<'i>) {
    (item.span().start, item.get_ref())
}

/// Line and column of a byte, in characters from 1.
pub fn line_and_column(text: &str, at: usize) -> Option<(usize, usize)> {
    let before = text.get(..at)?;
    let line = before.rsplit('\n').next().unwrap_or_default();
    Some((before.matches('\n').count() + 1, line.chars().count() + 1))
}

/// A line `[pool]` or `[[pool.backend]]`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    /// Where its first bracket is.
    pub(super) at: usize,
    /// One, or two for a list.
    pub(super) brackets: usize,
    /// The keys in them.
    pub(super) path: Vec<&'a str>,
}

impl<'a> Header<'a> {
    /// The header on the line of a byte.
    pub(super) fn at(text: &'a str, at: usize) -> Option<Self> {
        let start = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
        Self::read(text[start..].lines().next()?, start)
    }

    fn read(line: &'a str, start: usize) -> Option<Self> {
        let indented = line.len() - line.trim_start().len();
        let inner = line.trim_start().strip_prefix('[')?;
        let (brackets, inner) = inner.strip_prefix('[').map_or((1, inner), |inner| (2, inner));
        let (path, _) = inner.split_once(']')?;
        let path: Vec<_> = path.split('.').map(str::trim).collect();
        let is_bare =
            |step: &&str| step.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        path.iter().all(is_bare).then_some(Self { at: start + indented, brackets, path })
    }

    /// Its keys as they are written.
    pub(super) fn name(&self) -> String {
        self.path.join(".")
    }
}

/// The headers of a text. What looks like one in a text over several lines counts too; the errors that this is asked
/// for are about headers of the same name.
pub(super) fn headers(text: &str) -> impl Iterator<Item = Header<'_>> {
    let lines = text.split_inclusive('\n').scan(0, |start, line| {
        let at = *start;
        *start += line.len();
        Some((at, line))
    });
    lines.filter_map(|(at, line)| Header::read(line.trim_end_matches(['\n', '\r']), at))
}

#[cfg(test)]
mod tests {
    use super::find_field;

    const FILE: &str = "\
hash_key = \"x\"

[[region]]
name = \"eu\"

[[health_check]]
name = \"http\"
port = 80
http = { path = \"x\", host = \"ä\", status_min = 99 }

[[health_check]]
name = \"other\"
port = 80
[health_check.http]
path = \"x\"

[[pool]]
name = \"web\"
health_checks = [\"http\"]

  [[pool.group]]
  region = \"eu\"
  capacity = \"1/s\"

  [[pool.backend]]
  address = \"10.0.0.1\"
  region = \"eu\"
  max_connection_rate = \"1/s\"

  [[pool.backend]]
  region = \"eu\"
  address = \"10.0.0.2\"

[[service]]
name = \"web\"
port = 70000
[[vip]]
prefix = \"192.0.2.1\"
";

    #[test]
    fn a_field_is_found_and_where_it_is_missing_its_object() {
        for (path, expected) in [
            ("hash_key", (1, 1)),
            ("regions[0].name", (4, 1)),
            ("regions[0].overflow_to", (3, 1)),
            ("health_checks[0].http.path", (9, 10)),
            ("health_checks[0].http.status_min", (9, 34)),
            ("health_checks[1].http.path", (15, 1)),
            ("pools[0].health_checks", (19, 1)),
            ("pools[0].groups[0].capacity_per_second", (23, 3)),
            ("pools[0].groups[0].scaler", (21, 3)),
            ("pools[0].backends", (25, 10)),
            ("pools[0].backends[0].max_connection_rate_per_second", (28, 3)),
            ("pools[0].backends[1].address", (32, 3)),
            ("pools[0].backends[1].weight", (30, 3)),
            ("services[0].port", (36, 1)),
            ("vips[0].prefix", (38, 1)),
            ("vips[0].unserved", (37, 1)),
        ] {
            let found = find_field(FILE, path);
            assert_eq!(found, Some(expected), "{path}");
        }
        for path in ["", "regions[1].name", "services[x].port", "nothing"] {
            assert_eq!(find_field(FILE, path), None, "{path}");
        }
        assert_eq!(find_field("[[region", "regions[0].name"), None);
    }
}
