//! The play: load all the while, and backends that go and come back.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_tests::process::pause;
use lb_tests::report::Event;
use lb_tests::topology::Fabric;
use lb_tests::traffic::{ClientCounters, Curl};

use super::act::Act;
use super::load::{Load, Run, SIEGE, now};
use super::stage::Stage;
use crate::shared::{Screen, Watch};

/// Length of an act.
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
    pub(crate) acts: Vec<Act>,
    pub(crate) events: Vec<Event>,
    pub(crate) runs: Vec<Run>,
    /// Of the client's kernel, over the whole play.
    pub(crate) client: ClientCounters,
    /// Requests that curl made beside the load.
    pub(crate) single_requests: u64,
    /// From `kill -9` of a backend to the balancer's word that it is out, milliseconds.
    pub(crate) detection_ms: Vec<(String, f64)>,
}

struct Play<'a> {
    stage: &'a mut Stage,
    screen: &'a mut Screen,
    watch: Watch,
    record: Record,
    /// Requests each backend had logged at the last look.
    seen: Vec<u64>,
}

/// Plays it.
pub(crate) fn play(stage: &mut Stage, screen: &mut Screen) -> Result<Record> {
    let before = ClientCounters::read(&stage.fabric.client)?;
    explain(stage, screen)?;
    screen.heading("The play");
    let url = format!("http://{}/", Fabric::VIP_V4);
    let command = format!("siege -c {} -r {} -d 0.05 {url}", SIEGE.clients, SIEGE.requests);
    screen.command("client", &command);
    let watch = Watch::start(&stage.balancer)?;
    let load = Load::start(&stage.fabric.client, &url);
    let record = Record {
        start: now(),
        acts: Vec::new(),
        events: Vec::new(),
        runs: Vec::new(),
        client: ClientCounters::default(),
        single_requests: 1,
        detection_ms: Vec::new(),
    };
    let seen = vec![0; stage.servers.len()];
    let mut play = Play { stage, screen, watch, record, seen };
    play.all_acts()?;
    let Play { mut record, stage, .. } = play;
    record.runs = load.finish()?;
    record.client = ClientCounters::read(&stage.fabric.client)?.since(&before);
    Ok(record)
}

/// One request, and what the balancer says of it.
fn explain(stage: &Stage, screen: &mut Screen) -> Result<()> {
    screen.heading("One request");
    let url = format!("http://{}/", Fabric::VIP_V4);
    screen.command("client", &format!("curl --local-port {PORT} {url}"));
    let page = Curl::new(&stage.fabric.client).get_from(PORT, &url)?;
    screen.quote(&page);
    let (client, vip) = (format!("{}:{PORT}", Fabric::CLIENT_V4), format!("{}:80", Fabric::VIP_V4));
    screen.command("balancer", &format!("spillway explain {client} {vip}"));
    screen.quote(&stage.balancer.cli(&["explain", &client, &vip])?);
    let explained = stage.balancer.ask(&["explain", &client, &vip])?;
    let chosen = explained["choice"]["backend"].as_str().context("explain names no backend")?;
    let answered = stage.fabric.backends.iter().find(|backend| backend.name() == page);
    let answered = answered.with_context(|| format!("the page says {page:?}"))?.v4.to_string();
    ensure!(chosen == answered, "explain names {chosen}, but {answered} answered");
    screen.done(&format!("it was answered by the backend that explain names: {page}"));
    Ok(())
}

impl Play<'_> {
    fn all_acts(&mut self) -> Result<()> {
        let all = [0, 1, 2];
        self.act("all up", &all)?;
        self.take_away(&[1], "eu2 falls")?;
        self.act("without eu2", &[0, 2])?;
        self.bring_back(&[1], "eu2 returns")?;
        self.act("eu2 is back", &all)?;
        self.take_away(&all, "region eu falls")?;
        self.act("without eu", &[3, 4, 5])?;
        self.bring_back(&all, "region eu returns")?;
        self.act("eu is back", &all)
    }

    fn act(&mut self, name: &str, serving: &[usize]) -> Result<()> {
        pause(SETTLE);
        let from = now();
        let end = Instant::now() + ACT;
        self.look()?;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            pause(left.min(Duration::from_secs(1)));
            let counts = self.look()?;
            self.screen.second(&counts, &self.stage.colours);
        }
        let (name, serving, logged) = (name.to_owned(), serving.to_vec(), Vec::new());
        self.record.acts.push(Act { name, serving, from, to: now(), logged });
        Ok(())
    }

    /// What each backend logged since the last look.
    fn look(&mut self) -> Result<Vec<(String, u64)>> {
        let mut counts = Vec::new();
        for (number, server) in self.stage.servers.iter().enumerate() {
            let total = server.requests()?.len() as u64;
            let name = self.stage.fabric.backends[number].name().to_owned();
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
            self.stage.servers[*number].kill()?;
            let name = self.stage.fabric.backends[*number].name().to_owned();
            self.screen.command(&name, "kill -9 $(pidof nginx)");
        }
        for (number, at) in killed {
            let backend = &self.stage.fabric.backends[number];
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
            self.stage.servers[*number].restart()?;
            let name = self.stage.fabric.backends[*number].name().to_owned();
            self.screen.command(&name, "nginx");
        }
        for number in backends {
            let backend = &self.stage.fabric.backends[*number];
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
