//! A drain in file mode: the file says nothing of it, and whoever starts the daemon from it again does not end it.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, HTTP, Health, Tunnel, configuration};
use lb_tests::{
    process::{PATIENCE, until},
    sandbox::Sandbox,
    traffic::{Requests, Stream, ensure_answered},
};
use spillway_proto::v1::{AdminState, BackendState};

use super::{address, names, status_of};

pub(super) fn file_mode(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::idle(sandbox, "filed")?;
    fixture.balancer.stop()?;
    let file = fixture.fabric.balancer.directory().join("spillway.toml");
    let text = configuration(&fixture.fabric, Health::QUICK).text();
    std::fs::write(&file, &text)?;
    fixture.balancer.more = vec!["--apply".into(), file.display().to_string()];
    fixture.balancer.start()?;
    fixture.wait_up(&[])?;
    let (victim, other) = (address(&fixture, "eu2")?, address(&fixture, "eu1")?);
    let client = fixture.fabric.client.clone();
    let open = |seed| Stream::open(&client, Tunnel::Ipip.endpoint(ECHO), seed);
    let streams = (0..24).map(open).collect::<Result<Vec<_>>>()?;
    let drained = ["backend", "drain", &victim, "-m", "new kernel"];
    fixture.balancer.cli(&drained)?;
    fixture.balancer.cli(&["backend", "weight", &other, "--pool", "v4", "--percent", "50"])?;
    let begun = Instant::now();
    let to = Tunnel::Ipip.endpoint(HTTP);
    let requests = Requests::start(&client, to, 2, Duration::from_millis(2));
    requests.wait_for(100)?;

    // A reload with another file, a rollback, an orderly restart, and two kills.
    let before = fixture.balancer.status()?.generation;
    std::fs::write(&file, format!("{text}\n[[region]]\nname = \"later\"\n"))?;
    fixture.balancer.cli(&["reload"])?;
    ensure!(fixture.balancer.status()?.generation != before);
    let rolled = fixture.balancer.try_cli(&["rollback", &before.to_string(), "--yes"], None)?;
    ensure!(rolled.status.success(), "{rolled:?}");
    let expected =
        [format!("backends/{victim}/drain"), format!("pools/v4/backends/{other}/weight")];
    ensure!(names(&fixture)? == expected, "{:?}", names(&fixture)?);
    for kill in [false, true, true] {
        match kill {
            true => fixture.balancer.kill()?,
            false => fixture.balancer.stop()?,
        }
        requests.wait_for(50)?;
        fixture.balancer.start()?;
        requests.wait_for(100)?;
        ensure!(names(&fixture)? == expected, "{:?}", names(&fixture)?);
        let status = status_of(&fixture, &victim)?;
        ensure!(status.state() == BackendState::Draining, "{status:?}");
        ensure!(status.overrides.first() == Some(&expected[0]), "{status:?}");
        ensure!(status.admin_state() == AdminState::Active, "{status:?}");
        let before = status_of(&fixture, &other)?;
        until("the weight is in force", PATIENCE, || {
            let share = status_of(&fixture, &other)?.share;
            Ok(share.filter(|share| (0.49..0.51).contains(share)).map(|_| ()))
        })
        .with_context(|| format!("{before:?}"))?;
    }
    // At no moment did it have a new connection.
    let attempts = requests.finish()?;
    ensure_answered(&attempts, begun, Instant::now(), &["eu2"])?;
    Stream::all_go_on(&streams)?;

    let exported = fixture.balancer.cli(&["export"])?;
    ensure!(exported.contains(&format!("#   override {}\n", expected[0])), "{exported}");
    ensure!(!exported.contains("drain\"") && !exported.contains("weight = 50"), "{exported}");
    fixture.balancer.apply(&exported)?;
    ensure!(names(&fixture)? == expected, "an export that is applied changes overrides");
    let undrained = ["backend", "undrain", &victim, "-m", "done"];
    let said = fixture.balancer.cli(&undrained)?;
    ensure!(said == format!("override {} is removed\n", expected[0]), "{said}");
    fixture.wait_up(&[])?;
    ensure!(super::answers(&fixture, 300)?.contains_key("eu2"), "it gets nothing");
    Stream::finish_all(streams)?;
    fixture.balancer.stop()
}
