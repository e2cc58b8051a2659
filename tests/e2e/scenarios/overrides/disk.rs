//! A drain does not need the disk: packets follow it at once, and it is stored when the disk can be written again.

use std::{
    collections::BTreeSet,
    ops::{Deref, DerefMut},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    fixture::{ECHO, HTTP, Tunnel},
    harness,
};
use lb_tests::{
    daemon::{answers, scrape},
    process::{PATIENCE, until},
    sandbox::Sandbox,
    traffic::{Requests, Stream, ensure_answered},
};
use spillway_proto::v1::BackendState;

use crate::on_disk::{OnDisk, with_input};

const UNSTORED: &str = "spillway_overrides_unstored";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Full,
    /// Whoever writes waits.
    Frozen,
}

/// A service, one backend of which is drained.
struct Drained(OnDisk);

impl Deref for Drained {
    type Target = OnDisk;

    fn deref(&self) -> &OnDisk {
        &self.0
    }
}

impl DerefMut for Drained {
    fn deref_mut(&mut self) -> &mut OnDisk {
        &mut self.0
    }
}

impl Drained {
    fn start(sandbox: &Sandbox) -> Result<Self> {
        Ok(Self(OnDisk::start(sandbox, "drain")?))
    }

    /// Fills the disk until a drain is not stored either: the file system may have had room for some.
    fn fill(&self) -> Result<()> {
        self.disk.fill()?;
        let address = self.address("us1")?;
        until("there is no room", PATIENCE, || {
            for action in ["drain", "undrain"] {
                self.backend(action, &address)?;
            }
            Ok(self.override_condition()?.map(|_| ()))
        })
    }

    fn address(&self, name: &str) -> Result<String> {
        let number = self.fixture.number(name)?;
        Ok(self.fixture.fabric.backends[number].v4.to_string())
    }

    /// `spillway backend ACTION ADDRESS`; what it printed on stderr. Whether the disk is full or frozen, it is so until
    /// after the answer: one that waited for it would not come.
    fn backend(&self, action: &str, address: &str) -> Result<String> {
        let began = Instant::now();
        let arguments = ["backend", action, address];
        let output = self.fixture.balancer.try_cli(&arguments, None)?;
        let (said, took) = (String::from_utf8(output.stderr)?, began.elapsed());
        ensure!(output.status.success(), "{action}: {said}");
        harness::note(format!("{action}: {took:.2?}"));
        Ok(said)
    }

    fn override_condition(&self) -> Result<Option<String>> {
        self.condition("overrides")
    }

    fn revision(&self) -> Result<u64> {
        Ok(self.fixture.balancer.overrides()?.revision)
    }

    fn unstored(&self) -> Result<Option<f64>> {
        Ok(scrape(&self.fixture.fabric.balancer)?.value(UNSTORED, &[]))
    }

    /// What `status` says of a backend of pool `v4`.
    fn state(&self, address: &str) -> Result<BackendState> {
        Ok(answers::backend(&self.fixture.balancer.status()?, address)?.state())
    }

    /// Who answers two hundred new connections, all of which are answered.
    fn ask(&self) -> Result<BTreeSet<String>> {
        let client = &self.fixture.fabric.client;
        let began = Instant::now();
        let to = Tunnel::Ipip.endpoint(HTTP);
        let requests = Requests::start(client, to, 2, Duration::from_millis(1));
        requests.wait_for(200)?;
        let attempts = requests.finish()?;
        ensure_answered(&attempts, began, Instant::now(), &[])?;
        Ok(attempts.into_iter().filter_map(|attempt| attempt.answer.ok()).collect())
    }
}

