//! If the daemon cannot use its stored configuration, packets flow on, and an apply repairs it.

use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, HTTP, Health, Tunnel};
use lb_e2e::harness::Case;
use lb_fake::stored;
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::{Requests, Stream, ensure_answered};
use nix::sys::signal::Signal;
use spillway_proto::v1::{BackendState, StatusResponse};

use crate::host::Host;

pub(crate) const CASES: &[Case] = &[
    Case::waits("packets_go_on_by_a_refused_configuration_until_an_apply", until_an_apply),
    Case::waits("the_service_manager_is_told_and_a_file_ends_it", until_a_file),
    Case::waits("a_newer_schema_in_the_store_waits_for_a_confirmation", until_the_word),
];

/// What validation says of the settle time that the store is given.
const REFUSED: &str = "pools[0] \"v4\": settle_time: 500ms is not within 1s to 24h";

/// What the daemon says is wrong, by its subject.
const SUBJECT: &str = "stored configuration";

/// The store's first pool gets a settle time that no version allows.
fn refuse(state_directory: &Path) -> Result<()> {
    stored::rewrite(state_directory, |_, configuration, _| {
        if let Some(settle_time) = &mut configuration.pools[0].settle_time {
            (settle_time.seconds, settle_time.nanos) = (0, 500_000_000);
        }
    })
}

/// A command failed with this exit status; what it said.
fn failed(output: &Output, status: i32) -> Result<String> {
    ensure!(output.status.code() == Some(status), "{output:?}");
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

fn until_an_apply(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "refused", Health::QUICK)?;
    let client = fixture.fabric.client.clone();
    let good = fixture.balancer.cli(&["export"])?;
    let before = fixture.balancer.status()?;
    let streams = (0..4).map(|seed| Stream::open(&client, Tunnel::Ipip.endpoint(ECHO), seed));
    let streams = streams.collect::<Result<Vec<_>>>()?;
    let begun = Instant::now();
    let to = Tunnel::Ipip.endpoint(HTTP);
    let requests = Requests::start(&client, to, 2, Duration::from_millis(2));
    requests.wait_for(50)?;

    fixture.balancer.stop()?;
    refuse(&fixture.balancer.state)?;
    fixture.balancer.start()?;
    requests.wait_for(200)?;
    let now = fixture.balancer.status()?;
    ensure!(now.generation == before.generation, "{now:#?}");
    ensure!(now.checksum == before.checksum, "the maps were changed: {now:#?}");
    let condition = now.conditions.first().context("no condition")?;
    ensure!(condition.subject == SUBJECT && condition.text.contains(REFUSED), "{now:#?}");

    // What is stored is shown as it is, to be mended.
    let exported = fixture.balancer.cli(&["export"])?;
    ensure!(exported.lines().next().is_some_and(|line| line.contains(REFUSED)), "{exported}");
    ensure!(exported.contains("settle_time = \"500ms\""), "{exported}");
    let again = failed(&fixture.balancer.try_cli(&["apply", "-f", "-"], Some(&exported))?, 6)?;
    ensure!(again.contains("settle_time: 500ms"), "{again}");
    let object = failed(&fixture.balancer.try_cli(&["region", "create", "asia"], None)?, 6)?;
    ensure!(object.contains(REFUSED), "{object}");
    let drain = failed(&fixture.balancer.try_cli(&["region", "drain", "eu"], None)?, 7)?;
    ensure!(drain.contains(REFUSED), "{drain}");

    let mended = ["pool", "update", "v4", "--settle-time", "10m", "--dry-run"];
    let mended = fixture.balancer.try_cli(&mended, None)?;
    let mended = String::from_utf8(mended.stdout)?;
    ensure!(mended.contains("\nopen connections: unknown which of them move\n"), "{mended}");
    let doctor = fixture.balancer.try_cli(&["doctor"], None)?;
    ensure!(doctor.status.code() == Some(9), "{doctor:?}");
    let doctor = String::from_utf8(doctor.stdout)?;
    ensure!(doctor.contains(&format!("problem  daemon: {SUBJECT}: ")), "{doctor}");
    ensure!(doctor.contains("spillway apply -f stored.toml"), "{doctor}");
    // Packets go on: it says nothing of services.
    ensure!(!doctor.contains("  services: "), "{doctor}");

    // A daemon that is killed in this state finds all as it was.
    fixture.balancer.kill()?;
    fixture.balancer.start()?;
    let killed = fixture.balancer.status()?;
    ensure!(killed.conditions.first().map(|it| &it.text) == Some(&condition.text), "{killed:?}");
    requests.wait_for(100)?;

    let dry = fixture.balancer.try_cli(&["apply", "--dry-run", "-f", "-"], Some(&good))?;
    let dry = String::from_utf8(dry.stdout)?;
    ensure!(dry.contains("\nopen connections: unknown which of them move\n"), "{dry}");
    let applied = fixture.balancer.apply(&good)?;
    ensure!(applied.starts_with("generation 2 is in force: "), "{applied}");
    fixture.wait_up(&[])?;
    let mended = fixture.balancer.status()?;
    ensure!(mended.conditions.is_empty(), "{mended:?}");
    ensure!(mended.checksum == before.checksum, "numbers or tables changed: {mended:?}");
    requests.wait_for(100)?;
    let attempts = requests.finish()?;
    ensure_answered(&attempts, begun, Instant::now(), &[])?;
    Stream::finish_all(streams)?;

    // Checks are made again.
    fixture.servers[0].kill()?;
    let address = fixture.fabric.backends[0].v4.to_string();
    until("a check notices", PATIENCE, || {
        let status = fixture.balancer.status()?;
        let mut of_address = status.backends.iter().filter(|it| it.address == address);
        Ok(of_address.any(|it| it.state() == BackendState::Unhealthy).then_some(()))
    })
}

