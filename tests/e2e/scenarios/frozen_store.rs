//! A disk that does not answer holds up the apply that waits for it, and nothing else: no failover and no answer.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_tests::{
    daemon::{Balancer, Binaries, HTTP_ADDRESS, scrape},
    fixture::{Fixture, HTTP, Health, Tunnel, configuration},
    harness::{self, Case},
    openmetrics::Exposition,
    process::{PATIENCE, until},
    sandbox::Sandbox,
    topology::REGIONS,
    traffic::{Requests, ensure_answered},
};

pub(crate) const CASES: &[Case] = &[
    Case::works("a_frozen_store_holds_up_no_failover_and_no_answer", |sandbox| {
        apply_and_fail_over(sandbox, true)
    }),
    Case::works("a_store_that_is_not_frozen_is_written_meanwhile", |sandbox| {
        apply_and_fail_over(sandbox, false)
    }),
    Case::waits("a_store_without_room_refuses_applies_and_counts_them", without_room),
];

/// Size of the store's file system, bytes.
const SIZE: u64 = 64 << 20;
/// After so long a process of its own thaws it, whatever happens to this one.
const THAWED_AFTER: &str = "100";
/// Seconds for which a write waits at least while the disk is frozen, and for which none waits otherwise.
const LONG: f64 = 2.0;
/// Health checks of about a kilobyte in a configuration that does not fit what the store's file has free.
const LARGE: usize = 4_000;
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(5);

/// An ext4 in a file.
struct Disk {
    directory: PathBuf,
    /// Thaws it in the end.
    rescue: Option<Child>,
}

impl Disk {
    fn mount(sandbox: &Sandbox) -> Result<Self> {
        let directory = sandbox.directory("disk")?;
        let (image, directory) = (directory.join("image"), directory.join("mounted"));
        fs::File::create(&image)?.set_len(SIZE)?;
        fs::create_dir(&directory)?;
        let text = |path: &Path| path.display().to_string();
        run("mkfs.ext4", &["-q", "-F", &text(&image)])?;
        run("mount", &["-o", "loop", &text(&image), &text(&directory)])?;
        Ok(Self { directory, rescue: None })
    }

