//! What is wrong with a file, and where.

use std::fmt;

use lb_base::{FirstOf, count, nearest};
use lb_model::bounds;
use toml::de::DeTable;

use super::position::{Header, find, headers, line_and_column};
use crate::{Invalid, MOST_MISTAKES};

/// All mistakes of a file, in its order. As text, the first, and how many more there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError {
    /// `line 3, column 7: cause` each, lines and columns counted from 1; at most [`MOST_MISTAKES`].
    mistakes: Vec<String>,
    /// Mistakes beyond these.
    left_out: LeftOut,
}

/// Mistakes that are counted, but not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) count: usize,
    /// Whether there may be more than are counted.
    pub(super) may_be_more: bool,
}

/// A mistake, and its byte; `None`: it concerns the whole text.
pub(super) type Mistake = (Option<usize>, String);

impl DocumentError {
    pub(super) fn new(text: &str, mut mistakes: Vec<Mistake>, mut left_out: LeftOut) -> Self {
        mistakes.sort_by_key(|(at, _)| *at);
        left_out.count += mistakes.len().saturating_sub(MOST_MISTAKES);
        let shown = mistakes.into_iter().take(MOST_MISTAKES).map(|(at, cause)| {
            match at.and_then(|at| line_and_column(text, at)) {
                Some((line, column)) => format!("line {line}, column {column}: {cause}"),
                None => cause,
            }
        });
        Self { mistakes: shown.collect(), left_out }
    }

    /// What validation refused of a file.
    pub fn invalid(text: &str, invalid: &Invalid) -> Self {
        let document = DeTable::parse(text).ok();
        let mistakes = located(document.as_ref().map(|it| it.get_ref()), invalid);
        let count = invalid.count() - invalid.mistakes().len();
        Self::new(text, mistakes, LeftOut { count, may_be_more: false })
    }

    pub(super) fn empty() -> Self {
        let cause =
            "is empty, which would remove everything; if that is meant, write only `# nothing`";
        Self { mistakes: vec![cause.into()], left_out: LeftOut::default() }
    }

    pub(super) fn unwritable(error: &toml::ser::Error) -> Self {
        Self { mistakes: vec![one_line(&error.to_string())], left_out: LeftOut::default() }
    }

    /// A line for each mistake, and one that says how many more there are.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let LeftOut { count: left_out, may_be_more } = self.left_out;
        let at_least = if may_be_more { "at least " } else { "" };
        let more = || format!("{at_least}{}", count(left_out as u64, "more mistake"));
        let more = (left_out > 0).then(more);
        self.mistakes.iter().cloned().chain(more)
    }
}

/// The mistakes of a message, where they are in the file that it comes from.
pub(super) fn located(document: Option<&DeTable<'_>>, invalid: &Invalid) -> Vec<Mistake> {
    let at = |path: &str| document.and_then(|document| find(document, path));
    invalid.mistakes().iter().map(|it| (at(&it.path()), it.to_string())).collect()
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.mistakes.first().map_or("", |first| first);
        FirstOf(first, self.mistakes.len() + self.left_out.count).fmt(f)
    }
}

impl std::error::Error for DocumentError {}

/// Lists of a file, whose headers have two brackets; the last two are in a pool.
const LISTS: [&str; 7] = ["region", "health_check", "pool", "service", "vip", "backend", "group"];

/// A parser's error in the words of someone who writes the file. `field` is what a mistake in a value, and `object` what any
/// other is about, both with a colon at the end, unless it is about the form of a header.
pub(super) fn explain(
    text: &str,
    error: &toml::de::Error,
    (object, field): (&str, &str),
) -> Mistake {
    let at = error.span().map(|span| span.start);
    let message = &one_line(error.message());
    if let Some(found) = at.and_then(|at| one_bracket(text, at, message)) {
        return found;
    }
    let (at, cause) = reworded(text, at, message);
    let subject = if cause.starts_with("unknown field ") { object } else { field };
    (at, format!("{subject}{cause}"))
}

fn reworded(text: &str, at: Option<usize>, message: &str) -> Mistake {
    if let Some(cause) = at.and_then(|at| typographic(text, at, message)) {
        return (at, cause);
    }
    let line = at.and_then(|at| Line::at(text, at));
    let key = line.as_ref().map_or("", |line| line.key);
    if let Some(cause) = at.and_then(|at| misspelt(text, at, message)) {
        return (at, cause);
    }
    if let Some(value) = line.as_ref().and_then(Line::unquoted) {
        let at = line.as_ref().map(|line| line.value_at);
        let cause = match bounds::field_range(key) {
            Some(range) => {
                format!("{value} is not a number from {} to {}", range.start(), range.end())
            }
            None => format!("{value} is not a number; put text in quotes: {key} = \"{value}\""),
        };
        return (at, cause);
    }
    if message == "wanted string or table" {
        return (at, "give a text in quotes".into());
    }
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return (at, message.into());
    };
    let expected = match (expected, bounds::field_range(key)) {
        ("u32" | "a nonzero u32", Some(range)) => {
            format!("a number from {} to {}", range.start(), range.end())
        }
        ("u32", None) => "a whole number".into(),
        ("a nonzero u32", None) => "a whole number from 1".into(),
        ("f64", _) => "a number".into(),
        (expected, _) if expected.starts_with("struct ") => "a table".into(),
        ("a sequence", _) => {
            match found.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"')) {
                Some((text, _)) => format!("a list: {key} = [\"{text}\"]"),
                None => "a list".into(),
            }
        }
        (expected, _) => expected.into(),
    };
    (at, format!("{found}, expected {expected}"))
}