/// A pool that the store's is made of.
const FILE: &str = "[[region]]\nname = \"eu\"\n[[pool]]\nname = \"v4\"\n[[pool.backend]]\n\
                    address = \"10.1.0.11\"\nregion = \"eu\"\n";

fn until_a_file(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "file")?;
    host.write("settings.toml", &host.settings(""))?;
    host.write("web.toml", FILE)?;
    let (config, file) = (host.path("settings.toml"), host.path("web.toml"));
    let (config, file) = (config.display().to_string(), file.display().to_string());
    let start = |more: &[&str]| {
        host.start(&mut host.daemon(&[&["balancer", "--config", &config], more].concat()))
    };
    let mut running = start(&[])?;
    ensure!(host.told()? == "READY=1", "{}", running.output());
    ensure!(host.cli(&["apply", "-f", &file])?.status.success());
    host.stop(&mut running)?;
    refuse(&host.path("state"))?;

    let mut running = start(&[])?;
    // Ready, as packets go on; what is wrong stands in the status line.
    host.ready_with(&format!(
        "generation 1 cannot be used, packets are forwarded as before; {SUBJECT}: "
    ))?;
    let status = host.status()?;
    let condition = status.conditions.first();
    ensure!(condition.is_some_and(|it| it.text.contains(REFUSED)), "{status:?}");
    host.stop(&mut running)?;

    // A file that is refused as well leaves all as it is; a good one ends it.
    let bad = FILE.replace("name = \"v4\"", "name = \"v4\"\nslots = 4");
    host.write("web.toml", &bad)?;
    let mut running = start(&["--apply", &file])?;
    while host.told()? != "READY=1" {}
    let subjects = |status: &StatusResponse| {
        status.conditions.iter().map(|it| it.subject.clone()).collect::<Vec<_>>()
    };
    let status = host.status()?;
    ensure!(subjects(&status) == [file.as_str(), SUBJECT], "{status:?}");
    host.write("web.toml", FILE)?;
    running.signal(Signal::SIGHUP)?;
    host.status_line("generation 2, 1 of 1 backends up")?;
    let status = host.status()?;
    ensure!(subjects(&status).is_empty(), "{status:?}");
    host.stop(&mut running)?;

    // At the start, in the place of one of a newer schema, which takes the word.
    stored::rewrite(&host.path("state"), |description, _, more| {
        description["schema"] = 1_000.into();
        more.extend([0xc0, 0x3e, 7]);
    })?;
    let mut running = start(&["--apply", &file, "--any-schema"])?;
    while host.told()? != "READY=1" {}
    let status = host.status()?;
    ensure!(status.generation == 3 && subjects(&status).is_empty(), "{status:?}");
    host.stop(&mut running)?;
    Ok(())
}