    fn freeze(&mut self) -> Result<()> {
        let directory = self.directory.display().to_string();
        let script = format!("sleep {THAWED_AFTER}; fsfreeze --unfreeze '{directory}'");
        let mut rescue = Command::new("setsid");
        rescue.args(["sh", "-c", &script]).stdin(Stdio::null());
        self.rescue = Some(rescue.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        run("fsfreeze", &["--freeze", &directory])
    }

    fn thaw(&mut self) -> Result<()> {
        let Some(mut rescue) = self.rescue.take() else { return Ok(()) };
        let thawed = run("fsfreeze", &["--unfreeze", &self.directory.display().to_string()]);
        // Only now it is not needed any more.
        let _ = rescue.kill();
        let _ = rescue.wait();
        thawed
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _thawed_by_the_rescue_otherwise = self.thaw();
        let directory = self.directory.display().to_string();
        let _goes_with_the_sandbox_otherwise = run("umount", &["--lazy", &directory]);
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.with_context(|| program.to_owned())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {arguments:?}: {}: {said}", output.status);
    Ok(())
}

/// A balancer that keeps its store on this disk and serves metrics.
fn balancer_on(sandbox: &Sandbox, disk: &Disk, fixture: &Fixture) -> Result<Balancer> {
    let mut balancer =
        Balancer::new(sandbox, &Binaries::find()?, &fixture.fabric.balancer, REGIONS[0])?;
    balancer.state = disk.directory.join("state");
    balancer.more = vec!["--http".into(), HTTP_ADDRESS.to_string()];
    balancer.start()?;
    Ok(balancer)
}

/// What the metrics say of the store and of the state loop.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Writes of the store that ended, and those of them that failed.
    writes: f64,
    failures: f64,
    /// Seconds of all writes, and of the one under way.
    written: f64,
    writing: f64,
    /// Applies that wait for the state loop.
    waiting: f64,
    /// Seconds since the last turn of the state loop, and of the member loop.
    state_age: f64,
    member_age: f64,
}

impl Measured {
    fn read(fixture: &Fixture) -> Result<Self> {
        let now: Exposition = scrape(&fixture.fabric.balancer)?;
        let value = |name: &str, labels: &[(&str, &str)]| {
            let name = format!("spillway_{name}");
            now.value(&name, labels).with_context(|| format!("{name}: not served"))
        };
        let (state, member) = ([("loop", "state")], [("loop", "member")]);
        Ok(Self {
            writes: value("store_write_duration_seconds_count", &[])?,
            failures: value("store_write_failures_total", &[])?,
            written: value("store_write_duration_seconds_sum", &[])?,
            writing: value("store_write_age_seconds", &[])?,
            waiting: value("loop_queue_entries", &state)?,
            state_age: value("loop_turn_age_seconds", &state)?,
            member_age: value("loop_turn_age_seconds", &member)?,
        })
    }
}

/// Applies a configuration while the disk is frozen or not, and kills a server under load meanwhile. No request fails
/// after the detection: so the maps have it.
fn apply_and_fail_over(sandbox: &Sandbox, is_frozen: bool) -> Result<()> {
    let mut disk = Disk::mount(sandbox)?;
    let mut fixture = Fixture::idle(sandbox, "frozen")?;
    fixture.balancer.stop()?;
    let balancer = balancer_on(sandbox, &disk, &fixture)?;
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    balancer.apply(&text)?;
    fixture.balancer = balancer;
    fixture.wait_up(&[])?;
    let before = Measured::read(&fixture)?;
    ensure!((before.writes, before.failures, before.writing) == (1.0, 0.0, 0.0), "{before:?}");
    let more = format!("{text}\n[[region]]\nname = \"later\"\n");
    if is_frozen {
        disk.freeze()?;
    }
    thread::scope(|scope| -> Result<()> {
        let fixture = &mut fixture;
        let shell = fixture.balancer.command(&["apply", "-f", "-"]);
        let apply = scope.spawn(move || with_input(shell, &more));
        if !is_frozen {
            until("generation 2", PATIENCE, || Ok((generation(fixture)? == 2).then_some(())))?;
        }
        let client = &fixture.fabric.client;
        let to = Tunnel::Ipip.endpoint(HTTP);
        let requests = Requests::start(client, to, 2, Duration::from_millis(5));
        requests.wait_for(50)?;
        let victim = fixture.number("eu2")?;
        fixture.servers[victim].kill()?;
        let killed = Instant::now();
        fixture.wait_up(&["eu2"])?;
        let detected = Instant::now();
        requests.wait_for(100)?;
        ensure_answered(&requests.finish()?, detected, Instant::now(), &["eu2"])?;
        harness::note(format!("a failed server: {:.2?}", detected.duration_since(killed)));

        let asked = Instant::now();
        let generation_meanwhile = generation(fixture)?;
        ensure!(asked.elapsed() < ANSWER, "an answer took {:?}", asked.elapsed());
        ensure!(generation_meanwhile == if is_frozen { 1 } else { 2 }, "{generation_meanwhile}");
        ensure!(apply.is_finished() != is_frozen, "the apply does not wait for the disk");
        if is_frozen {
            measure_frozen(scope, fixture, &text)?;
        } else {
            until("a second write", PATIENCE, || {
                let now = Measured::read(fixture)?;
                Ok(((now.writes, now.writing) == (2.0, 0.0)).then_some(()))
            })?;
        }
        disk.thaw()?;
        let said = apply.join().map_err(|_| anyhow::anyhow!("the apply panicked"))??;
        ensure!(said.contains("generation 2"), "{said}");
        fixture.wait_up(&["eu2"])
    })?;
    // The apply that waited for the other one takes the region away again.
    let (last, writes) = if is_frozen { (3, 3.0) } else { (2, 2.0) };
    until("the last generation", PATIENCE, || Ok((generation(&fixture)? == last).then_some(())))?;
    let after = until("the state loop turns again", PATIENCE, || {
        let now = Measured::read(&fixture)?;
        Ok((now.writing == 0.0 && now.waiting == 0.0 && now.state_age < LONG).then_some(now))
    })?;
    ensure!((after.writes, after.failures) == (writes, 0.0), "{after:?}");
    ensure!(!is_frozen || after.written - before.written >= LONG, "{before:?} {after:?}");
    fixture.balancer.stop()
}

/// While the disk is frozen, another apply waits behind the one that waits for it, and both can be seen.
fn measure_frozen<'s>(
    scope: &'s thread::Scope<'s, '_>,
    fixture: &Fixture,
    text: &str,
) -> Result<()> {
    let (shell, text) = (fixture.balancer.command(&["apply", "-f", "-"]), text.to_owned());
    scope.spawn(move || with_input(shell, &text));
    let shown = until("a write under way, and an apply behind it", PATIENCE, || {
        let now = Measured::read(fixture)?;
        Ok((now.writing >= LONG && now.waiting >= 1.0).then_some(now))
    })?;
    ensure!((shown.writes, shown.failures) == (1.0, 0.0), "{shown:?}");
    ensure!(shown.state_age >= shown.writing, "{shown:?}");
    ensure!(shown.member_age < shown.state_age / 2.0, "the member loop stands still: {shown:?}");
    Ok(())
}

