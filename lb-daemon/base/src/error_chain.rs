//! An error and its causes in one line.

use std::error::Error;

/// The error and its sources, `subject: cause: its cause`, [without error numbers](without_numbers).
pub fn message(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        line.push_str(": ");
        line.push_str(&cause.to_string());
        source = cause.source();
    }
    without_numbers(&line)
}

/// Removes the numbers of operating system errors: `Is a directory`, not `Is a directory (os error 21)`.
pub fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |line, part| line + part.split_once(')').map_or("", |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn numbers_go_wherever_they_stand() {
        assert_eq!(message(&io::Error::from_raw_os_error(21)), "Is a directory");
        let text = "a: No such file or directory (os error 2): b (os error 111)";
        assert_eq!(without_numbers(text), "a: No such file or directory: b");
        assert_eq!(without_numbers("(os errors) are words"), "(os errors) are words");
    }
}
