//! Starts a lab, shows it, and starts again what ended of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};
use lb_tests::daemon::{Binaries, Client};
use lb_tests::process::{PATIENCE, until};
use lb_tests::sandbox::mount_bpf;
use lb_tests::topology::{Host, Node};
use spillway_proto::v1::{BackendState, BackendStatus};

use crate::UpArguments;
use crate::down::{is_something_there, remove};
use crate::files::{Place, Record, say};
use crate::guide;
use crate::network::Network;
use crate::programs::Program;
use crate::settings::{configuration, programs, socket};

/// `lab`.
pub(crate) fn up(
    place: &Place,
    arguments: UpArguments,
    bin_dir: &Path,
    user: Option<u32>,
) -> Result<()> {
    let binaries = Binaries::in_directory(bin_dir)?;
    let existed = is_something_there(place)?;
    let mut _lock = place.lock()?;
    if let Some(record) = place.record()? {
        let Record { balancers, regions, guide, .. } = record;
        let is_same = (balancers, regions) == (arguments.balancers, arguments.regions);
        ensure!(
            is_same,
            "another lab is running (balancers: {balancers}, regions: {regions}); \
             `cargo xtask lab down` ends it"
        );
        say(&format!("the lab is running already; `cargo xtask lab down` ends it\n\n{guide}"));
        return Ok(());
    }
    if existed {
        say("a lab that is half built is removed first");
        remove(place)?;
        _lock = place.lock()?;
    }
    let built = build(place, arguments, &binaries, user);
    let guide = match built {
        Ok(guide) => guide,
        Err(error) => {
            remove(place).context("it is half built, and stays so")?;
            return Err(error);
        }
    };
    say(&format!("the lab is running, and stays until `cargo xtask lab down`\n\n{guide}"));
    Ok(())
}

/// Builds it and returns what there is to say of it.
fn build(
    place: &Place,
    arguments: UpArguments,
    binaries: &Binaries,
    user: Option<u32>,
) -> Result<String> {
    mount_bpf(&place.bpf())?;
    let network = Network::build(place, arguments)?;
    say("the network is there; the programs start");
    let bin_dir = binaries.spillwayd.parent().context("spillwayd is in a directory")?;
    let programs = programs(place, &network, bin_dir, user)?;
    let started = programs.iter().map(|program| program.start(place));
    let mut started = started.collect::<Result<Vec<_>>>()?;
    let balancers: Vec<_> = network.balancers.iter().map(|it| it.name().to_owned()).collect();
    until("the balancers answer", PATIENCE, || {
        for (program, child) in programs.iter().zip(&mut started) {
            if child.try_wait()?.is_some() {
                let Program { node, name, .. } = program;
                bail!("{name} of {node} ended:{}", program.last_words(place));
            }
        }
        let connect = |name: &String| Client::connect(&socket(place, name));
        let answers = |name| connect(name).is_ok_and(|client| client.status().is_ok());
        Ok(balancers.iter().all(answers).then_some(()))
    })?;

    let file = place.folder.join("web.toml");
    fs::write(&file, configuration(&network)).context("web.toml")?;
    let file = file.display().to_string();
    let spillway = |balancer: &str, words: &[&str]| cli(place, binaries, balancer, words);
    spillway(&balancers[0], &["apply", "--yes", "-f", &file])?;
    if balancers.len() > 1 {
        balancers.iter().try_for_each(|it| spillway(it, &["fleet", "join", "--yes"]))?;
    }
    let backends: Vec<_> = network.backends.iter().map(|it| it.v4.to_string()).collect();
    balancers.iter().try_for_each(|it| wait_until_up(place, it, &backends))?;
    if balancers.len() > 1 {
        until("the fleet is well", PATIENCE, || {
            Ok(spillway(&balancers[0], &["fleet", "status", "--check"]).ok())
        })?;
    }

    let environment = guide::environment(&bin_dir.display().to_string(), place, &balancers[0]);
    fs::write(place.folder.join("env"), environment).context("env")?;
    let guide = guide::text(place, &network, arguments, user.is_some());
    let UpArguments { balancers, regions } = arguments;
    let hosts = network.hosts();
    place.write_record(&Record { balancers, regions, hosts, programs, guide: guide.clone() })?;
    network.keep();
    Ok(guide)
}

/// `lab status`.
pub(crate) fn status(place: &Place) -> Result<()> {
    let Some(record) = place.record()? else {
        bail!("no lab is running{}; `cargo xtask lab` starts one", half_built(place));
    };
    for program in &record.programs {
        let state = if program.runs(place)? { "runs" } else { "has ended" };
        say(&format!("{:<10} {:<10} {state}", program.node, program.name));
    }
    say(&format!("\n{}", record.guide));
    Ok(())
}

/// `lab repair`.
pub(crate) fn repair(place: &Place) -> Result<()> {
    let Some(record) = place.record()? else {
        bail!("no lab is running{}; `cargo xtask lab` starts one", half_built(place));
    };
    let _lock = place.lock()?;
    for host in record.hosts {
        let namespace = place.namespace(&host.node);
        let node = Node::existing(&namespace, &host.node, &place.node_folder(&host.node));
        Host { node, v4: host.v4, v6: host.v6 }.plug_in()?;
    }
    let mut started = Vec::new();
    for program in &record.programs {
        if !program.runs(place)? {
            program.start(place)?;
            started.push(format!("{} of {}", program.name, program.node));
        }
    }
    let what = if started.is_empty() { "nothing had ended".into() } else { started.join(", ") };
    say(&format!("links are up; started again: {what}"));
    Ok(())
}

fn half_built(place: &Place) -> &'static str {
    if place.folder.exists() { ", but one is half built" } else { "" }
}

/// Waits until a balancer has all backends up.
fn wait_until_up(place: &Place, balancer: &str, backends: &[String]) -> Result<()> {
    until(&format!("all backends are up at {balancer}"), PATIENCE, || {
        let status = Client::connect(&socket(place, balancer))?.status()?;
        let is_up = |it: &&BackendStatus| it.state() == BackendState::Up && it.next_hop_resolved;
        let up = status.backends.iter().filter(is_up).filter(|it| backends.contains(&it.address));
        Ok((up.count() == backends.len()).then_some(()))
    })
}

fn cli(place: &Place, binaries: &Binaries, balancer: &str, words: &[&str]) -> Result<()> {
    let mut command = Command::new(&binaries.spillway);
    command.arg("--socket").arg(socket(place, balancer)).args(words);
    let output = command.output().context("start spillway")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{balancer}: spillway {}: {said}", words.join(" "));
    Ok(())
}
