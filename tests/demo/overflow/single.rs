//! One server alone, without a balancer: what can it do?

use anyhow::{Result, ensure};
use lb_tests::traffic::{HttperfReport, Siege, SiegeReport};
use serde::Serialize;

use super::WORK;
use super::setup::Setup;
use super::tutorial::{ONE_SERVER, SIEGE};
use crate::shared::{Screen, align, table};

/// As in the tutorial: 20 requests of each of 4 users, each after the answer to the last.
const USERS: Siege = Siege { clients: 4, requests: 20, pause: None };

/// What the tools said, in our own time.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Single {
    pub(crate) siege: SiegeReport,
    /// By the tutorial's rates.
    pub(crate) httperf: Vec<(f64, HttperfReport)>,
}

/// Measures the first server.
pub(crate) fn measure(setup: &Setup, screen: &mut Screen) -> Result<Single> {
    screen.heading("One server: what can it do?");
    let (client, server) = (&setup.fabric.client, setup.fabric.backends[0].v4.to_string());
    screen.command(
        "client",
        &format!("siege -b -c {} -r {} {server}", USERS.clients, USERS.requests),
    );
    let siege = USERS.run(client, &format!("http://{server}/"))?;
    let told = setup.scale.told_rate(siege.rate);
    screen.done(&format!("siege: {told:.2} requests a second"));
    let mut httperf = Vec::new();
    for (rate, ..) in ONE_SERVER {
        let load = setup.httperf(rate);
        screen.command("client", &format!("httperf {}", load.arguments(&server).join(" ")));
        let report = load.run(client, &server)?;
        let average = setup.scale.told(report.average_ms);
        screen.done(&format!("{rate:>4} requests/s: average {average:6.0} ms"));
        httperf.push((rate, report));
    }
    let single = Single { siege, httperf };
    single.print(setup, screen);
    single.check(setup)?;
    Ok(single)
}

impl Single {
    fn print(&self, setup: &Setup, screen: &Screen) {
        let scale = setup.scale;
        let mut table = table(&["one server", "here", "tutorial", "errors here", "tutorial"]);
        table.add_row([
            "siege, requests a second".into(),
            format!("{:.2}", scale.told_rate(self.siege.rate)),
            format!("{:.2}", SIEGE.0),
            self.siege.failed.to_string(),
            "0".into(),
        ]);
        let times =
            [("average", self.siege.average, SIEGE.1), ("longest", self.siege.longest, SIEGE.2)];
        for (name, here, there) in times {
            let here = format!("{:.2} s", scale.told(here));
            table.add_row([
                format!("siege, {name}"),
                here,
                format!("{there:.2} s"),
                String::new(),
                String::new(),
            ]);
        }
        for ((rate, here), (_, average, errors)) in self.httperf.iter().zip(ONE_SERVER) {
            table.add_row([
                format!("httperf at {rate}/s, average"),
                format!("{:.0} ms", scale.told(here.average_ms)),
                format!("{average:.0} ms"),
                here.errors.to_string(),
                errors.to_string(),
            ]);
        }
        align(&mut table, 1);
        screen.quote(&table.to_string());
    }

    /// About 5 a second, as work and places say: below that nobody waits, above everybody does.
    fn check(&self, setup: &Setup) -> Result<()> {
        let (capacity, work) = (WORK.capacity(), WORK.time.as_secs_f64() * 1e3);
        let rate = setup.scale.told_rate(self.siege.rate);
        let fair = capacity * 0.85..capacity * 1.02;
        ensure!(
            fair.contains(&rate),
            "siege: {rate:.2} requests a second, not about {capacity:.2}"
        );
        ensure!(self.siege.failed == 0, "siege: {} requests failed", self.siege.failed);
        for (rate, report) in &self.httperf {
            let average = setup.scale.told(report.average_ms);
            // What was missed while the machine stood still is made up for with what is to spare.
            let spare = (1.0 - rate / capacity).max(0.1);
            let most = 1.3 * work + setup.scale.noise_ms() / spare;
            let is_over = *rate > capacity;
            let fair = if is_over { 5.0 * work..f64::INFINITY } else { 0.99 * work..most };
            ensure!(fair.contains(&average), "one server at {rate}/s: {average:.0} ms on average");
            ensure!(report.errors == 0, "one server at {rate}/s: {} errors", report.errors);
        }
        Ok(())
    }
}
