//! `spillway backend history`: the last state changes of backends, with their reasons.

use std::time::{Duration, SystemTime};

use clap::Args;
use serde::Serialize;
use spillway_proto::v1;

use crate::{
    arguments::Options,
    client::{DaemonClient, block_on},
    commands::backend_status::{Reason, state_word},
    failure::Failure,
    output::{Grid, Report, age, print, whole_seconds},
};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Pool
    pool: String,
    /// BackendHistory [default: all backends of the pool]
    address: Option<String>,
}

#[derive(Serialize)]
struct HistoryReport {
    backends: Vec<BackendHistory>,
}

#[derive(Serialize)]
struct BackendHistory {
    pool: String,
    address: String,
    changes: Vec<StateChange>,
}

#[derive(Serialize)]
struct StateChange {
    at: Option<String>,
    state: &'static str,
    #[serde(flatten)]
    reason: Reason,
    /// How long the state lasted, or has lasted so far.
    #[serde(skip)]
    duration: Option<Duration>,
}

/// # Errors
/// The daemon does not answer, or knows no such pool or backend.
pub(crate) fn run(options: Options, arguments: Arguments) -> Result<(), Failure> {
    let Arguments { pool, address } = arguments;
    let list = format!("`spillway backend list --pool {pool}` lists its backends");
    let hint = if address.is_some() { list } else { "`spillway pool list` lists all pools".into() };
    let request = v1::BackendHistoryRequest { pool, address: address.unwrap_or_default() };
    let answer = block_on(async {
        let answer = DaemonClient::connect(&options).await?.history(request).await;
        answer.map_err(|failure| match failure.code {
            Some(tonic::Code::NotFound) => failure.hint(hint),
            _ => failure,
        })
    })?;
    print(&HistoryReport::new(answer, SystemTime::now()), options.output)
}

impl HistoryReport {
    fn new(answer: v1::BackendHistoryResponse, now: SystemTime) -> Self {
        let backends = answer.backends.into_iter().map(|backend| BackendHistory::new(backend, now));
        Self { backends: backends.collect() }
    }
}

impl BackendHistory {
    fn new(backend: v1::BackendHistory, now: SystemTime) -> Self {
        let mut until = now;
        let change = |change: v1::StateChange| {
            let started = change.at.and_then(|at| SystemTime::try_from(at).ok());
            let duration = started.map(|started| until.duration_since(started).unwrap_or_default());
            until = started.unwrap_or(until);
            let at = change.at.map(|at| at.to_string());
            let state = state_word(change.state());
            StateChange { at, state, reason: change.reason.into(), duration }
        };
        let changes = backend.changes.into_iter().map(change).collect();
        Self { pool: backend.pool, address: backend.address, changes }
    }
}

impl Report for HistoryReport {
    fn table(&self) -> String {
        let mut grid = Grid::new(["BACKEND", "SINCE", "FOR", "STATE", "WHY"]);
        for backend in &self.backends {
            for change in &backend.changes {
                grid.row([
                    backend.address.clone(),
                    change.at.as_deref().map_or_else(|| "-".into(), whole_seconds),
                    change.duration.map_or_else(|| "-".into(), age),
                    change.state.to_owned(),
                    change.reason.text.clone(),
                ]);
            }
        }
        grid.lines()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::backend_status::messages;

    fn example() -> HistoryReport {
        let change = |seconds, state: &str, reason: &str| v1::StateChange {
            at: Some(prost_types::Timestamp { seconds, nanos: 250_000_000 }),
            state: messages::state(state),
            reason: messages::reason(reason),
        };
        let changes = vec![
            change(1_000_090, "up", "all checks pass"),
            change(1_000_000, "unhealthy", "check web: connection refused"),
        ];
        let backend =
            v1::BackendHistory { pool: "web".into(), address: "10.0.0.1".into(), changes };
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(1_000_095_250);
        HistoryReport::new(v1::BackendHistoryResponse { backends: vec![backend] }, now)
    }

    #[test]
    fn each_change_has_its_time_duration_and_reason() {
        assert_eq!(
            example().table(),
            "\
BACKEND   SINCE                 FOR     STATE      WHY
10.0.0.1  1970-01-12T13:48:10Z  5s      up         all checks pass
10.0.0.1  1970-01-12T13:46:40Z  1m 30s  unhealthy  check web: connection refused
"
        );
        let json = serde_json::to_value(example()).unwrap();
        assert_eq!(json["backends"][0]["changes"][1]["at"], "1970-01-12T13:46:40.250Z");
    }
}
