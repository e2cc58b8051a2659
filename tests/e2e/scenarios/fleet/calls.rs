//! What scenarios ask a fleet, and how it refuses.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{FleetFixture, FleetPlan, Health, Tunnel};
use lb_tests::{
    daemon::answers::{self, shared_group},
    process::{PATIENCE, until},
    sandbox::Sandbox,
    topology::REGIONS,
};
use spillway_proto::v1::FleetStatus;

use super::members::{status, wait_in_force};

/// Exit statuses of `spillway`, as docs/cli.md has them.
pub(super) const USAGE: i32 = 2;
pub(super) const UNAVAILABLE: i32 = 3;
pub(super) const NOT_FOUND: i32 = 5;
pub(super) const CONFLICT: i32 = 7;

/// A fleet of some balancers, all of which have joined and are ready with the first one's configuration.
pub(super) fn joined_as(sandbox: &Sandbox, name: &str, plan: FleetPlan) -> Result<FleetFixture> {
    let mut fleet = FleetFixture::start(sandbox, name, plan)?;
    join_all(&mut fleet)?;
    Ok(fleet)
}

/// All balancers join, with the first one's configuration, and are ready.
pub(super) fn join_all(fleet: &mut FleetFixture) -> Result<()> {
    found_with(fleet, &text(fleet)?)?;
    fleet.wait_up()
}

/// The first balancer founds the fleet with a configuration, and all others join and have it in force.
pub(super) fn found_with(fleet: &FleetFixture, text: &str) -> Result<()> {
    fleet.balancers[0].apply(text)?;
    for balancer in 0..fleet.balancers.len() {
        // Without --yes: none of them has anything to lose.
        fleet.spillway(balancer, &["fleet", "join"])?;
    }
    wait_in_force(fleet, 0, 1).map(drop)
}

/// Services beside those of a fixture, for long connections through some tunnels.
pub(super) fn long_services(tunnels: &[Tunnel], port: u16) -> String {
    let service = |tunnel: &Tunnel| {
        format!(
            "[[service]]\nname = \"long-{}\"\naddress = \"{}\"\nport = {port}\nprotocol = \"tcp\"\npool = \"{}\"\n",
            tunnel.name(),
            tunnel.vip(),
            tunnel.pool()
        )
    };
    tunnels.iter().map(service).collect()
}

/// The configuration that [`joined_as`] begins with.
pub(super) fn text(fleet: &FleetFixture) -> Result<String> {
    fleet.configuration_with(Health::DEFAULT, "1000/s", None)
}

/// The exit status of a command that is refused, and what it says.
pub(super) fn refused(
    fleet: &FleetFixture,
    balancer: usize,
    arguments: &[&str],
    input: Option<&str>,
) -> Result<(i32, String)> {
    let output = fleet.balancers[balancer].try_cli(arguments, input)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let code = output.status.code().context("spillway was killed")?;
    ensure!(code != 0, "{arguments:?} is not refused: {}", String::from_utf8_lossy(&output.stdout));
    Ok((code, said))
}

/// A command is refused with this exit status and these words.
pub(super) fn ensure_refused(
    fleet: &FleetFixture,
    balancer: usize,
    arguments: &[&str],
    (code, words): (i32, &[&str]),
) -> Result<()> {
    let (exit, said) = refused(fleet, balancer, arguments, None)?;
    ensure!(exit == code, "{arguments:?}: exit status {exit}, not {code}: {said}");
    for word in words {
        ensure!(said.contains(word), "{arguments:?}: no {word:?} in: {said}");
    }
    Ok(())
}

/// The weight of a backend of the first pool, changed at one balancer for all of them.
pub(super) fn reweigh<'a>(backend: &'a str, weight: &'a str) -> [&'a str; 8] {
    ["backend", "update", backend, "--pool", "v4", "--weight", weight, "--wait"]
}

/// The cause of a condition that a balancer has now.
pub(super) fn condition(
    fleet: &FleetFixture,
    balancer: usize,
    subject: &str,
) -> Result<Option<String>> {
    let status = fleet.balancers[balancer].status()?;
    Ok(answers::condition(&status, subject).map(str::to_owned))
}

