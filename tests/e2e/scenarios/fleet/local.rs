//! Overrides of one balancer alone, which need no etcd.

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{FleetFixture, FleetPlan};
use lb_tests::{
    daemon::answers::reason,
    process::{PATIENCE, until},
    sandbox::Sandbox,
};
use spillway_proto::v1::BackendState;

use super::calls::{
    CONFLICT, UNAVAILABLE, ensure_refused, joined_as, reweigh, wait_for_condition, wait_until_well,
};
use super::members::{wait_for_equal_tables, wait_in_force};
use super::traffic::Traffic;

/// The names of the overrides in force at a balancer.
fn overrides(fleet: &FleetFixture, balancer: usize) -> Result<Vec<String>> {
    let listed = fleet.balancers[balancer].overrides()?.overrides;
    ensure!(listed.iter().all(|it| it.local == it.name.starts_with("local/")), "{listed:#?}");
    Ok(listed.into_iter().map(|it| it.name).collect())
}

/// Waits until exactly these overrides are in force at a balancer.
fn wait_for(fleet: &FleetFixture, balancer: usize, expected: &[&str]) -> Result<()> {
    until("the overrides are in force", PATIENCE, || {
        Ok((overrides(fleet, balancer)? == expected).then_some(()))
    })
    .with_context(|| format!("{}: {:?}", fleet.name(balancer), overrides(fleet, balancer)))
}

/// Waits until a backend has a state in all its pools, as one balancer sees it.
fn wait_for_state(
    fleet: &FleetFixture,
    balancer: usize,
    address: &str,
    state: BackendState,
) -> Result<()> {
    until(&format!("backend {address} is {state:?}"), PATIENCE, || {
        let status = fleet.balancers[balancer].status()?;
        let mut of_address = status.backends.iter().filter(|it| it.address == address);
        Ok(of_address.all(|it| it.state() == state).then_some(()))
    })
}

/// A number of an open metrics page of the balancer's own, read where it runs.
fn metric(fleet: &FleetFixture, balancer: usize, name: &str) -> Result<String> {
    let script = "exec curl --silent --show-error --fail http://127.0.0.1:9095/metrics";
    let output = fleet.balancers[balancer].shell(script).output()?;
    ensure!(output.status.success(), "{output:?}");
    let page = String::from_utf8(output.stdout)?;
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map(str::to_owned).with_context(|| format!("no {name}"))
}

/// What decides packets of each pool is the same at all balancers.
fn ensure_alike(fleet: &FleetFixture) -> Result<()> {
    wait_for_equal_tables(fleet, 1)
}

/// Without etcd a balancer is drained of a backend by itself, until an operator hands that to the fleet.
pub(super) fn without_etcd(sandbox: &Sandbox) -> Result<()> {
    let plan =
        FleetPlan { balancers: 3, settings: "http = \"127.0.0.1:9095\"\n", ..FleetPlan::FLEET };
    let mut fleet = joined_as(sandbox, "local", plan)?;
    // Connections are at home in the first region: a drain moves none of them, and the disable is in the other.
    let one = fleet.fabric.backends[0].v4.to_string();
    let two = fleet.fabric.backends.last().context("no backends")?.v4.to_string();
    let names = |kind: &str, address: &str| {
        [format!("backends/{address}/{kind}"), format!("local/backends/{address}/{kind}")]
    };
    let [shared, local] = names("drain", &one);
    let [_, disabled] = names("disable", &two);
    let traffic = Traffic::start(&fleet)?;

    let etcd = fleet.etcd.as_mut().context("no etcd")?;
    for server in 0..2 {
        etcd.kill(server)?;
    }
    wait_for_condition(&fleet, 0, ("etcd", "etcd"))?;
    let drain = ["backend", "drain", &one, "--yes"];
    ensure_refused(&fleet, 0, &drain, (UNAVAILABLE, &["etcd", "with --local"]))?;
    let said = fleet.spillway(0, &[&drain[..], &["--local", "--reason", "ticket 7"]].concat())?;
    ensure!(said.contains(&format!("override {local} is in force")), "{said}");
    wait_for_state(&fleet, 0, &one, BackendState::Draining)?;
    wait_for_state(&fleet, 1, &one, BackendState::Up)?;
    ensure!(overrides(&fleet, 1)?.is_empty());
    let status = fleet.balancers[0].status()?;
    let drained = "drained by a local override of uid 0 (root): ticket 7";
    ensure!(status.backends.iter().any(|it| reason(it).contains(drained)), "{status:#?}");
    let table = fleet.spillway(0, &["status"])?;
    ensure!(table.contains("1 of them at this balancer alone"), "{table}");
    traffic.goes_on()?;

    // It outlives the daemon, also without etcd.
    fleet.balancers[0].kill()?;
    fleet.balancers[0].start()?;
    wait_for(&fleet, 0, &[&local])?;
    wait_for_state(&fleet, 0, &one, BackendState::Draining)?;
    fleet.spillway(0, &["backend", "disable", &two, "--local", "--yes"])?;
    wait_for_state(&fleet, 0, &two, BackendState::Disabled)?;
    ensure!(metric(&fleet, 0, "spillway_overrides_local")? == "2");
    ensure!(metric(&fleet, 1, "spillway_overrides_local")? == "0");

    // etcd comes back, and the fleet goes on with changes: nothing of it is merged.
    fleet.etcd.as_mut().context("no etcd")?.start_all()?;
    wait_until_well(&fleet, 0..3)?;
    fleet.spillway(1, &reweigh(&one, "2"))?;
    wait_in_force(&fleet, 1, 2)?;
    wait_for(&fleet, 0, &[&local, &disabled])?;
    ensure!(overrides(&fleet, 2)?.is_empty());
    ensure_alike(&fleet)?;

    // The fleet drains it too, and ends that.
    fleet.spillway(1, &drain)?;
    wait_for(&fleet, 0, &[&shared, &local, &disabled])?;
    let ended = fleet.balancers[1].try_cli(&["backend", "undrain", &one], None)?;
    ensure!(ended.status.success(), "{ended:?}");
    wait_for(&fleet, 0, &[&local, &disabled])?;
    wait_for_state(&fleet, 1, &one, BackendState::Up)?;
    wait_for_state(&fleet, 0, &one, BackendState::Draining)?;

    // The operator hands it over.
    fleet.spillway(0, &drain)?;
    wait_for(&fleet, 0, &[&shared, &disabled])?;
    for balancer in [1, 2] {
        wait_for(&fleet, balancer, &[&shared])?;
    }
    fleet.spillway(2, &["backend", "undrain", &one])?;
    wait_for(&fleet, 0, &[&disabled])?;
    fleet.spillway(0, &["backend", "enable", &two, "--local"])?;
    wait_for(&fleet, 0, &[])?;
    for address in [&one, &two] {
        wait_for_state(&fleet, 0, address, BackendState::Up)?;
    }
    traffic.finish(None)?;

    // A balancer that leaves keeps what is in force, as its own.
    fleet.spillway(2, &[&drain[..], &["--local"]].concat())?;
    fleet.spillway(2, &["fleet", "leave", "--yes"])?;
    wait_for(&fleet, 2, &[&shared])?;
    let again = [&drain[..], &["--local"]].concat();
    ensure_refused(&fleet, 2, &again, (CONFLICT, &["no member of a fleet", "leave --local out"]))
}
