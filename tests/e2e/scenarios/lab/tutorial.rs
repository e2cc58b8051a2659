//! The tutorial, played: each command of its `console` blocks is run in its order, and what stands below it is in what
//! it prints.

use anyhow::{Context as _, Result, ensure};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;

use super::shell::Shell;

/// Commands that only look: what they print may take a while to be as the tutorial has it.
const LOOKING: [&str; 4] =
    ["spillway status", "spillway regions", "spillway explain", "sudo ip netns exec"];

/// A command, and the lines that it prints.
struct Step {
    command: String,
    lines: Vec<String>,
    /// Whether it prints more than these.
    is_abridged: bool,
}

pub(super) fn is_true(sandbox: &Sandbox) -> Result<()> {
    let mut shell = Shell::new(sandbox, "lab")?;
    let steps = steps(include_str!("../../../../docs/tutorial.md"));
    ensure!(steps.len() > 15, "{} steps", steps.len());
    let mut pinned = Vec::new();
    for step in steps {
        let command = &step.command;
        if command == "cargo xtask lab down" {
            pinned = shell.pinned();
        }
        let is_looking = LOOKING.iter().any(|start| command.starts_with(start));
        if !is_looking || command.ends_with('&') {
            let said = shell.run(command)?;
            ensure!(step.fault(&said).is_none(), "{command}: {:?}\n{said}", step.fault(&said));
            continue;
        }
        let mut last = String::new();
        let seen = until(command, PATIENCE, || {
            last = shell.attempt(command)?.1;
            Ok(step.fault(&last).is_none().then_some(()))
        });
        seen.with_context(|| format!("{:?} in\n{last}", step.fault(&last)))?;
    }
    ensure!(!pinned.is_empty(), "the tutorial ends without `down`");
    shell.nothing_is_left(&pinned)
}

/// The steps of the blocks.
fn steps(page: &str) -> Vec<Step> {
    let blocks = page.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut steps: Vec<Step> = Vec::new();
    for line in blocks.flat_map(str::lines) {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                let (command, lines) = (command.into(), Vec::new());
                steps.push(Step { command, lines, is_abridged: false });
            }
            (None, Some(step)) if line == "…" => step.is_abridged = true,
            (None, Some(step)) => step.lines.push(line.into()),
            (None, None) => {}
        }
    }
    steps
}

impl Step {
    /// What is wrong with a text: a line that is not there, in its order, or one too many.
    fn fault(&self, text: &str) -> Option<String> {
        let mut printed = text.lines().map(plain);
        let mut expected = self.lines.iter().map(|line| plain(line));
        let missing = expected.find(|expected| !printed.any(|line| line == *expected));
        let is_more = !self.is_abridged && text.lines().count() > self.lines.len();
        missing.map(|line| format!("no {line:?}")).or(is_more.then(|| "more lines".into()))
    }
}

/// A line without what differs from run to run: times, rates, counts of answers, and widths of columns.
fn plain(line: &str) -> String {
    let words: Vec<_> = line.split_whitespace().collect();
    let is_node = |word: &str| ["eu", "us"].iter().any(|region| word.starts_with(region));
    // A region's figures, or how often a node answered.
    let is_count = words.iter().take(2).any(|word| is_node(word));
    let plain = words.into_iter().map(|word| {
        let figure = word.strip_suffix(['s', '%']).unwrap_or(word);
        let is_time = figure.len() < word.len() && is_number(figure);
        let is_date = word.ends_with('Z') && word.starts_with("20");
        if is_time || is_date || (is_count && is_number(word)) { "#" } else { word }
    });
    plain.collect::<Vec<_>>().join(" ")
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}
