//! A scrape of a thousand services of a hundred backends each stays small and fast.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lb_e2e::fixture::HASH_KEY;
use lb_e2e::harness;
use lb_tests::daemon::{Balancer, Binaries, HTTP_ADDRESS, get, scrape};
use lb_tests::process::until;
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Fabric, REGIONS};

const SERVICES: usize = 1_000;
const BACKENDS: usize = 100;
/// Addresses: each pool has a hundred of them.
const ADDRESSES: usize = 10_000;

pub(crate) fn scrape_thousand(sandbox: &Sandbox) -> Result<()> {
    let fabric = Fabric::new(sandbox, "thousand", 1)?;
    let binaries = Binaries::find()?;
    let mut balancer = Balancer::new(sandbox, &binaries, &fabric.balancer, REGIONS[0])?;
    balancer.more = vec!["--http".into(), HTTP_ADDRESS.to_string(), "--status-page".into()];
    balancer.more.extend(["--pool-backends".into(), (SERVICES * BACKENDS).to_string()]);
    balancer.start()?;
    balancer.traces_drops()?;
    let empty = scrape(&fabric.balancer)?.len();
    let applying = Instant::now();
    balancer.apply(&configuration())?;
    let applied = applying.elapsed();

    // Ten thousand next hops are news for each pool that has them.
    until("the news are over", Duration::from_secs(180), || {
        let resolved = balancer.try_cli(&["status"], None)?;
        Ok(resolved.status.success().then_some(()))
    })?;
    let begun = Instant::now();
    let (head, body) = get(&fabric.balancer, "/metrics")?;
    let scraped = begun.elapsed();
    ensure!(head.starts_with("HTTP/1.1 200 "), "{head}\n{body}");
    let begun = Instant::now();
    get(&fabric.balancer, "/metrics")?;
    let again = begun.elapsed();
    let begun = Instant::now();
    let (_, page) = get(&fabric.balancer, "/data.json")?;
    let shown = begun.elapsed();
    harness::note(format!(
        "{SERVICES} services x {BACKENDS} backends: applied in {applied:.2?}; /metrics {} KiB in \
         {scraped:.2?}, then in {again:.2?}; /data.json without backends {} KiB in {shown:.2?}",
        body.len() / 1024,
        page.len() / 1024
    ));
    let all = lb_tests::openmetrics::Exposition::read(&body)?;
    // docs/metrics.md: 6 a service, 6 a backend address, less the size of a way that is not known yet and
    // what no router said of it, 4 a backend of a pool, less the utilisation that none says, 3 a pool, and
    // of a region of a pool 15, less its rates without a limit.
    let sizes = all.samples("spillway_backend_mtu_bytes").count();
    ensure!(sizes <= ADDRESSES, "{sizes} sizes of ways to {ADDRESSES} addresses");
    let wanted = 6 * SERVICES + 4 * ADDRESSES + sizes + 3 * SERVICES * BACKENDS + 3 * SERVICES;
    let groups = SERVICES * 11;
    let more = all.len() as i64 - (empty + wanted + groups) as i64;
    ensure!((0..=SERVICES as i64 + 1).contains(&more), "{more} samples more than known");
    Ok(())
}

fn configuration() -> String {
    let mut text = format!("hash_key = \"{HASH_KEY}\"\n[[region]]\nname = \"eu\"\n");
    for number in 0..SERVICES {
        let _ = write!(
            text,
            "[[service]]\nname = \"s{number}\"\naddress = \"203.0.113.{}\"\nport = {}\n\
             protocol = \"tcp\"\npool = \"p{number}\"\n[[pool]]\nname = \"p{number}\"\nslots = 1009\n",
            number % 250,
            1 + number / 250,
        );
        for backend in 0..BACKENDS {
            let host = (number * BACKENDS + backend) % ADDRESSES;
            let _ = write!(
                text,
                "[[pool.backend]]\naddress = \"10.9.{}.{}\"\nregion = \"eu\"\n",
                host / 200,
                1 + host % 200
            );
        }
    }
    text
}
