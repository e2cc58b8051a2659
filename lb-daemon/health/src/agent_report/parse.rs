use std::fmt;

use super::{MOST, REASON, Utilisation, Word};

/// Why a line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Unreadable {
    /// It is longer than [`MOST`].
    TooLong,
    /// There is no word in it that means anything here.
    NoWord(String),
    /// A metric that is looked at has no number of its kind.
    NoNumber(String),
}

impl Word {
    /// What a line says; its end is not in it.
    ///
    /// # Errors
    /// It says nothing that can be read.
    pub(in super::super) fn parse(line: &[u8]) -> Result<Self, Unreadable> {
        if line.len() > MOST {
            return Err(Unreadable::TooLong);
        }
        let line = String::from_utf8_lossy(line);
        let (words, reason) = match line.split_once('#') {
            Some((words, reason)) => (words, Some(clean(reason)).filter(|text| !text.is_empty())),
            None => (&*line, None),
        };
        let mut said = Said { reason, ..Said::default() };
        let separate = |c: char| c.is_whitespace() || c == ',';
        for word in words.split(separate).filter(|word| !word.is_empty()) {
            said.hear(word)?;
        }
        if !said.known {
            return Err(Unreadable::NoWord(clean(&line)));
        }
        said.word.utilisation = said.application.or(said.cpu);
        Ok(said.word)
    }
}

/// What the words of a line said so far.
#[derive(Default)]
struct Said {
    word: Word,
    reason: Option<String>,
    known: bool,
    cpu: Option<Utilisation>,
    application: Option<Utilisation>,
}

impl Said {
    /// Takes a word; one that means nothing here is read over.
    fn hear(&mut self, word: &str) -> Result<(), Unreadable> {
        let lower = word.to_ascii_lowercase();
        self.known |= match &*lower {
            "up" | "ready" => {
                self.word.ready = true;
                true
            }
            "drain" | "maint" => {
                self.word.drain = Some(self.because(&lower));
                true
            }
            "down" | "failed" | "stopped" => {
                self.word.down = Some(self.because(&lower));
                true
            }
            other => self.number(other)?,
        };
        Ok(())
    }

    /// The same of words with a number; whether it is one.
    fn number(&mut self, word: &str) -> Result<bool, Unreadable> {
        if let Some(digits) = word.strip_suffix('%') {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            if is_number {
                // What does not fit is over 100 as well.
                self.word.percent =
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
            of.ok_or_else(|| Unreadable::NoNumber(clean(word)))
        };
        match metric {
            "cpu_utilization" => self.cpu = Some(utilisation()?),
            "application_utilization" => self.application = Some(utilisation()?),
            _ => {}
        }
        Ok(!metric.is_empty())
    }

    /// `drain`, or `drain (kernel update)`.
    fn because(&self, word: &str) -> String {
        match &self.reason {
            Some(reason) => format!("{word} ({reason})"),
            None => word.to_owned(),
        }
    }
}

/// Text of a backend as it may be shown: short, and of letters, digits and plain signs alone.
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

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => write!(f, "the line is over {MOST} bytes"),
            Self::NoWord(line) if line.is_empty() => f.write_str("the line is empty"),
            Self::NoWord(line) => write!(f, "no word of an agent in {line:?}"),
            Self::NoNumber(metric) => write!(f, "no share in {metric:?}"),
        }
    }
}
