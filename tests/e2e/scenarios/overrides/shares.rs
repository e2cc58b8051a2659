//! Weights and scales.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    fixture::{ECHO, Fixture, Health, Tunnel, configuration},
    harness,
};
use lb_tests::{
    process::{PATIENCE, until},
    sandbox::Sandbox,
    traffic::Stream,
};
use spillway_proto::v1::{BackendState, TableResponse};

use super::{address, answers, names, status_of};

/// New connections of which each share is measured.
const MANY: u64 = 12_000;

/// That each backend has its share, within what chance and tables leave.
fn ensure_shares(found: &BTreeMap<String, u64>, expected: [f64; 3]) -> Result<()> {
    harness::note(format!("{found:?}"));
    let all: u64 = found.values().sum();
    for (name, expected) in ["eu1", "eu2", "eu3"].into_iter().zip(expected) {
        let share = found.get(name).copied().unwrap_or_default() as f64 / all as f64;
        // Key and ports are the fixture's, so of the ten thousand connections that there can be each backend always has the
        // same part, which is up to 0.01 off. Twelve thousand draws have a deviation of 0.004 beside it, and the slots that a
        // weight leaves about as much.
        ensure!((share - expected).abs() < 0.03, "{name}: {share:.3} of {expected:.3}: {found:?}");
    }
    Ok(())
}

/// What three equal backends get whose slots are walked in every order alike, each of which takes its part of those that it
/// comes to.
fn expected(parts: [f64; 3]) -> [f64; 3] {
    let mut shares = [0.0; 3];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut left = 1.0 / 6.0;
        for backend in order {
            shares[backend] += left * parts[backend];
            left *= 1.0 - parts[backend];
        }
    }
    shares
}

/// One backend at a tenth, then two of three, which is beyond half of the group. All stay up, all are answered, no table
/// changes.
pub(super) fn weights(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "weights", Health::QUICK)?;
    ensure_shares(&answers(&fixture, MANY)?, expected([1.0; 3]))?;
    let checksum = fixture.balancer.status()?.checksum;
    let table = fixture.balancer.client()?.table("")?;
    let client = fixture.fabric.client.clone();
    let open = |seed| Stream::open(&client, Tunnel::Ipip.endpoint(ECHO), seed);
    let streams = (0..24).map(open).collect::<Result<Vec<_>>>()?;

    let [one, two] = ["eu1", "eu2"].map(|name| address(&fixture, name));
    let (one, two) = (one?, two?);
    let weigh = |address: &str, percent: &str| {
        fixture.balancer.cli(&["backend", "weight", address, "--percent", percent])
    };
    let said = weigh(&one, "10")?;
    ensure!(said == format!("override backends/{one}/weight (10 %) is in force\n"), "{said}");
    let status = status_of(&fixture, &one)?;
    ensure!(status.state() == BackendState::Up, "{status:?}");
    ensure!(status.overrides == [format!("backends/{one}/weight")], "{status:?}");
    ensure_shares(&answers(&fixture, MANY)?, expected([0.1, 1.0, 1.0]))?;
    tables_show(&fixture, &one, &format!("{:.0}%", expected([0.1, 1.0, 1.0])[0] * 100.0))?;
    weigh(&two, "10")?;
    ensure_shares(&answers(&fixture, MANY)?, expected([0.1, 0.1, 1.0]))?;

    // None at all is a drain; the whole ends the override.
    weigh(&one, "0")?;
    ensure!(status_of(&fixture, &one)?.state() == BackendState::Draining);
    let found = answers(&fixture, MANY)?;
    ensure!(!found.contains_key("eu1"), "{found:?}");
    let now = fixture.balancer.client()?.table("")?;
    ensure!(owners(&now) == owners(&table), "a table changed: {now:?}");
    ensure!(fixture.balancer.status()?.checksum == checksum, "what agrees changed");
    weigh(&one, "100")?;
    weigh(&two, "100")?;
    ensure!(names(&fixture)?.is_empty(), "{:?}", names(&fixture)?);
    fixture.wait_up(&[])?;
    ensure_shares(&answers(&fixture, MANY)?, expected([1.0; 3]))?;
    Stream::all_go_on(&streams)?;
    Stream::finish_all(streams)
}

