//! What a person would see in a shell, as a text: commands after `$ `, what they print, and
//! `[exit status N]` where it is not 0.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// A command and what comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The command, for a shell.
    pub command: String,
    /// What it prints on standard output; digests stand as `#`.
    pub stdout: String,
    /// What it prints on standard error: all from the first line that begins with `error: `.
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
        } else if line.starts_with("error: ") || !step.stderr.is_empty() {
            step.stderr += &format!("{line}\n");
        } else {
            step.stdout += &format!("{line}\n");
        }
    }
    for step in &mut steps {
        step.stdout = without_digests(&step.stdout);
        step.stderr = without_digests(&step.stderr);
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
        let text = |bytes: &[u8]| without_digests(&String::from_utf8_lossy(bytes));
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

/// The text with `#` for each word of 16 hexadecimal digits.
fn without_digests(text: &str) -> String {
    let is_digest = |word: &str| word.len() == 16 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let between = |c: char| !c.is_ascii_alphanumeric();
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(between) {
        let word = part.trim_end_matches(between);
        match is_digest(word) {
            true => out += &format!("#{}", &part[word.len()..]),
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
out 0123456789abcdef, 0123456789abcde.

more
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
                    "out #, 0123456789abcde.\n\nmore\n",
                    "error: it failed\nhint: do it\n",
                    7
                ),
                step("c", "", "", 0),
            ]
        );
    }
}