pub(super) fn drain(sandbox: &Sandbox, fault: Option<Fault>) -> Result<()> {
    let mut service = Drained::start(sandbox)?;
    let (victim, address) = ("eu2", service.address("eu2")?);
    let client = service.fixture.fabric.client.clone();
    let open = |seed| Stream::open(&client, Tunnel::Ipip.endpoint(ECHO), seed);
    let streams = (0..24).map(open).collect::<Result<Vec<_>>>()?;
    let of_victim = |stream: &&Stream| stream.backend() == victim;
    ensure!(streams.iter().any(|stream| of_victim(&stream)), "no connection at {victim}");
    ensure!(service.ask()?.contains(victim), "{victim} has no new connections");
    match fault {
        Some(Fault::Full) => service.fill()?,
        Some(Fault::Frozen) => service.disk.freeze()?,
        None => {}
    }
    let (before, stored) = (service.generation()?, service.revision()?);
    // An apply that waits for the disk is not in the way of the drain.
    let more = format!("{}\n[[region]]\nname = \"later\"\n", service.configuration());
    let stuck = (fault == Some(Fault::Frozen)).then(|| {
        let command = service.fixture.balancer.command(&["apply", "-f", "-"]);
        thread::spawn(move || with_input(command, &more))
    });
    if stuck.is_some() {
        let waits =
            || Ok(service.condition("store")?.filter(|cause| cause.contains("applies wait")));
        until("the apply waits for the disk", PATIENCE, waits)?;
    }

    let said = service.backend("drain", &address)?;
    let answered = service.ask()?;
    ensure!(!answered.contains(victim), "{victim} has new connections: {answered:?}");
    ensure!(answered.len() == 2, "{answered:?}");
    ensure!(service.state(&address)? == BackendState::Draining, "{:?}", service.state(&address)?);
    for stream in streams.iter().filter(of_victim) {
        let exchanged = stream.exchanged();
        until("an open connection goes on", PATIENCE, || {
            Ok((stream.exchanged() > exchanged + 1000).then_some(()))
        })?;
    }
    ensure!(service.generation()? == before, "{} after {before}", service.generation()?);
    let revision = service.revision()?;
    ensure!(revision == stored + 1, "{revision} after {stored}");
    if let Some(fault) = fault {
        let cause = match fault {
            Fault::Full => "no space left on device",
            Fault::Frozen => "the disk does not answer",
        };
        let in_memory = "in force, but in memory only: ";
        ensure!(said.contains(in_memory) && said.to_lowercase().contains(cause), "{said}");
        ensure!(said.contains("a restart before that loses it"), "{said}");
        // A disk that is silent is reported a second after it was asked.
        let condition = until("there is a condition", PATIENCE, || service.override_condition())?;
        let is_told = condition.contains(in_memory) && condition.to_lowercase().contains(cause);
        ensure!(is_told, "{condition}");
        let is_unstored = || Ok((service.unstored()? == Some(1.0)).then_some(()));
        until("the metric says so", PATIENCE, is_unstored)?;
    }
    ensure!(stuck.as_ref().is_none_or(|stuck| !stuck.is_finished()), "the apply does not wait");

    match fault {
        Some(Fault::Full) => service.disk.free()?,
        Some(Fault::Frozen) => service.disk.thaw()?,
        None => ensure!(said.is_empty(), "{said}"),
    }
    let ends = || Ok(service.override_condition()?.is_none().then_some(()));
    until("the condition ends", PATIENCE, ends)?;
    // Scrapes share a reading for a moment.
    let is_stored = || Ok((service.unstored()? == Some(0.0)).then_some(()));
    until("the metric says so", PATIENCE, is_stored)?;
    if let Some(stuck) = stuck {
        let output = stuck.join().map_err(|_| anyhow::anyhow!("the apply panicked"))??;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        ensure!(!service.ask()?.contains(victim), "the apply ended the drain");
    }
    let generation = service.generation()?;
    service.fixture.balancer.kill()?;
    service.fixture.balancer.start()?;
    ensure!(service.generation()? == generation, "{} of {generation}", service.generation()?);
    ensure!(service.revision()? == revision, "{} of {revision}", service.revision()?);
    ensure!(service.state(&address)? == BackendState::Draining, "{:?}", service.state(&address)?);
    ensure!(!service.ask()?.contains(victim));
    service.backend("undrain", &address)?;
    service.fixture.wait_up(&[])?;
    Stream::finish_all(streams)?;
    service.fixture.balancer.stop()
}

/// What the answer of the drain says comes true.
pub(super) fn lost(sandbox: &Sandbox) -> Result<()> {
    let mut service = Drained::start(sandbox)?;
    service.fill()?;
    let address = service.address("eu2")?;
    let said = service.backend("drain", &address)?;
    ensure!(said.contains("a restart before that loses it"), "{said}");
    let condition = service.override_condition()?.context("no condition")?;
    let stored =
        condition.rsplit("begins with those of revision ").next().context("no revision")?;
    let stored: u64 = stored.trim().parse().with_context(|| condition.clone())?;
    ensure!(service.revision()? > stored, "{stored}");
    service.fixture.balancer.kill()?;
    service.fixture.balancer.start()?;
    ensure!(service.revision()? == stored, "{} of {stored}", service.revision()?);
    until("the drain is lost", PATIENCE, || {
        Ok((service.state(&address)? == BackendState::Up).then_some(()))
    })?;
    ensure!(service.ask()?.contains("eu2"));
    service.fixture.balancer.stop()
}
