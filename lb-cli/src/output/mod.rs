//! Output: each answer is one value, and every form is made from it.

mod grid;
mod words;
mod wrap;

use std::{
    io::{self, IsTerminal as _, Write},
    ops::ControlFlow,
};

pub(crate) use grid::Grid;
pub(crate) use words::{age, count, fields, percent, whole_seconds};
pub(crate) use wrap::wrap;

use crate::{
    exit::Exit,
    failure::{Failure, describe},
};

/// Widest line of a table where its words allow a break.
pub(crate) const WIDTH: u16 = 80;

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Form {
    /// Aligned columns for people, at most 80 wide where the words allow it.
    #[default]
    Table,
    /// The same with more columns, as wide as they are.
    Wide,
    /// One JSON value; of `watch`, one a line.
    Json,
    /// One YAML document; of `watch`, one each, after a line `---`.
    Yaml,
}

/// An answer.
pub(crate) trait Report: serde::Serialize {
    /// The answer for people; every line ends with a line feed.
    fn table(&self) -> String;

    /// The same with all there is to say, however wide.
    fn wide(&self) -> String {
        self.table()
    }

    /// What goes with it to standard error, a sentence each.
    fn warnings(&self) -> &[String] {
        &[]
    }
}

/// Prints an answer on stdout, and on stderr what is to be warned of.
///
/// # Errors
/// Stdout cannot be written; a reader that went away (`| head`) is no error.
pub(crate) fn print(report: &impl Report, form: Form) -> Result<(), Failure> {
    let text = match form {
        Form::Table => report.table(),
        Form::Wide => report.wide(),
        Form::Json => json(report, true)?,
        Form::Yaml => yaml(report)?,
    };
    write(&text).map(drop)?;
    for warning in report.warnings() {
        tell(&format!("warning: {warning}"));
    }
    Ok(())
}

/// Prints an answer as one of many, on one line; says whether somebody still reads.
///
/// # Errors
/// As [`print`].
pub(crate) fn print_line(report: &impl Report, form: Form) -> Result<ControlFlow<()>, Failure> {
    let text = match form {
        Form::Table => report.table(),
        Form::Wide => report.wide(),
        Form::Json => json(report, false)?,
        Form::Yaml => format!("---\n{}", yaml(report)?),
    };
    write(&text)
}

/// Prints lines on stderr. On a terminal they are broken between words to its width; anywhere else, as in
/// pipes and logs, each stays one line.
pub(crate) fn tell(text: &str) {
    let is_terminal = io::stderr().is_terminal();
    let size = is_terminal.then(crossterm::terminal::size).and_then(Result::ok);
    eprintln!("{}", broken(text, size.map(|(columns, _)| columns.into())));
}

fn broken(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.into() };
    text.lines().flat_map(|line| wrap(line, width)).collect::<Vec<_>>().join("\n")
}

fn json(report: &impl Report, pretty: bool) -> Result<String, Failure> {
    let text =
        if pretty { serde_json::to_string_pretty(report) } else { serde_json::to_string(report) };
    text.map(|t| t + "\n")
        .map_err(|error| Failure::new(Exit::Failure, format!("answer as json: {error}")))
}

fn yaml(report: &impl Report) -> Result<String, Failure> {
    serde_saphyr::to_string(report)
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

#[cfg(test)]
mod tests {
    use super::broken;

    #[test]
    fn lines_are_broken_on_a_terminal_only() {
        let text =
            "error: service web: there is none of this name\nhint: see `spillway service list`";
        assert_eq!(broken(text, None), text);
        assert_eq!(
            broken(text, Some(30)),
            "error: service web: there is\nnone of this name\nhint: see `spillway service\nlist`"
        );
    }
}
