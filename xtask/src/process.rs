//! Running other programs.

use std::io::{PipeWriter, Read, pipe};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use crate::progress::{Exceeded, Limits, Progress, used_cpu_time};
use crate::signals::{self, Directed, Target};
use crate::ui;

/// A program to run: as the user, or as root behind a holder that reads our pipe.
pub(crate) struct Job {
    pub(crate) command: Command,
    pub(crate) holder: Option<PipeWriter>,
}

impl From<Command> for Job {
    fn from(command: Command) -> Self {
        Self { command, holder: None }
    }
}

/// Runs to the end, with our own output.
pub(crate) fn run(job: impl Into<Job>) -> Result<ExitStatus> {
    let Job { mut command, holder } = job.into();
    let name = name(&command);
    let (mut child, directed) = signals::direct(|| {
        let child = spawn(&mut command, &name)?;
        let target = match holder {
            Some(pipe) => Target::Held(pipe),
            None => Target::Process(pid(&child)),
        };
        Ok((child, target))
    })?;
    drop(command);
    let status = child.wait().with_context(|| name.clone())?;
    drop(directed);
    signals::check()?;
    Ok(status)
}

/// Runs to the end, with our own output; a failure is an error.
pub(crate) fn check(job: impl Into<Job>) -> Result<()> {
    let job = job.into();
    let name = name(&job.command);
    let status = run(job)?;
    if !status.success() {
        bail!("{name}: {status}");
    }
    Ok(())
}

/// What a program prints on its standard output. A failure is an error with what it complained of.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let name = name(command);
    let (output, _) = output(command.stderr(Stdio::piped()))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("{name}: {}: {}", output.status, complaint.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{name}: output is not text"))
}

/// Runs to the end and keeps its standard output, and its standard error where that is piped; and the CPU time that it
/// used.
pub(crate) fn output(command: &mut Command) -> Result<(Output, Duration)> {
    let name = name(command);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let (mut child, directed) = signals::direct(|| {
        let child = spawn(command, &name)?;
        let target = Target::Process(pid(&child));
        Ok((child, target))
    })?;
    let chunks = child.stderr.take().map(read_in_background);
    let mut stdout = Vec::new();
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_end(&mut stdout).with_context(|| name.clone())?;
    }
    let stderr = chunks.into_iter().flatten().flatten().collect();
    let (status, cpu_time) = wait(&mut child).context(name)?;
    drop(directed);
    signals::check()?;
    Ok((Output { status, stdout, stderr }, cpu_time))
}

/// A program that runs beside what we do, and whose output nobody wants. Dropped before its end, it and all that it has started
/// in its process group are killed.
pub(crate) struct Background {
    child: Child,
    directed: Directed,
}

impl Background {
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let name = name(&command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let (child, directed) = signals::direct(|| {
            let child = spawn(&mut command, &name)?;
            let target = Target::Group(pid(&child));
            Ok((child, target))
        })?;
        Ok(Self { child, directed })
    }

    /// Waits until it has ended, and returns the CPU time that it used.
    pub(crate) fn wait(mut self) -> Result<Duration> {
        Ok(wait(&mut self.child)?.1)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.directed.kill();
            let _killed = self.child.wait();
        }
    }
}

/// How a captured program ended.
pub(crate) struct Captured {
    /// `Err`: it was killed.
    pub(crate) status: Result<ExitStatus, Exceeded>,
    /// Standard output and standard error as they came.
    pub(crate) output: String,
    /// What the program and all that it started used.
    pub(crate) cpu_time: Duration,
}

impl Captured {
    pub(crate) fn success(&self) -> bool {
        self.status.is_ok_and(|status| status.success())
    }
}

/// How often a long step says that it is still at work.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// How long output may stay silent after the program's end, while some process it left holds the
/// other end of the pipe.
const LINGER: Duration = Duration::from_secs(2);

/// Runs to the end and keeps the output; `name` is what messages call it. Kills what exceeds `limits`.
pub(crate) fn capture(job: impl Into<Job>, limits: Limits, name: &str) -> Result<Captured> {
    let Job { mut command, holder } = job.into();
    let (reader, writer) = pipe()?;
    command.stdout(writer.try_clone()?).stderr(writer);
    if holder.is_none() {
        command.stdin(Stdio::null()).process_group(0);
    }
    let (mut child, directed) = signals::direct(|| {
        let child = spawn(&mut command, name)?;
        let target = match holder {
            Some(pipe) => Target::Held(pipe),
            None => Target::Group(pid(&child)),
        };
        Ok((child, target))
    })?;
    drop(command); // our copies of the pipe's writing end
    let chunks = read_in_background(reader);
    let captured =
        collect(&mut child, &chunks, limits, name, || directed.kill()).context(name.to_owned())?;
    drop(directed);
    signals::check()?;
    Ok(captured)
}

fn read_in_background(mut reader: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(length @ 1..) = reader.read(&mut buffer) {
            if sender.send(buffer[..length].to_vec()).is_err() {
                break;
            }
        }
    });
    receiver
}