fn until_the_word(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "newer", Health::QUICK)?;
    let good = fixture.balancer.cli(&["export"])?;
    fixture.balancer.stop()?;
    stored::rewrite(&fixture.balancer.state, |description, _, more| {
        description["schema"] = 1_000.into();
        // Field 1000 of the configuration, which no version has yet.
        more.extend([0xc0, 0x3e, 7]);
    })?;
    let to = Tunnel::Ipip.endpoint(HTTP);
    let begun = Instant::now();
    let requests = Requests::start(&fixture.fabric.client, to, 2, Duration::from_millis(2));
    requests.wait_for(50)?;

    fixture.balancer.spawn()?;
    let ended = fixture.balancer.running().context("it was started")?.wait()?;
    let said = fixture.balancer.running().context("it was started")?.output();
    ensure!(ended.code() == Some(1), "{ended}: {said}");
    ensure!(said.contains("with schema revision 1000 of a newer spillwayd"), "{said}");
    ensure!(
        said.contains("\nhint: run the newer spillwayd") && said.contains("--any-schema"),
        "{said}"
    );
    requests.wait_for(50)?;

    fixture.balancer.more = vec!["--any-schema".into()];
    fixture.balancer.start()?;
    let now = fixture.balancer.status()?;
    let cause = "it has schema revision 1000, and this version supports ";
    ensure!(now.conditions.first().is_some_and(|it| it.text.contains(cause)), "{now:#?}");
    let export = fixture.balancer.try_cli(&["export"], None)?;
    let warned = failed(&export, 0)?;
    ensure!(warned.contains("warning: ") && warned.contains("left out"), "{warned}");
    let edit =
        fixture.balancer.shell("spillway edit").env("EDITOR", "touch /nonexistent").output()?;
    let edit = failed(&edit, 7)?;
    ensure!(edit.contains("hint: nothing was changed; upgrade spillway"), "{edit}");
    let drain = failed(&fixture.balancer.try_cli(&["pool", "drain", "v4"], None)?, 7)?;
    ensure!(drain.contains(cause), "{drain}");
    let refused = failed(&fixture.balancer.try_cli(&["apply", "-f", "-"], Some(&good))?, 7)?;
    ensure!(refused.contains("the daemon is older than the stored configuration"), "{refused}");
    ensure!(refused.contains("\nhint: nothing was changed; run the newer spillwayd"), "{refused}");
    requests.wait_for(50)?;

    let word = ["apply", "--any-schema", "--yes", "-f", "-"];
    let taken = fixture.balancer.try_cli(&word, Some(&good))?;
    let warned = failed(&taken, 0)?;
    ensure!(warned.contains("would be erased"), "{warned}");
    fixture.wait_up(&[])?;
    requests.wait_for(50)?;
    let attempts = requests.finish()?;
    ensure_answered(&attempts, begun, Instant::now(), &[])?;
    // From now on it is a store like any other.
    fixture.balancer.stop()?;
    fixture.balancer.more.clear();
    fixture.balancer.start()?;
    fixture.wait_up(&[])
}
