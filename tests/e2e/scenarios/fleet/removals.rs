//! Changes that remove much at once.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use lb_e2e::fixture::{FleetPlan, Health};
use lb_tests::sandbox::Sandbox;

use super::calls::{CONFLICT, joined_as, refused};
use super::members::wait_in_force;

/// At any balancer, a change that removes much changes nothing unless it is forced; the others follow what was forced.
pub(super) fn need_force(sandbox: &Sandbox) -> Result<()> {
    let plan = FleetPlan { balancers: 2, etcd: 1, ..FleetPlan::FLEET };
    let fleet = joined_as(sandbox, "removals", plan)?;
    let whole = super::calls::text(&fleet)?;
    let backends = fleet.configuration(Health::DEFAULT).pools[0].members.len();
    ensure!(backends >= 4, "a pool of {backends} is not guarded");
    // The first and the last one of the first pool's stay.
    let blocks: Vec<&str> = whole.split("[[pool.backend]]").collect();
    let kept = [&blocks[..2], &blocks[backends..]].concat();
    let fewer = kept.join("[[pool.backend]]");
    let lost = format!(
        "loses {} of {backends} backends, more than 30 %: this needs --force",
        backends - 2
    );

    let apply = ["apply", "--yes", "-f", "-"];
    let (exit, said) = refused(&fleet, 1, &apply, Some(&fewer))?;
    ensure!(exit == CONFLICT && said.contains(&lost) && said.contains("hint: "), "{exit}: {said}");
    let (exit, said) = refused(&fleet, 0, &apply, Some("# nothing\n"))?;
    ensure!(exit == CONFLICT && said.contains("the configuration loses all backends"), "{said}");
    // Whoever is asked whether packets may stop is not asked in vain.
    let (exit, said) = refused(&fleet, 0, &["apply", "-f", "-"], Some("# nothing\n"))?;
    ensure!(exit == CONFLICT && said.contains("--force") && !said.contains("--yes"), "{said}");
    let dry = fleet.balancers[0].try_cli(&["apply", "--dry-run", "-f", "-"], Some(&fewer))?;
    let warned = String::from_utf8_lossy(&dry.stderr).into_owned();
    ensure!(dry.status.success() && warned.contains(&format!("{lost}\n")), "{dry:?}");
    wait_in_force(&fleet, 0, 1)?;

    let forced = [&apply[..], &["--force", "--wait"]].concat();
    let output = fleet.balancers[1].try_cli(&forced, Some(&fewer))?;
    ensure!(output.status.success(), "{output:?}");
    wait_in_force(&fleet, 0, 2)?;
    fleet.spillway(0, &["rollback", "1", "--yes", "--wait"])?;
    wait_in_force(&fleet, 1, 3)?;
    let (exit, said) = refused(&fleet, 1, &["rollback", "2", "--yes"], None)?;
    ensure!(exit == CONFLICT && said.contains(&lost), "{exit}: {said}");
    fleet.spillway(1, &["rollback", "2", "--yes", "--force", "--wait"])?;
    wait_in_force(&fleet, 0, 4).map(drop)
}

/// The address of another member is known by what etcd has of it.
pub(super) fn addresses_need_force(sandbox: &Sandbox) -> Result<()> {
    let plan = FleetPlan { balancers: 2, etcd: 1, ..FleetPlan::FLEET };
    let fleet = joined_as(sandbox, "addresses", plan)?;
    let pool = fleet.configuration(Health::DEFAULT).pools[0].name.clone();
    let members = super::members::status(&fleet, 0)?.members;
    for (at, other) in [(0, 1), (1, 0)] {
        let member = &members[other];
        let address: SocketAddr = member.address.parse()?;
        let address = address.ip().to_string();
        let create = ["service", "create", "peers", "--address", &address, "--port", "7946"];
        let create = [&create[..], &["--protocol", "tcp", "--pool", &pool]].concat();
        let (exit, said) = refused(&fleet, at, &create, None)?;
        let sentence = format!(
            "service peers has {address}, which is the address of balancer {}",
            member.name
        );
        ensure!(exit == CONFLICT && said.contains(&sentence), "{exit}: {said}");
        let own = members[at].address.parse::<SocketAddr>()?.ip().to_string();
        let own = create.iter().map(|word| if *word == address { &own } else { *word });
        let (exit, said) = refused(&fleet, at, &own.collect::<Vec<_>>(), None)?;
        let is_own = said.contains("which is the address in `address` of [fleet] of this balancer");
        ensure!(exit == CONFLICT && is_own, "{exit}: {said}");
    }
    let address = members[1].address.parse::<SocketAddr>()?.ip().to_string();
    let create = ["service", "create", "peers", "--address", &address, "--port", "7946"];
    let create = [&create[..], &["--protocol", "tcp", "--pool", &pool, "--force"]].concat();
    fleet.spillway(0, &create)?;
    wait_in_force(&fleet, 1, 2).map(drop)
}
