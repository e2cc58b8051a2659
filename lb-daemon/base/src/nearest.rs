//! Names that are nearly another.

/// The name that was meant, probably: the one that the fewest letters tell from `wrong`, if they are
/// few for its length.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (wrong.chars().count() / 3).max(1);
    let distances = names.into_iter().map(|name| (strsim::osa_distance(wrong, name), name));
    distances.filter(|(distance, _)| (1..=most).contains(distance)).min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_recognised_and_another_name_is_not_offered() {
        let names = ["web", "dns", "web-internal", "wet"];
        assert_eq!(nearest("wbe", names), Some("web"));
        assert_eq!(nearest("dsn", names), Some("dns"));
        assert_eq!(nearest("web-intrenal", names), Some("web-internal"));
        assert_eq!(nearest("wez", names), Some("web"), "of equals the first by name");
        assert_eq!(nearest("mail", names), None);
        assert_eq!(nearest("web", ["web"]), None, "it is that one");
    }
}
