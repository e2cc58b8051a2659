//! What is wrong with a file, and where.

use std::fmt;

use super::{place::line_and_column, told};

/// `line 3, column 7: cause`, lines and columns counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError {
    /// Line and column in characters; `None` if it is about no place in the text.
    pub place: Option<(usize, usize)>,
    /// What is wrong there.
    pub cause: String,
}

impl DocumentError {
    pub(super) fn new(text: &str, error: &toml::de::Error) -> Self {
        let at = error.span().map(|span| span.start);
        let (at, cause) = told::of(text, at, &one_line(error.message()));
        Self { place: at.and_then(|at| line_and_column(text, at)), cause }
    }

    pub(super) fn empty() -> Self {
        let cause = "is empty, by which everything would go; `# nothing` alone means that";
        Self { place: None, cause: cause.into() }
    }

    pub(super) fn unwritable(error: &toml::ser::Error) -> Self {
        Self { place: None, cause: one_line(&error.to_string()) }
    }
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        f.write_str(&self.cause)
    }
}

impl std::error::Error for DocumentError {}