/// Without room on the disk a large configuration is refused and counted, and accepted once there is room.
fn without_room(sandbox: &Sandbox) -> Result<()> {
    let disk = Disk::mount(sandbox)?;
    let mut fixture = Fixture::idle(sandbox, "full")?;
    fixture.balancer.stop()?;
    fixture.balancer = balancer_on(sandbox, &disk, &fixture)?;
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    fixture.balancer.apply(&text)?;
    let filler = disk.directory.join("filler");
    fill(&filler)?;
    let path = "x".repeat(1_000);
    let check = |number| {
        format!(
            "[[health_check]]\nname = \"c{number}\"\nport = 80\nhttp = {{ path = \"/{path}\" }}\n"
        )
    };
    let large = text + &(0..LARGE).map(check).collect::<String>();
    let refused = fixture.balancer.apply(&large);
    let said = format!("{:#}", refused.err().context("a full disk takes a configuration")?);
    ensure!(said.contains("No space left on device"), "{said}");
    let now = Measured::read(&fixture)?;
    ensure!((now.writes, now.failures, now.writing) == (2.0, 1.0, 0.0), "{now:?}");
    ensure!(generation(&fixture)? == 1);
    fs::remove_file(&filler)?;
    fixture.balancer.apply(&large)?;
    // A scrape soon after another may show the same.
    until("a third write, without a failure", PATIENCE, || {
        let now = Measured::read(&fixture)?;
        Ok(((now.writes, now.failures) == (3.0, 1.0)).then_some(()))
    })?;
    fixture.balancer.stop()
}

/// Fills the file system that a file is on.
fn fill(file: &Path) -> Result<()> {
    let mut file = fs::File::create(file)?;
    for size in [1 << 20, 1 << 12] {
        let chunk = vec![0x5a; size];
        loop {
            match file.write_all(&chunk).and_then(|()| file.sync_data()) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(())
}

fn generation(fixture: &Fixture) -> Result<u64> {
    let status = fixture.balancer.ask(&["status"])?;
    status["generation"].as_u64().context("status: no generation")
}

fn with_input(mut command: Command, input: &str) -> Result<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    child.stdin.take().context("no input")?.write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ensure!(output.status.success(), "{}: {}", output.status, text(&output.stderr));
    Ok(text(&output.stdout))
}
