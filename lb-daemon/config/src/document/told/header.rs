//! Headers of tables in a text that need not be right TOML.

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
pub(super) fn all(text: &str) -> impl Iterator<Item = Header<'_>> {
    let lines = text.split_inclusive('\n').scan(0, |start, line| {
        let at = *start;
        *start += line.len();
        Some((at, line))
    });
    lines.filter_map(|(at, line)| Header::read(line.trim_end_matches(['\n', '\r']), at))
}