/// That the operator's two tables have these figures of a backend whose weight is a tenth.
fn tables_show(fixture: &Fixture, address: &str, share: &str) -> Result<()> {
    let overridden = format!("backends/{address}/weight (10 %)");
    for command in [&["status", "-o", "wide"][..], &["backend", "list"]] {
        let table = fixture.balancer.cli(command)?;
        let mut lines = table.lines().skip_while(|line| !line.starts_with("POOL "));
        let header = lines.next().context("no table")?;
        let row = lines.find(|line| line.starts_with("v4 ") && line.contains(address));
        let row = row.with_context(|| format!("{address}: {table}"))?;
        let cell = |column: &str| {
            let at = header.find(column).with_context(|| format!("{column}: {table}"))?;
            let cell = row.get(at..).unwrap_or_default();
            anyhow::Ok(cell.split("  ").next().unwrap_or_default().trim().to_owned())
        };
        ensure!(cell("WEIGHT")? == "1" && cell("STATE")? == "up", "{table}");
        ensure!(cell("SHARE")? == share, "SHARE is not {share}: {table}");
        // A long name goes on in the next line.
        let named = cell("OVERRIDES")?;
        ensure!(named.starts_with("backends/") && overridden.starts_with(&named), "{table}");
        cell("CONN/S")?.parse::<f64>().with_context(|| table.clone())?;
    }
    Ok(())
}

/// Slots by owner.
fn owners(table: &TableResponse) -> Vec<(&str, &str, u32)> {
    let mut owners = Vec::new();
    for pool in &table.pools {
        let backends = pool.groups.iter().flat_map(|group| &group.backends);
        owners.extend(backends.map(|it| (&*pool.pool, &*it.address, it.slots)));
    }
    owners
}

/// Drained, new connections go to the next region; scaled, the capacity is a part of the configured one.
pub(super) fn region(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::idle(sandbox, "scaled")?;
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    let pool = "health_checks = [\"page\"]\n";
    let group = "[[pool.group]]\nregion = \"eu\"\ncapacity = \"10000/s\"\nscaler = 0.8\n";
    fixture.balancer.apply(&text.replacen(pool, &format!("{pool}{group}"), 1))?;
    fixture.wait_up(&[])?;
    let client = fixture.fabric.client.clone();
    let open = |seed| Stream::open(&client, Tunnel::Ipip.endpoint(ECHO), seed);
    let streams = (0..12).map(open).collect::<Result<Vec<_>>>()?;
    let near = |fixture: &Fixture| -> Result<bool> {
        Ok(answers(fixture, 200)?.keys().all(|name| name.starts_with("eu")))
    };
    let far = |fixture: &Fixture| -> Result<bool> {
        Ok(answers(fixture, 200)?.keys().all(|name| name.starts_with("us")))
    };
    let capacity = |fixture: &Fixture| -> Result<f64> {
        let groups = fixture.balancer.client()?.regions("v4")?.regions;
        let group = groups.iter().find(|it| it.region == "eu").context("no such region")?;
        group.capacity_per_second.with_context(|| format!("{group:?}"))
    };
    ensure!(near(&fixture)?);
    fixture.balancer.cli(&["region", "drain", "eu"])?;
    ensure!(far(&fixture)?);
    for name in ["eu1", "eu2", "eu3"] {
        let status = status_of(&fixture, &address(&fixture, name)?)?;
        ensure!(status.state() == BackendState::Draining, "{status:?}");
    }
    ensure!(capacity(&fixture)? == 0.0);
    fixture.balancer.cli(&["region", "undrain", "eu"])?;
    fixture.wait_up(&[])?;
    ensure!(near(&fixture)?);
    ensure!((capacity(&fixture)? - 8_000.0).abs() < 1.0, "{}", capacity(&fixture)?);

    // Of scales the lowest counts, also that of the configuration.
    fixture.balancer.cli(&["region", "scale", "eu", "--percent", "90"])?;
    ensure!((capacity(&fixture)? - 8_000.0).abs() < 1.0, "{}", capacity(&fixture)?);
    fixture.balancer.cli(&["pool", "scale", "v4", "--region", "eu", "--percent", "50"])?;
    ensure!((capacity(&fixture)? - 5_000.0).abs() < 1.0, "{}", capacity(&fixture)?);
    fixture.balancer.cli(&["pool", "drain", "v4", "--region", "eu"])?;
    ensure!(far(&fixture)?);
    let all = names(&fixture)?;
    ensure!(all.len() == 3, "{all:?}");
    let mut remove = vec!["override", "remove"];
    remove.extend(all.iter().map(String::as_str));
    fixture.balancer.cli(&remove)?;
    until("the near region takes all again", PATIENCE, || Ok(near(&fixture)?.then_some(())))?;
    Stream::all_go_on(&streams)?;
    Stream::finish_all(streams)
}
