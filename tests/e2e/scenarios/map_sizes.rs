//! The settings say how much a configuration may have. Pinned maps keep their sizes until they are detached.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, HTTP, Health, Tunnel, configuration};
use lb_e2e::harness::Case;
use lb_tests::daemon::{Balancer, Document, Service, answers};
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::{Requests, ensure_answered};

pub(crate) const CASES: &[Case] = &[
    Case::waits("one_service_more_than_fits_is_refused_until_the_maps_are_larger", one_more),
    Case::waits("a_configuration_that_fits_no_more_waits_for_larger_maps", fits_no_more),
];

/// Services of the fixture's configuration.
const SERVICES: u32 = 12;

fn sized(balancer: &mut Balancer, services: u32) {
    balancer.more = vec!["--services".into(), services.to_string()];
}

/// Starts the daemon with maps of its own settings.
fn start_anew(balancer: &mut Balancer) -> Result<()> {
    balancer.stop()?;
    balancer.cli(&["detach", "--yes"])?;
    balancer.start()
}

/// The fixture at work, with as many services as fit.
fn full(sandbox: &Sandbox, name: &str) -> Result<(Fixture, Document)> {
    let mut fixture = Fixture::idle(sandbox, name)?;
    let document = configuration(&fixture.fabric, Health::QUICK);
    ensure!(document.services.len() == SERVICES as usize, "{}", document.services.len());
    sized(&mut fixture.balancer, SERVICES);
    start_anew(&mut fixture.balancer)?;
    fixture.balancer.apply(&document.text())?;
    fixture.wait_up(&[])?;
    Ok((fixture, document))
}

fn with_one_more(mut document: Document) -> Document {
    let pool = Tunnel::Ipip.pool().into();
    let (address, port) = (Tunnel::Ipip.vip(), 8_080);
    let service = Service { name: "more".into(), address, port, protocol: "tcp", pool };
    document.services.push(service);
    document
}

/// What `spillway apply` prints on standard error where it is refused.
fn refusal(balancer: &Balancer, document: &Document) -> Result<String> {
    let output = balancer.try_cli(&["apply", "-f", "-"], Some(&document.text()))?;
    ensure!(!output.status.success(), "{output:?}");
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The cause of the condition with a subject, if there is one.
fn condition(balancer: &Balancer, subject: &str) -> Result<Option<String>> {
    Ok(answers::condition(&balancer.status()?, subject).map(str::to_owned))
}

const MAP_SIZES: &str = "map sizes";

fn one_more(sandbox: &Sandbox) -> Result<()> {
    let (mut fixture, document) = full(sandbox, "one-more")?;
    let more = with_one_more(document);
    let refused = "13 services exceed the 12 that the setting `services` allows";
    let said = refusal(&fixture.balancer, &more)?;
    ensure!(said.contains(refused), "{said}");
    ensure!(said.contains("set `services` to 13 or more, at most 10000; then stop "), "{said}");
    let generation = fixture.balancer.status()?.generation;
    ensure!(condition(&fixture.balancer, MAP_SIZES)?.is_none());

    // A restart with a higher setting changes nothing but what the daemon says.
    let begun = Instant::now();
    let to = Tunnel::Ipip.endpoint(HTTP);
    let requests = Requests::start(&fixture.fabric.client, to, 2, Duration::from_millis(2));
    requests.wait_for(50)?;
    sized(&mut fixture.balancer, 20);
    fixture.balancer.stop()?;
    fixture.balancer.start()?;
    requests.wait_for(200)?;
    ensure_answered(&requests.finish()?, begun, Instant::now(), &[])?;
    let cause = condition(&fixture.balancer, MAP_SIZES)?.context("no condition")?;
    ensure!(cause.starts_with("services = 20 waits, 12 is in force: "), "{cause}");
    ensure!(cause.contains("`spillway detach`"), "{cause}");
    ensure!(fixture.balancer.status()?.generation == generation);
    let said = refusal(&fixture.balancer, &more)?;
    ensure!(said.contains(refused), "{said}");

    start_anew(&mut fixture.balancer)?;
    ensure!(condition(&fixture.balancer, MAP_SIZES)?.is_none());
    fixture.balancer.apply(&more.text())?;
    fixture.wait_up(&[])?;
    let begun = Instant::now();
    let requests = Requests::start(&fixture.fabric.client, to, 2, Duration::from_millis(2));
    requests.wait_for(50)?;
    ensure_answered(&requests.finish()?, begun, Instant::now(), &[])?;
    Ok(())
}

fn fits_no_more(sandbox: &Sandbox) -> Result<()> {
    let (mut fixture, document) = full(sandbox, "no-more")?;
    sized(&mut fixture.balancer, 5);
    start_anew(&mut fixture.balancer)?;
    let cause = condition(&fixture.balancer, "stored configuration")?.context("no condition")?;
    let refused = "12 services exceed the 5 that the setting `services` allows";
    ensure!(cause.contains(refused), "{cause}");
    ensure!(cause.contains("set `services` to 12 or more"), "{cause}");
    let said = refusal(&fixture.balancer, &document)?;
    ensure!(said.contains(refused), "{said}");

    // Five of them, whose numbers were too high for these maps.
    let kept = fixture.balancer.cli(&["export"])?;
    let mut few = document;
    let last = few.services.split_off(SERVICES as usize - 5);
    few.services = last;
    fixture.balancer.apply(&few.text())?;
    ensure!(condition(&fixture.balancer, "stored configuration")?.is_none());
    let status = fixture.balancer.status()?;
    ensure!(status.services.len() == 5, "{status:?}");

    // With room again, all of them.
    sized(&mut fixture.balancer, SERVICES);
    start_anew(&mut fixture.balancer)?;
    fixture.balancer.apply(&kept)?;
    fixture.wait_up(&[])?;
    let begun = Instant::now();
    let to = Tunnel::Ipip.endpoint(HTTP);
    let requests = Requests::start(&fixture.fabric.client, to, 2, Duration::from_millis(2));
    requests.wait_for(50)?;
    ensure_answered(&requests.finish()?, begun, Instant::now(), &[])?;
    Ok(())
}
