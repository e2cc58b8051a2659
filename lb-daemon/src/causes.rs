//! Errors with their causes, in one line.

use std::error::Error;

/// The error and what caused it: `subject: cause: its cause`.
pub fn of(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        line.push_str(": ");
        line.push_str(&cause.to_string());
        source = cause.source();
    }
    line
}
