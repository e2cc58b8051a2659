//! Text on lines of limited width.

/// A text broken between words so that each line has at most `width` characters. A word that is longer,
/// such as a path, stays whole: somebody may copy it.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        match lines.last_mut() {
            Some(line) if used + 1 + length <= width => {
                *line += " ";
                *line += word;
                used += 1 + length;
            }
            _ => {
                lines.push(word.into());
                used = length;
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn lines_break_between_words_and_never_in_one() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("/a/long/path x", 4), ["/a/long/path", "x"]);
        assert!(wrap(" ", 4).is_empty());
    }
}
