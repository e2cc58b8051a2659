//! A bench that measures what it is asked for, and the one that asks.

use std::io::{BufRead as _, BufReader, Lines, Write as _, stdin, stdout};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use nix::sched::{CloneFlags, unshare};

use crate::cases::Case;
use crate::measure::Bench;
use crate::peer_program::{PeerProgram, PeerSource};
use crate::question::{Answer, CaseName, Hello, Question, Sample};

/// Answers questions until standard input ends. With `realtime` no ordinary process takes the CPU during a test run. With
/// `peer` that program is what is measured.
///
/// # Errors
/// Objects that cannot be loaded, or a line that is no question.
pub(crate) fn serve(objects: &Path, realtime: bool, peer: Option<&PeerSource>) -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET).context("make a network namespace")?;
    let mut bench = Bench::load(objects, realtime, peer.map(PeerProgram::load).transpose()?)?;
    say(&Hello { cases: bench.cases().map(Case::name).collect() })?;
    for line in stdin().lines() {
        let line = line.context("read a question")?;
        let question: Question =
            serde_json::from_str(&line).with_context(|| format!("no question: {line}"))?;
        say(&answer(&mut bench, &question))?;
    }
    Ok(())
}

fn answer(bench: &mut Bench, question: &Question) -> Answer {
    let rounds = 0..question.rounds;
    let samples = rounds.map(|_| bench.round(&question.name, question.packets)).collect();
    match samples {
        Ok(samples) => Answer::Samples(samples),
        Err(error) => Answer::Error(format!("{error:#}")),
    }
}

fn say(line: &impl serde::Serialize) -> Result<()> {
    let mut out = stdout().lock();
    serde_json::to_writer(&mut out, line)?;
    out.write_all(b"\n").and_then(|()| out.flush()).context("answer")
}

/// A bench that serves, in a process of its own. It ends when this value goes.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
    /// What it measures.
    pub(crate) cases: Vec<CaseName>,
}

impl Server {
    /// Starts a bench program and waits until it has loaded its objects.
    ///
    /// # Errors
    /// A program that cannot be started or does not serve.
    pub(crate) fn start(program: &Path, objects: &Path, realtime: bool) -> Result<Self> {
        Self::start_with(program, objects, realtime, None)
    }

    /// The same of one that measures another balancer's program.
    ///
    /// # Errors
    /// As there, and a program that cannot be loaded.
    pub(crate) fn start_with(
        program: &Path,
        objects: &Path,
        realtime: bool,
        peer: Option<&PeerSource>,
    ) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg("--serve").arg("--objects").arg(objects);
        if realtime {
            command.arg("--realtime");
        }
        if let Some(PeerSource { script, pins }) = peer {
            command.arg("--peer-program").arg(script).arg("--pins").arg(pins);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{}: start", program.display()))?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("the bench has no standard output")?;
        let output = BufReader::new(output).lines();
        let mut server = Self { child, input, output, cases: Vec::new() };
        let hello: Hello = server.read().with_context(|| program.display().to_string())?;
        server.cases = hello.cases;
        Ok(server)
    }

    /// One round of so many packets.
    ///
    /// # Errors
    /// What it could not measure, or that it ended.
    pub(crate) fn round(&mut self, name: &CaseName, packets: u32) -> Result<Sample> {
        let question = Question { name: name.clone(), rounds: 1, packets };
        let mut line = serde_json::to_vec(&question)?;
        line.push(b'\n');
        let input = self.input.as_mut().context("the bench has no standard input")?;
        input.write_all(&line).with_context(|| format!("ask for {name}"))?;
        match self.read().with_context(|| name.to_string())? {
            Answer::Samples(samples) => {
                ensure!(samples.len() == 1, "{name}: {} samples of one round", samples.len());
                Ok(samples[0])
            }
            Answer::Error(error) => bail!("{name}: {error}"),
        }
    }

    fn read<T: serde::de::DeserializeOwned>(&mut self) -> Result<T> {
        let Some(line) = self.output.next() else {
            let status = self.child.wait().context("wait for the bench")?;
            bail!("the bench ended early ({status})");
        };
        let line = line.context("read from the bench")?;
        serde_json::from_str(&line).with_context(|| format!("the bench said: {line}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The end of its input is its end; if it has ended already, there is nothing to wait for.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// Whether a bench program has this mode: those of older revisions have not.
///
/// # Errors
/// A program that cannot be run.
pub(crate) fn serves(program: &Path) -> Result<bool> {
    let output = Command::new(program)
        .arg("--help")
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{}: start", program.display()))?;
    ensure!(
        output.status.success(),
        "{} --help: {}: {}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).contains("--serve"))
}
