use std::fmt;

use super::{MOST, REASON, ReportLine, Utilisation};

/// Why a line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum LineError {
    /// Longer than [`MOST`].
    TooLong,
    /// No known keyword.
    NoKeyword(String),
    /// A known metric without a valid number.
    InvalidNumber(String),
}

impl ReportLine {
    /// Parses a line without its line end.
    ///
    /// # Errors
    /// No known keyword, or an invalid number.
    pub(in super::super) fn parse(line: &[u8]) -> Result<Self, LineError> {
        if line.len() > MOST {
            return Err(LineError::TooLong);
        }
        let line = String::from_utf8_lossy(line);
        let (words, reason) = match line.split_once('#') {
            Some((words, reason)) => (words, Some(clean(reason)).filter(|text| !text.is_empty())),
            None => (&*line, None),
        };
        let mut reader = LineReader { reason, ..LineReader::default() };
        let separate = |c: char| c.is_whitespace() || c == ',';
        for word in words.split(separate).filter(|word| !word.is_empty()) {
            reader.read_word(word)?;
        }
        if !reader.known {
            return Err(LineError::NoKeyword(clean(&line)));
        }
        reader.line.utilisation = reader.application.or(reader.cpu);
        Ok(reader.line)
    }
}

/// Reads the words of a line.
#[derive(Default)]
struct LineReader {
    line: ReportLine,
    reason: Option<String>,
    known: bool,
    cpu: Option<Utilisation>,
    application: Option<Utilisation>,
}

impl LineReader {
    /// Reads a word; unknown ones are skipped.
    fn read_word(&mut self, word: &str) -> Result<(), LineError> {
        let lower = word.to_ascii_lowercase();
        self.known |= match &*lower {
            "up" | "ready" => {
                self.line.ready = true;
                true
            }
            "drain" | "maint" => {
                self.line.drain = Some(self.with_reason(&lower));
                true
            }
            "down" | "failed" | "stopped" => {
                self.line.down = Some(self.with_reason(&lower));
                true
            }
            other => self.read_number(other)?,
        };
        Ok(())
    }

    /// Reads a word with a number; returns whether it is one.
    fn read_number(&mut self, word: &str) -> Result<bool, LineError> {
        if let Some(digits) = word.strip_suffix('%') {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            if is_number {
                // A number that does not fit is over 100.
                self.line.percent =
                    Some(digits.parse().map_or(100, |percent: u8| percent.min(100)));
            }
            return Ok(is_number);
        }
        if let Some(most) = word.strip_prefix("maxconn:") {
            return Ok(!most.is_empty() && most.bytes().all(|byte| byte.is_ascii_digit()));
        }
        let Some((metric, value)) = word.split_once('=') else { return Ok(false) };
        let utilisation = || {
            let share = value.parse().ok().filter(|share: &f64| share.is_finite());
            let of = share.and_then(Utilisation::new);
            of.ok_or_else(|| LineError::InvalidNumber(clean(word)))
        };
        match metric {
            "cpu_utilization" => self.cpu = Some(utilisation()?),
            "application_utilization" => self.application = Some(utilisation()?),
            _ => {}
        }
        Ok(!metric.is_empty())
    }

    /// `drain`, or `drain (kernel update)`.
    fn with_reason(&self, word: &str) -> String {
        match &self.reason {
            Some(reason) => format!("{word} ({reason})"),
            None => word.to_owned(),
        }
    }
}

/// A backend's text as it is shown: short, only letters, digits and ASCII punctuation.
fn clean(text: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || c.is_ascii_graphic() { c } else { ' ' };
    let words: Vec<String> =
        text.split_whitespace().map(|word| word.chars().map(plain).collect()).collect();
    let text = words.join(" ").trim().to_owned();
    match text.char_indices().nth(REASON) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "the line is over {MOST} bytes"),
            Self::NoKeyword(line) if line.is_empty() => f.write_str("the line is empty"),
            Self::NoKeyword(line) => write!(f, "no agent keyword in {line:?}"),
            Self::InvalidNumber(metric) => write!(f, "invalid number in {metric:?}"),
        }
    }
}