fn collect(
    child: &mut Child,
    chunks: &Receiver<Vec<u8>>,
    limits: Limits,
    name: &str,
    kill: impl Fn(),
) -> Result<Captured> {
    let start = Instant::now();
    let mut spoken = start;
    let mut output = Vec::new();
    let mut progress = Progress::new(pid(child), limits);
    let mut killed = None;
    let mut ended = None;
    loop {
        match chunks.recv_timeout(Duration::from_millis(200)) {
            Ok(chunk) => {
                output.extend(chunk);
                progress.has_written();
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                if ended.is_none() && has_ended(child, WaitPidFlag::WNOHANG)? {
                    ended = Some(Instant::now());
                }
            }
        }
        if ended.is_some_and(|at| at.elapsed() > LINGER) {
            output.extend(b"\n(a process that was left behind still holds this output)\n");
            break;
        }
        if killed.is_none() {
            killed = progress.exceeds();
            killed.iter().for_each(|_| kill());
        }
        if spoken.elapsed() > HEARTBEAT {
            spoken = Instant::now();
            ui::note(&format!("{name}: still running, {}", ui::elapsed(start.elapsed())));
        }
    }
    let (status, cpu_time) = wait(child)?;
    let output = String::from_utf8_lossy(&output).into_owned();
    Ok(Captured { status: killed.map_or(Ok(status), Err), output, cpu_time })
}

/// Waits for the end, and returns what CPU time was used until then.
fn wait(child: &mut Child) -> Result<(ExitStatus, Duration)> {
    while !has_ended(child, WaitPidFlag::empty())? {}
    let cpu_time = used_cpu_time(pid(child));
    Ok((child.wait()?, cpu_time))
}

/// Whether a child has ended that is still to be waited for.
fn has_ended(child: &Child, flags: WaitPidFlag) -> Result<bool> {
    let flags = flags | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    match waitid(Id::Pid(pid(child)), flags) {
        Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => Ok(false),
        Ok(_) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

fn spawn(command: &mut Command, name: &str) -> Result<Child> {
    command.spawn().with_context(|| format!("{name}: cannot be started"))
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32)
}

/// A command's name in messages: the program and its first word.
fn name(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit('/').next().unwrap_or(&program).to_owned();
    match command.get_args().next() {
        Some(word) => format!("{program} {}", word.to_string_lossy()),
        None => program,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const LONG: Limits = Limits::stalled(Duration::from_secs(60));

    #[test]
    fn what_runs_beside_us_is_killed_with_what_it_started() {
        let busy =
            Background::start(sh("n=0; while [ $n -lt 300000 ]; do n=$((n+1)); done")).unwrap();
        assert!(busy.wait().unwrap() > Duration::from_millis(50));

        // Who reads the pipe waits for the end of all that write to it.
        let (mut reader, writer) = pipe().unwrap();
        let path = format!("/proc/{}/fd/{}", std::process::id(), writer.as_raw_fd());
        let begun =
            Background::start(sh(&format!("exec >{path}; sleep 600 & echo begun; wait"))).unwrap();
        let mut word = [0; 6];
        reader.read_exact(&mut word).unwrap();
        drop(writer);
        drop(begun);
        assert_eq!(reader.read(&mut word).unwrap(), 0);
    }

    #[test]
    fn capture_keeps_both_streams_and_the_status() {
        let captured = capture(sh("echo out; echo err >&2; exit 3"), LONG, "sh").unwrap();
        assert_eq!(captured.output, "out\nerr\n");
        assert_eq!(captured.status.unwrap().code(), Some(3));

        let captured = capture(sh("sleep 600 & echo $!"), LONG, "sh").unwrap();
        let (left, note) = captured.output.split_once('\n').unwrap();
        assert!(captured.success());
        assert!(note.contains("left behind"), "{note}");
        nix::sys::signal::kill(Pid::from_raw(left.parse().unwrap()), None).unwrap();
        check(sh(&format!("kill -9 {left}"))).unwrap();

        let error = read(&mut sh("echo no such luck >&2; exit 1")).unwrap_err();
        assert_eq!(format!("{error:#}"), "sh -c: exit status: 1: no such luck");
        assert_eq!(read(&mut sh("echo yes")).unwrap(), "yes\n");
    }

    const SHORT: Duration = Duration::from_secs(2);

    #[test]
    fn a_program_that_hangs_is_killed() {
        let limits = Limits::stalled(SHORT);
        let hangs = capture(sh("echo begun; sleep 600 & sleep 600"), limits, "sh").unwrap();
        assert_eq!(hangs.status.unwrap_err(), Exceeded::Stalled(SHORT));
        assert_eq!(hangs.output, "begun\n");
        let endless = capture(sh("while :; do :; done"), limits, "sh").unwrap();
        assert_eq!(endless.status.unwrap_err(), Exceeded::Hard(6 * SHORT));
    }

    #[test]
    fn a_program_that_works_for_longer_than_it_may_hang_is_not_killed() {
        // A descendant in a session of its own does the work, and writes nothing for more than twice the limit.
        let busy = "end=$(($(date +%s) + 5)); while [ $(date +%s) -lt $end ]; do :; done";
        let busy = sh(&format!("setsid --wait sh -c '{busy}'"));
        let busy = capture(busy, Limits::stalled(SHORT), "sh").unwrap();
        assert!(busy.success());
        assert!(busy.cpu_time > Duration::from_millis(100), "{:?}", busy.cpu_time);
        let speaks = sh("for step in 1 2 3 4 5 6; do echo $step; sleep 0.5; done");
        assert!(capture(speaks, Limits::stalled(SHORT), "sh").unwrap().success());
    }
}
