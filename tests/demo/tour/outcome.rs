//! What it came to: tables, pictures, and whether everybody tells the same story.

use std::time::Duration;

use anyhow::{Context as _, Result};
use lb_tests::process::until;
use lb_tests::report::{Agreement, BackendCount, ClientCount, Series, chart, svg};
use serde_json::json;

use super::phase::{self, Phase};
use super::run::Record;
use super::setup::Setup;
use crate::shared::{Environment, Screen, align, percent, table};

/// Stretch of time of the chart and of the picture, seconds.
const CHART_STEP: f64 = 0.5;
const PICTURE_STEP: f64 = 0.25;
/// A log line is written when its answer is complete: a moment after the client has it.
const LOGS: Duration = Duration::from_secs(2);

/// Reads every log and counter, compares, prints and writes it all down.
///
/// # Errors
/// When two numbers that should be equal are not, with both.
pub(crate) fn conclude(
    setup: &Setup,
    record: &Record,
    environment: &Environment,
    screen: &mut Screen,
) -> Result<()> {
    let client = client_count(record);
    let logs = logs(setup, client.answered)?;
    let backends = backend_counts(setup, &logs)?;
    let names: Vec<_> = backends.iter().map(|backend| backend.name.clone()).collect();
    let mut phases = record.phases.clone();
    phases.iter_mut().for_each(|phase| phase.count(&logs));
    draw(setup, record, &logs, environment, screen)?;
    tables(setup, &backends, &phases, &names, screen);

    let agreement = Agreement::check(&client, &backends);
    let report = json!({
        "agreement": agreement.as_ref().map_or_else(|error| json!(error.to_string()), |a| json!(a)),
        "client": client,
        "backends": backends,
        "phases": phases,
        "events": record.events.iter().map(|e| json!({"at": e.at, "what": e.what})).collect::<Vec<_>>(),
        "detection_ms": record.detection_ms.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
        "seconds": screen.seconds(),
    });
    environment.report(&report)?;
    environment.write("commands.txt", &screen.commands())?;

    screen.heading("Does everybody tell the same story?");
    let agreement = agreement?;
    let ClientCount { answered, failed, connections_opened, syns_repeated } = client;
    screen.done(&format!(
        "{connections_opened} connections opened by the client's kernel (+ {syns_repeated} repeated \
         SYNs) = {} counted by the balancer",
        agreement.syns
    ));
    screen
        .done(&format!("{answered} answers to siege and curl = {answered} lines in nginx's logs"));
    phase::check_failures(&phases, &record.runs)?;
    screen.done(&format!(
        "{failed} requests failed, all between the kill of a backend and its detection or return"
    ));
    for phase in &phases {
        phase.check_shares(&names)?;
    }
    screen.done("in every phase the serving backends shared alike, and no other had a request");
    environment.point_to(&["shares.svg", "report.json", "web.toml", "commands.txt"], screen);
    screen.line("  Namespaces, processes, pins and mounts go with this program.");
    Ok(())
}

fn client_count(record: &Record) -> ClientCount {
    let answered: u64 = record.runs.iter().map(|run| run.report.answered).sum();
    ClientCount {
        answered: answered + record.single_requests,
        failed: record.runs.iter().map(|run| run.report.failed).sum(),
        connections_opened: record.client.opened,
        syns_repeated: record.client.syns_repeated,
    }
}

/// The times in every backend's log, once they hold as many lines as clients had answers; if they
/// never do, as they are.
fn logs(setup: &Setup, answered: u64) -> Result<Vec<(String, Vec<f64>)>> {
    let read = || -> Result<Vec<(String, Vec<f64>)>> {
        let servers = setup.fabric.backends.iter().zip(&setup.servers);
        servers
            .map(|(backend, nginx)| {
                let times = nginx.requests()?.iter().map(|request| request.at).collect();
                Ok((backend.name().to_owned(), times))
            })
            .collect()
    };
    let complete = until("the logs are complete", LOGS, || {
        let logs = read()?;
        let lines: usize = logs.iter().map(|(_, times)| times.len()).sum();
        Ok((lines as u64 >= answered).then_some(logs))
    });
    complete.or_else(|_| read())
}

fn backend_counts(setup: &Setup, logs: &[(String, Vec<f64>)]) -> Result<Vec<BackendCount>> {
    let stats = setup.balancer.stats()?;
    let counts = setup.fabric.backends.iter().zip(logs).map(|(backend, (name, times))| {
        let address = backend.v4.to_string();
        let row = stats.backends.iter().find(|row| row.backend == address);
        Ok(BackendCount {
            name: name.clone(),
            region: backend.region.into(),
            logged: times.len() as u64,
            balancer_connections: row
                .with_context(|| format!("stats: no connections of {address}"))?
                .connections,
        })
    });
    counts.collect()
}

fn draw(
    setup: &Setup,
    record: &Record,
    logs: &[(String, Vec<f64>)],
    environment: &Environment,
    screen: &Screen,
) -> Result<()> {
    screen.heading("Who answered, over time");
    let series = Series::new(record.start, CHART_STEP, logs);
    screen.line(&chart(&series, &setup.colours, &record.events, 12, screen.ink));
    let series = Series::new(record.start, PICTURE_STEP, logs);
    let title = "Spillway demo: share of the requests by backend";
    environment.write("shares.svg", &svg(title, &series, &setup.colours, &record.events))
}

fn tables(
    setup: &Setup,
    backends: &[BackendCount],
    phases: &[Phase],
    names: &[String],
    screen: &Screen,
) {
    let total: u64 = backends.iter().map(|backend| backend.logged).sum();
    let mut table = table(&["backend", "region", "address", "requests", "share", "connections"]);
    for (count, backend) in backends.iter().zip(&setup.fabric.backends) {
        table.add_row([
            count.name.clone(),
            count.region.clone(),
            backend.v4.to_string(),
            count.logged.to_string(),
            percent(count.logged, total),
            count.balancer_connections.to_string(),
        ]);
    }
    let counted: u64 = backends.iter().map(|backend| backend.balancer_connections).sum();
    let all = ["all", "", "", &total.to_string(), "100.0 %", &counted.to_string()];
    table.add_row(all);
    align(&mut table, 3);
    screen.quote(&table.to_string());
    screen.line("           requests: lines in nginx's log; connections: the balancer's counter");
    screen.line("");

    let mut header = vec!["phase"];
    header.extend(names.iter().map(String::as_str));
    let mut table = crate::shared::table(&header);
    for phase in phases {
        let total = phase.logged.iter().sum();
        let shares = phase.logged.iter().map(|logged| percent(*logged, total));
        table.add_row(std::iter::once(phase.name.clone()).chain(shares));
    }
    align(&mut table, 1);
    screen.quote(&table.to_string());
}
