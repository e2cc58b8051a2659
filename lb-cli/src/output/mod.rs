//! Output: each answer is one value, which is printed in one of several formats.

mod grid;

use std::{
    io::{self, IsTerminal as _, Write},
    ops::ControlFlow,
    time::Duration,
};

use self::grid::wrap;
pub(crate) use self::grid::{Grid, WIDTH, fields};
pub(crate) use lb_base::count;

use crate::failure::{Exit, Failure, describe};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns, wrapped at 80 characters where possible.
    #[default]
    Table,
    /// A table with more columns, never wrapped.
    Wide,
    /// One JSON value; `watch` prints one per line.
    Json,
    /// One YAML document; `watch` prints each after a line `---`.
    Yaml,
}

/// An answer that can be printed. Formats take it by reference to the trait: there are dozens of answers, and each would
/// bring a JSON and a YAML serializer of its own.
pub(crate) trait Report: erased_serde::Serialize {
    /// The answer as text; every line ends with a line feed.
    fn table(&self) -> String;

    /// The answer as text with all columns, unwrapped.
    fn wide(&self) -> String {
        self.table()
    }

    /// Sentences to print on standard error.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

erased_serde::serialize_trait_object!(Report);

/// Prints an answer on stdout, and its warnings on stderr.
///
/// # Errors
/// Stdout cannot be written. A reader that stops early (`| head`) is not an error.
pub(crate) fn print(report: &dyn Report, format: Format) -> Result<(), Failure> {
    let text = match format {
        Format::Table => report.table(),
        Format::Wide => report.wide(),
        Format::Json => json(report, true)?,
        Format::Yaml => yaml(report)?,
    };
    write(&text).map(drop)?;
    for warning in report.warnings() {
        print_stderr(&format!("warning: {warning}"));
    }
    Ok(())
}

/// Prints one answer of a stream; breaks once the reader is gone.
///
/// # Errors
/// As [`print()`].
pub(crate) fn print_line(report: &dyn Report, format: Format) -> Result<ControlFlow<()>, Failure> {
    let text = match format {
        Format::Table => report.table(),
        Format::Wide => report.wide(),
        Format::Json => json(report, false)?,
        Format::Yaml => format!("---\n{}", yaml(report)?),
    };
    write(&text)
}

/// Prints a failure on stderr, once: a command that goes on may print it before it ends with it.
pub(crate) fn print_failure(failure: Failure) -> Failure {
    if !failure.is_printed {
        print_stderr(&failure.to_string());
    }
    Failure { is_printed: true, ..failure }
}

/// Prints lines on stderr. A terminal gets them wrapped to its width; pipes and logs get each line whole.
pub(crate) fn print_stderr(text: &str) {
    let is_terminal = io::stderr().is_terminal();
    let size = is_terminal.then(crossterm::terminal::size).and_then(Result::ok);
    // A terminal that was told no size, such as that of `script` or of a serial line, has 0 columns.
    let width = size.map(|(columns, _)| columns.into()).filter(|columns| *columns > 0);
    // Whoever closed it does not want to read it.
    let _ = writeln!(io::stderr(), "{}", wrap_lines(text, width));
}

fn wrap_lines(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.into() };
    text.lines().flat_map(|line| wrap(line, width)).collect::<Vec<_>>().join("\n")
}

fn json(report: &dyn Report, pretty: bool) -> Result<String, Failure> {
    let text =
        if pretty { serde_json::to_string_pretty(report) } else { serde_json::to_string(report) };
    text.map(|t| t + "\n")
        .map_err(|error| Failure::new(Exit::Failure, format!("answer as json: {error}")))
}

fn yaml(report: &dyn Report) -> Result<String, Failure> {
    serde_saphyr::to_string(&report)
        .map_err(|error| Failure::new(Exit::Failure, format!("answer as yaml: {error}")))
}

fn write(text: &str) -> Result<ControlFlow<()>, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(ControlFlow::Continue(())),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        Err(error) => {
            Err(Failure::new(Exit::Failure, format!("standard output: {}", describe(&error))))
        }
    }
}

/// A duration in its two largest units: `3m 20s`, `5d 2h`; below a second `0s`.
pub(crate) fn age(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m {}s", seconds % 60),
        (0, _, _) => format!("{hours}h {}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

/// An RFC 3339 time in UTC without its fraction of a second.
pub(crate) fn whole_seconds(time: &str) -> String {
    match time.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => time.into(),
    }
}

/// A share in percent with two decimal places; 0 of 0 is `-`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".into();
    }
    let hundredths = (u128::from(part) * 10_000 + u128::from(whole) / 2) / u128::from(whole);
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_on_a_terminal_only() {
        let text = "error: service \"web\" does not exist here\nhint: see `spillway service list`";
        assert_eq!(wrap_lines(text, None), text);
        assert_eq!(
            wrap_lines(text, Some(30)),
            "error: service \"web\" does not\nexist here\nhint: see `spillway service\nlist`"
        );
    }

    #[test]
    fn ages_have_at_most_two_units() {
        for (seconds, text) in [
            (0, "0s"),
            (59, "59s"),
            (200, "3m 20s"),
            (3_600, "1h 0m"),
            (86_399, "23h 59m"),
            (439_200, "5d 2h"),
        ] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn shares_are_rounded_to_two_places() {
        assert_eq!(percent(1, 3), "33.33%");
        assert_eq!(percent(2, 3), "66.67%");
        assert_eq!(percent(65_537, 65_537), "100.00%");
        assert_eq!(percent(0, 0), "-");
        assert_eq!(percent(u64::MAX, u64::MAX), "100.00%");
    }
}
