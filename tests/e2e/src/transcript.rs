//! What a person would see in a shell, as a text: commands after `$ `, what they print, and
//! `[exit status N]` where it is not 0.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// A command and what comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The command, for a shell.
    pub command: String,
    /// What it prints on standard output; digests, and sizes in MiB, stand as `#`.
    pub stdout: String,
    /// What it prints on standard error: all from the first line that begins with `error: ` or
    /// `warning: `.
    pub stderr: String,
    /// Its exit status.
    pub status: i32,
}

/// The steps of the fenced blocks `console` of a document.
pub fn of_document(text: &str) -> Vec<Step> {
    let blocks = text.split("```console\n").skip(1);
    blocks.flat_map(|block| steps(block.split("```").next().unwrap_or_default())).collect()
}

/// The steps of a block.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            let (stdout, stderr) = (String::new(), String::new());
            steps.push(Step { command: command.into(), stdout, stderr, status: 0 });
            continue;
        }
        let Some(step) = steps.last_mut() else { continue };
        let status = line.strip_prefix("[exit status ").and_then(|rest| rest.strip_suffix(']'));
        if let Some(status) = status.and_then(|status| status.parse().ok()) {
            step.status = status;
        } else if line.starts_with("error: ")
            || line.starts_with("warning: ")
            || !step.stderr.is_empty()
        {
            step.stderr += &format!("{line}\n");
        } else {
            step.stdout += &format!("{line}\n");
        }
    }
    for step in &mut steps {
        step.stdout = without_accidents(&step.stdout);
        step.stderr = without_accidents(&step.stderr);
    }
    steps
}

impl Step {
    /// Runs it and compares.
    ///
    /// # Errors
    /// It cannot be run, or something else comes of it.
    pub fn run(&self, command: &mut Command) -> Result<()> {
        let output = command.output().with_context(|| format!("run {}", self.command))?;
        let text = |bytes: &[u8]| without_accidents(&String::from_utf8_lossy(bytes));
        let seen = Self {
            command: self.command.clone(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            status: output.status.code().context("it was killed")?,
        };
        ensure!(seen == *self, "expected {self:#?}\nseen {seen:#?}");
        Ok(())
    }
}

/// The text with `#` for each word of 16 hexadecimal digits, and for each number of MiB: what maps take
/// depends on the machine.
fn without_accidents(text: &str) -> String {
    let is_digest = |word: &str| word.len() == 16 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let is_number = |word: &str| word.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let between = |c: char| !c.is_ascii_alphanumeric() && c != '.';
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(part) = rest.split_inclusive(between).next() {
        rest = &rest[part.len()..];
        let word = part.trim_end_matches(between);
        let (bare, dots) = word.split_at(word.trim_end_matches('.').len());
        let is_size = !bare.is_empty() && is_number(bare) && rest.starts_with("MiB");
        match is_digest(bare) || is_size {
            true => out += &format!("#{dots}{}", &part[word.len()..]),
            false => out += part,
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_read_as_it_looks() {
        let text = "\
words
```console
$ a --b
out 0123456789abcdef, 0123456789abcde. 0123456789abcdef.

more than 72.5 MiB of 10.0.0.1 or 7 GiB
error: it failed
hint: do it
[exit status 7]
$ c
```
$ not this
";
        let step = |command: &str, stdout: &str, stderr: &str, status| Step {
            command: command.into(),
            stdout: stdout.into(),
            stderr: stderr.into(),
            status,
        };
        assert_eq!(
            of_document(text),
            [
                step(
                    "a --b",
                    "out #, 0123456789abcde. #.\n\nmore than # MiB of 10.0.0.1 or 7 GiB\n",
                    "error: it failed\nhint: do it\n",
                    7
                ),
                step("c", "", "", 0),
            ]
        );
    }
}
