//! The tour: load all the while, and backends that go and come back.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_tests::daemon::printed::Explained;
use lb_tests::process::pause;
use lb_tests::report::Event;
use lb_tests::topology::Fabric;
use lb_tests::traffic::{ClientCounters, Curl};

use super::load::{Load, Run, SIEGE, now};
use super::phase::Phase;
use super::setup::Setup;
use crate::shared::{Screen, Watch};

/// Length of a phase.
const ACT: Duration = Duration::from_secs(4);
/// After the balancer has said that a change is in force, answers that were under way end.
const SETTLE: Duration = Duration::from_millis(200);
/// The client's port of the one request that is explained.
const PORT: u16 = 54321;

/// What was seen.
#[derive(Debug)]
pub(crate) struct Record {
    /// Seconds since 1970 at which the load began.
    pub(crate) start: f64,
    pub(crate) phases: Vec<Phase>,
    pub(crate) events: Vec<Event>,
    pub(crate) runs: Vec<Run>,
    /// Of the client's kernel, over the whole tour.
    pub(crate) client: ClientCounters,
    /// Requests that curl made beside the load.
    pub(crate) single_requests: u64,
    /// From `kill -9` of a backend to the balancer's word that it is out, milliseconds.
    pub(crate) detection_ms: Vec<(String, f64)>,
}

struct Tour<'a> {
    setup: &'a mut Setup,
    screen: &'a mut Screen,
    watch: Watch,
    record: Record,
    /// Requests each backend had logged at the last look.
    seen: Vec<u64>,
}

/// Runs the tour and returns what clients and balancer recorded.
pub(crate) fn run(setup: &mut Setup, screen: &mut Screen) -> Result<Record> {
    let before = ClientCounters::read(&setup.fabric.client)?;
    explain(setup, screen)?;
    screen.heading("The tour");
    let url = format!("http://{}/", Fabric::VIP_V4);
    let command = format!("siege -c {} -r {} -d 0.05 {url}", SIEGE.clients, SIEGE.requests);
    screen.command("client", &command);
    let watch = Watch::start(&setup.balancer)?;
    let load = Load::start(&setup.fabric.client, &url);
    let record = Record {
        start: now(),
        phases: Vec::new(),
        events: Vec::new(),
        runs: Vec::new(),
        client: ClientCounters::default(),
        single_requests: 1,
        detection_ms: Vec::new(),
    };
    let seen = vec![0; setup.servers.len()];
    let mut tour = Tour { setup, screen, watch, record, seen };
    tour.all_phases()?;
    let Tour { mut record, setup, .. } = tour;
    record.runs = load.finish()?;
    record.client = ClientCounters::read(&setup.fabric.client)?.since(&before);
    Ok(record)
}

/// One request, and what the balancer says of it.
fn explain(setup: &Setup, screen: &mut Screen) -> Result<()> {
    screen.heading("One request");
    let url = format!("http://{}/", Fabric::VIP_V4);
    screen.command("client", &format!("curl --local-port {PORT} {url}"));
    let page = Curl::new(&setup.fabric.client).get_from(PORT, &url)?;
    screen.quote(&page);
    let (client, vip) = (format!("{}:{PORT}", Fabric::CLIENT_V4), format!("{}:80", Fabric::VIP_V4));
    screen.command("balancer", &format!("spillway explain {client} {vip}"));
    screen.quote(&setup.balancer.cli(&["explain", &client, &vip])?);
    let explained: Explained = setup.balancer.printed(&["explain", &client, &vip])?;
    let chosen = explained.backend()?;
    let answered = setup.fabric.backends.iter().find(|backend| backend.name() == page);
    let answered = answered.with_context(|| format!("the page says {page:?}"))?.v4;
    ensure!(chosen == answered, "explain names {chosen}, but {answered} answered");
    screen.done(&format!("it was answered by the backend that explain names: {page}"));
    Ok(())
}

impl Tour<'_> {
    fn all_phases(&mut self) -> Result<()> {
        let all = [0, 1, 2];
        self.phase("all up", &all)?;
        self.take_away(&[1], "eu2 falls")?;
        self.phase("without eu2", &[0, 2])?;
        self.bring_back(&[1], "eu2 returns")?;
        self.phase("eu2 is back", &all)?;
        self.take_away(&all, "region eu falls")?;
        self.phase("without eu", &[3, 4, 5])?;
        self.bring_back(&all, "region eu returns")?;
        self.phase("eu is back", &all)
    }

    fn phase(&mut self, name: &str, serving: &[usize]) -> Result<()> {
        pause(SETTLE);
        let from = now();
        let end = Instant::now() + ACT;
        self.look()?;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            pause(left.min(Duration::from_secs(1)));
            let counts = self.look()?;
            self.screen.second(&counts, &self.setup.colours);
        }
        let (name, serving, logged) = (name.to_owned(), serving.to_vec(), Vec::new());
        self.record.phases.push(Phase { name, serving, from, to: now(), logged });
        Ok(())
    }

    /// What each backend logged since the last look.
    fn look(&mut self) -> Result<Vec<(String, u64)>> {
        let mut counts = Vec::new();
        for (number, server) in self.setup.servers.iter().enumerate() {
            let total = server.requests()?.len() as u64;
            let name = self.setup.fabric.backends[number].name().to_owned();
            counts.push((name, total - self.seen[number]));
            self.seen[number] = total;
        }
        Ok(counts)
    }

    fn take_away(&mut self, backends: &[usize], what: &str) -> Result<()> {
        self.event(what);
        let mut killed = Vec::new();
        for number in backends {
            killed.push((*number, Instant::now()));
            self.setup.servers[*number].kill()?;
            let name = self.setup.fabric.backends[*number].name().to_owned();
            self.screen.command(&name, "kill -9 $(pidof nginx)");
        }
        for (number, at) in killed {
            let backend = &self.setup.fabric.backends[number];
            let said = self.watch.wait_down(&backend.v4.to_string())?;
            let milliseconds = said.at.duration_since(at).as_secs_f64() * 1e3;
            let name = backend.name().to_owned();
            self.screen.done(&format!(
                "{name} is {} to the balancer after {milliseconds:.0} ms: {}",
                said.state, said.reason
            ));
            self.record.detection_ms.push((name, milliseconds));
        }
        Ok(())
    }

    fn bring_back(&mut self, backends: &[usize], what: &str) -> Result<()> {
        self.event(what);
        let start = Instant::now();
        for number in backends {
            self.setup.servers[*number].restart()?;
            let name = self.setup.fabric.backends[*number].name().to_owned();
            self.screen.command(&name, "nginx");
        }
        for number in backends {
            let backend = &self.setup.fabric.backends[*number];
            let said = self.watch.wait_up(&backend.v4.to_string())?;
            let milliseconds = said.at.saturating_duration_since(start).as_secs_f64() * 1e3;
            let name = backend.name();
            self.screen.done(&format!("{name} has traffic again after {milliseconds:.0} ms"));
        }
        Ok(())
    }

    fn event(&mut self, what: &str) {
        self.screen.event(what);
        let at = now() - self.record.start;
        self.record.events.push(Event { at, what: what.into() });
    }
}
