//! Names and texts of callers within messages.

use std::fmt;

/// Shows a caller's text quoted, escaped, and cut after 70 characters.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 70;
        match self.0.char_indices().nth(LONGEST) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => write!(f, "{:?}…", &self.0[..end]),
        }
    }
}

/// The name closest to `wrong` by edit distance, if at most a third of its letters differ.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (wrong.chars().count() / 3).max(1);
    let distances = names.into_iter().map(|name| (strsim::osa_distance(wrong, name), name));
    distances.filter(|(distance, _)| (1..=most).contains(distance)).min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_typing_error_is_recognised_and_another_name_is_not_offered() {
        let names = ["web", "dns", "web-internal", "wet"];
        assert_eq!(nearest("wbe", names), Some("web"));
        assert_eq!(nearest("dsn", names), Some("dns"));
        assert_eq!(nearest("web-intrenal", names), Some("web-internal"));
        assert_eq!(nearest("wez", names), Some("web"), "the first by name, of equals");
        assert_eq!(nearest("mail", names), None);
        assert_eq!(nearest("web", ["web"]), None, "equal, not close");
    }
}
