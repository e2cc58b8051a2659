//! The history of a backend has each change of its state.

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, Health};
use lb_tests::daemon::{Answer, Client};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use spillway_proto::v1::{
    BackendHistoryRequest, BackendHistoryResponse, BackendState, StateChange, state_reason::Cause,
};
use tonic::Code;

fn history(client: &Client, pool: &str, address: &str) -> Answer<BackendHistoryResponse> {
    let request = BackendHistoryRequest { pool: pool.into(), address: address.into() };
    client.call(async |mut c| c.backend_history(request).await)
}

/// A server goes and comes back: each change once, the newest first, with its reason.
pub(crate) fn of_a_backend(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "history", Health::QUICK)?;
    let client = fixture.balancer.client()?;
    let number = fixture.number("eu2")?;
    fixture.servers[number].kill()?;
    fixture.wait_up(&["eu2"])?;
    fixture.servers[number].restart()?;
    fixture.wait_up(&[])?;

    let address = fixture.fabric.backends[number].v4.to_string();
    let mut told = history(&client, "v4", &address)?.backends;
    let of_it = told.pop().filter(|_| told.is_empty()).context("not one backend")?;
    ensure!((&*of_it.pool, &*of_it.address) == ("v4", &*address), "{of_it:?}");
    let changes = of_it.changes.iter().map(|it| {
        let reason = it.reason.clone().unwrap_or_default();
        (it.state(), reason.cause(), reason.health_check, reason.text)
    });
    let changes: Vec<_> = changes.collect();
    let told = |state, cause, check: &str, text: &str| (state, cause, check.into(), text.into());
    let expected = [
        told(BackendState::Up, Cause::ChecksPass, "", "all checks pass"),
        told(BackendState::Unhealthy, Cause::CheckFails, "page", "check page: connection refused"),
        told(BackendState::Up, Cause::ChecksPass, "", "all checks pass"),
        told(BackendState::Pending, Cause::NotChecked, "", "not checked yet"),
    ];
    ensure!(changes == expected, "{changes:?}");
    let times = of_it.changes.iter().filter_map(|c| c.at.as_ref().map(|t| (t.seconds, t.nanos)));
    let times: Vec<_> = times.collect();
    ensure!(times.len() == 4 && times.is_sorted_by(|new, old| new > old), "{times:?}");

    // Of the whole pool: each by its address, and the others have seen nothing of it.
    let all = history(&client, "v4", "")?.backends;
    let mut addresses: Vec<_> = fixture.fabric.backends.iter().map(|b| b.v4).collect();
    addresses.sort();
    let listed = all.iter().map(|backend| backend.address.clone());
    ensure!(listed.eq(addresses.iter().map(ToString::to_string)), "{all:?}");
    for other in all.iter().filter(|other| other.address != address) {
        let states = other.changes.iter().map(StateChange::state);
        ensure!(states.eq([BackendState::Up, BackendState::Pending]), "{other:?}");
    }

    for (pool, address, message) in
        [("none", "", "pool \"none\" does not exist"), ("v4", "192.0.2.9", "192.0.2.9")]
    {
        let status = history(&client, pool, address).err().context("it is answered")?;
        ensure!(status.code() == Code::NotFound, "{status}");
        ensure!(status.message().contains(message), "{status}");
    }
    // It begins anew with the daemon, which finds them as they are.
    fixture.balancer.stop()?;
    fixture.balancer.start()?;
    let client = fixture.balancer.client()?;
    until("the newest change is an answer of its checks", PATIENCE, || {
        let told = history(&client, "v4", &address)?.backends;
        let changes = &told.first().context("no history")?.changes;
        ensure!(changes.len() <= 2, "{changes:?}");
        let newest = changes.first().and_then(|it| it.reason.as_ref());
        Ok(newest.is_some_and(|it| it.cause() == Cause::ChecksPass).then_some(()))
    })
}