/// What is wrong with a TOML text that the parser refused at a byte with a message, if the cause is a character that a word
/// processor put in place of the one that was typed: there, or before it on the line, if a string did not end where it was
/// meant to.
pub fn typographic(text: &str, at: usize, message: &str) -> Option<String> {
    let is_quote = |c: char| "“”„‟‘’‚‛«»‹›″′❝❞❛❜〝〞〟＂＇".contains(c);
    let (before, after) = text.split_at_checked(at)?;
    let stopped_at = after.chars().next()?;
    if is_quote(stopped_at) {
        return Some(format!(
            "{} is a typographic quotation mark; write straight ones: \"…\"",
            coded(stopped_at)
        ));
    }
    if stopped_at.is_whitespace() && !stopped_at.is_ascii() {
        let code = u32::from(stopped_at);
        return Some(format!("here is a blank (U+{code:04X}) that is no space; write a space"));
    }
    let is_open = ["invalid basic string", "invalid literal string", "missing comma between"]
        .iter()
        .any(|it| message.starts_with(it));
    let line = before.rsplit('\n').next()?;
    let mark = line.chars().rfind(|c| is_quote(*c)).filter(|_| is_open)?;
    Some(format!(
        "{message}; {} before it is a typographic quotation mark and ends no string",
        coded(mark)
    ))
}

fn coded(c: char) -> String {
    format!("{c} (U+{:04X})", u32::from(c))
}

/// A list whose header has one bracket: serde reports a map instead of a list, or TOML a duplicate key.
fn one_bracket(text: &str, at: usize, message: &str) -> Option<Mistake> {
    let header = Header::at(text, at)?;
    let (last, outer) = header.path.split_last()?;
    if message == "invalid type: map, expected a sequence" && header.brackets == 2 {
        // The outer list does not exist yet, so TOML made it a table.
        let list = outer.first()?;
        let cause = format!("`[[{}]]`: needs a `[[{list}]]` before it", header.name());
        return Some((Some(at), cause));
    }
    if !LISTS.contains(last)
        || !matches!(message, "invalid type: map, expected a sequence" | "duplicate key")
    {
        return None;
    }
    let wrong = headers(text).find(|it| it.brackets == 1 && it.path == header.path)?;
    let name = wrong.name();
    Some((Some(wrong.at), format!("`[{name}]`: write `[[{name}]]`, with two brackets")))
}

/// A misspelt name: suggests the expected one.
fn misspelt(text: &str, at: usize, message: &str) -> Option<String> {
    let quoted =
        |text: &str| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let (found, expected) = message.split_once(", expected ")?;
    let (expected, wrong) = (quoted(expected), quoted(found).into_iter().next()?);
    let names = || expected.iter().map(String::as_str);
    if found.starts_with("unknown variant ") {
        // Only capitals are corrected: a word with other letters may mean something else.
        let meant = names().find(|name| name.eq_ignore_ascii_case(&wrong))?;
        return Some(format!("{found}: write \"{meant}\""));
    }
    if !found.starts_with("unknown field ") {
        return None;
    }
    let lower = wrong.to_ascii_lowercase();
    let meant = match lower.trim_end_matches('s') {
        inner @ ("backend" | "group") if names().any(|name| name == "pool") => {
            format!("[[pool.{inner}]]")
        }
        _ => {
            let same = names().find(|name| *name == lower);
            let meant = same.or_else(|| nearest(&lower, names()))?;
            match Header::at(text, at) {
                Some(header) if LISTS.contains(&meant) => {
                    let outer = header.path.iter().take_while(|step| **step != wrong);
                    format!("[[{}]]", outer.copied().chain([meant]).collect::<Vec<_>>().join("."))
                }
                _ => meant.to_owned(),
            }
        }
    };
    Some(format!("{found}: did you mean `{meant}`?"))
}

/// A line `key = value`, or the end of one, as in a table on one line.
struct Line<'a> {
    key: &'a str,
    /// The text from the value on, but for a comment.
    value: &'a str,
    /// Where it begins in the whole text.
    value_at: usize,
}

impl<'a> Line<'a> {
    /// The line around a byte that is in a value.
    fn at(text: &'a str, at: usize) -> Option<Self> {
        let start = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
        let line = text[start..].lines().next()?;
        let before = line.get(..line.len().min(at - start))?;
        // Of several on a line the last one before it; of none, the one that begins the line.
        let equals = before.rfind('=').or_else(|| line.find('='))?;
        let key = line[..equals].trim_end();
        let begins = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let key = key.rsplit(begins).next().unwrap_or_default();
        let value = line[equals + 1..].split('#').next().unwrap_or_default();
        let value_at = start + equals + 1 + (value.len() - value.trim_start().len());
        Some(Self { key, value: value.trim(), value_at })
    }

    /// The value, if it is a text that lacks its quotes.
    fn unquoted(&self) -> Option<&'a str> {
        let Self { key, value, .. } = self;
        let begins = value.starts_with(|c: char| c.is_ascii_alphanumeric() || "-:/.*".contains(c));
        let plain = !value.contains(['"', '\'', ',', '{', '}', '[', ']', '=']);
        let bare = begins && plain && !key.is_empty();
        (bare && DeTable::parse(&format!("x = {value}")).is_err()).then_some(*value)
    }
}
