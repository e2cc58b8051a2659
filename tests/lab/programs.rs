//! Programs that run on: started in a namespace, found again by it.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Child;

use anyhow::{Context as _, Result};
use lb_tests::topology::Node;
use serde::{Deserialize, Serialize};

use crate::files::Place;

/// A program of a lab.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct Program {
    /// The node that it runs on.
    pub(crate) node: String,
    /// What its files are called: `webserver.log`, `webserver.pid`.
    pub(crate) name: String,
    /// Its path and arguments.
    pub(crate) command: Vec<String>,
}

impl Program {
    pub(crate) fn new<S: ToString>(
        node: &str,
        name: &str,
        command: impl IntoIterator<Item = S>,
    ) -> Self {
        let command = command.into_iter().map(|word| word.to_string()).collect();
        Self { node: node.into(), name: name.into(), command }
    }

    /// Starts it, and does not wait for anything.
    pub(crate) fn start(&self, place: &Place) -> Result<Child> {
        let folder = place.node_folder(&self.node);
        let node = Node::existing(&place.namespace(&self.node), &self.node, &folder);
        let log = folder.join(format!("{}.log", self.name));
        let out = File::options().create(true).append(true).open(&log);
        let out = out.with_context(|| log.display().to_string())?;
        let (program, arguments) = self.command.split_first().context("a program has a path")?;
        // In a session of its own: a hangup of the terminal does not reach it.
        let mut command = node.command("setsid");
        command.arg(program).args(arguments).stdout(out.try_clone()?).stderr(out);
        let child = command.spawn().with_context(|| format!("start {program}"))?;
        // `nsenter` becomes `setsid`, and that the program: its id is the program's.
        fs::write(folder.join(format!("{}.pid", self.name)), format!("{}\n", child.id()))?;
        Ok(child)
    }

    /// Whether it runs, whoever started it.
    pub(crate) fn runs(&self, place: &Place) -> Result<bool> {
        let pids = pids_in(&[place.namespace(&self.node)])?;
        Ok(pids.into_iter().any(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let words = line.split(|byte| *byte == 0).take(self.command.len());
            words.eq(self.command.iter().map(String::as_bytes))
        }))
    }

    /// The end of its log.
    pub(crate) fn last_words(&self, place: &Place) -> String {
        let log = place.node_folder(&self.node).join(format!("{}.log", self.name));
        let text = fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<_> = text.lines().rev().take(5).collect();
        lines.into_iter().rev().map(|line| format!("\n  {line}")).collect()
    }
}

/// Processes whose network namespace has one of these names. Ended ones that nobody has waited for are none.
pub(crate) fn pids_in(namespaces: &[String]) -> Result<Vec<i32>> {
    // A name without a namespace has the number of an ordinary file; no process has that.
    let number = |name: &String| fs::metadata(Path::new("/run/netns").join(name)).ok();
    let wanted: Vec<_> =
        namespaces.iter().filter_map(number).map(|it| (it.dev(), it.ino())).collect();
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc").context("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // What ends meanwhile has none.
        let Ok(found) = fs::metadata(entry.path().join("ns/net")) else { continue };
        if wanted.contains(&(found.dev(), found.ino())) {
            pids.push(pid);
        }
    }
    Ok(pids)
}