/// Waits until a balancer has a condition with these words.
pub(super) fn wait_for_condition(
    fleet: &FleetFixture,
    balancer: usize,
    (subject, words): (&str, &str),
) -> Result<()> {
    until(&format!("{} has condition {subject} ({words})", fleet.name(balancer)), PATIENCE, || {
        let cause = condition(fleet, balancer, subject)?;
        Ok(cause.is_some_and(|cause| cause.contains(words)).then_some(()))
    })
    .with_context(|| format!("{:?}", condition(fleet, balancer, subject)))
}

/// Waits until none of some balancers has a condition about the fleet or etcd any more.
pub(super) fn wait_until_well(
    fleet: &FleetFixture,
    balancers: impl IntoIterator<Item = usize>,
) -> Result<()> {
    for balancer in balancers {
        for subject in ["etcd", "fleet", "fleet configuration", "fleet shares"] {
            until("the condition is over", PATIENCE, || {
                Ok(condition(fleet, balancer, subject)?.is_none().then_some(()))
            })
            .with_context(|| {
                let cause = condition(fleet, balancer, subject);
                format!("{}: {subject}: {cause:?}", fleet.name(balancer))
            })?;
        }
    }
    Ok(())
}

/// By balancers, the portions of the group that has a capacity, as one of them sees it.
pub(super) fn portions(status: &FleetStatus) -> Result<BTreeMap<String, f64>> {
    let shares = &shared_group(status, "v4", REGIONS[0])?.shares;
    Ok(shares.iter().map(|share| (share.balancer.clone(), share.portion)).collect())
}

/// What a balancer says itself that it owns of the group that has a capacity.
pub(super) fn own_portion(fleet: &FleetFixture, balancer: usize) -> Result<f64> {
    let portions = portions(&status(fleet, balancer)?)?;
    Ok(portions.get(fleet.name(balancer)).copied().unwrap_or(0.0))
}

/// Waits until some balancers own one whole, as each of them says itself: a mute one tells the others of no new portion.
pub(super) fn wait_until_owned_by(fleet: &FleetFixture, balancers: &[usize]) -> Result<()> {
    until("a whole is owned by these", PATIENCE, || {
        let sum: f64 = balancers.iter().map(|at| own_portion(fleet, *at)).sum::<Result<f64>>()?;
        ensure!(sum <= WHOLE, "{sum} of a capacity is owned");
        Ok((sum > 2.0 - WHOLE).then_some(()))
    })
}

/// How much of a pool's capacity in the nearest region is owned, as a balancer sees it.
pub(super) fn sum_of(status: &FleetStatus, pool: &str) -> f64 {
    let group = shared_group(status, pool, REGIONS[0]);
    group.map_or(0.0, |group| group.shares.iter().map(|share| share.portion).sum())
}

/// Waits until the portions of exactly these balancers are one whole, as one of them sees it.
pub(super) fn wait_for_whole(fleet: &FleetFixture, at: usize, balancers: &[usize]) -> Result<()> {
    let names: Vec<_> = balancers.iter().map(|it| fleet.name(*it)).collect();
    until("the portions are one whole", PATIENCE, || {
        let portions = portions(&status(fleet, at)?)?;
        let held = portions.iter().filter(|(_, portion)| **portion > 0.0);
        let holders: Vec<_> = held.map(|(name, _)| name.as_str()).collect();
        let sum: f64 = portions.values().sum();
        ensure!(sum <= WHOLE, "{sum} of a capacity is owned: {portions:?}");
        Ok((sum > 2.0 - WHOLE && holders == names).then_some(()))
    })
    .with_context(|| {
        let seen = status(fleet, at).and_then(|it| portions(&it));
        format!("at {}: {seen:?}", fleet.name(at))
    })
}

/// One whole: portions are shown as floating-point numbers.
pub(super) const WHOLE: f64 = 1.0 + 1e-6;
