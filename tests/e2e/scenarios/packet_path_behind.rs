//! If the maps refuse a generation, the daemon says that the packet path is behind, keeps trying, and goes on
//! working.

use anyhow::{Context as _, Result, bail, ensure};
use lb_common::abi::names;
use lb_e2e::harness::Case;
use lb_maps::{Component, Pins};
use lb_tests::{process::Running, sandbox::Sandbox};
use spillway_proto::v1::Condition;

use crate::host::Host;

/// A pool of one backend that no check asks, and its service.
const WEB: &str = "\
[[region]]
name = \"eu\"

[[pool]]
name = \"web\"
slots = 1009
[[pool.backend]]
address = \"10.1.0.11\"
region = \"eu\"

[[service]]
name = \"web\"
address = \"203.0.113.1\"
port = 80
protocol = \"tcp\"
pool = \"web\"
";

/// One that a frozen map cannot take.
const LATE: &str = "
[[service]]
name = \"late\"
address = \"203.0.113.2\"
port = 80
protocol = \"tcp\"
pool = \"web\"
";

/// Longest silence that the service manager puts up with, microseconds.
const WATCHDOG: &str = "4000000";

const REFUSAL: &str = "generation 2 is in force, but not yet in the packet path, which is retried every \
                       second: map ADDRESSES";

const CONDITION: &str = "not at generation 2 yet, retried every second: map ADDRESSES";

pub(crate) const CASES: &[Case] =
    &[Case::waits("a_daemon_whose_packet_path_is_behind_says_so_and_works_on", works_on)];

fn works_on(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "behind")?;
    host.write("settings.toml", &host.settings("region = \"eu\"\n"))?;
    host.write("web.toml", WEB)?;
    host.write("late.toml", &format!("{WEB}{LATE}"))?;
    let mut running = start(&host)?;
    ensure!(host.told()? == "READY=1", "{}", running.output());
    apply(&host, &["web.toml"], true)?;
    host.status_line("STATUS=generation 1, 1 of 1 backends up")?;

    let map =
        Pins::new(&host.bpffs, Component::Balancer).map(names::ADDRESSES).display().to_string();
    host.fabric.balancer.run("bpftool", ["map", "freeze", "pinned", &map])?;
    for attempt in 0..2 {
        // The second one differs in nothing from what is in force.
        let said = apply(&host, &["late.toml"], false)?;
        ensure!(said.contains(REFUSAL), "apply {attempt}: {said}");
    }
    let equal_object = ["service", "create", "late", "--address", "203.0.113.2", "--port", "80"];
    let equal_object = [&equal_object[..], &["--protocol", "tcp", "--pool", "web"]].concat();
    let said = said(&host, &equal_object, false)?;
    ensure!(said.contains(REFUSAL), "create: {said}");
    let said = apply(&host, &["late.toml", "--dry-run"], true)?;
    ensure!(said.starts_with(&format!("warning: {REFUSAL}")), "dry run: {said}");
    is_behind(&host, &host.status_line(&format!("; packet path: {CONDITION}"))?)?;
    // So does a reload of the same: it is in force, not refused.
    let late = host.path("late.toml");
    host.write("settings.toml", &host.settings(&format!("region = \"eu\"\napply = {late:?}\n")))?;
    let reload = host.cli(&["reload"])?;
    let text = String::from_utf8_lossy(&reload.stderr).into_owned();
    ensure!(reload.status.code() == Some(1) && text.contains(REFUSAL), "{reload:?}");
    ensure!(!text.contains("what was in force stays"), "{text}");
    host.write("settings.toml", &host.settings("region = \"eu\"\n"))?;

    // Another daemon comes up over the same maps, and has the same to say.
    host.stop(&mut running)?;
    let mut running = start(&host)?;
    is_behind(&host, &host.ready_with(&format!("; packet path: {CONDITION}"))?)?;

    // What the maps have already needs no write.
    apply(&host, &["web.toml"], true)?;
    let status = host.status()?;
    ensure!(status.generation == 3 && status.behind.is_empty(), "{status:?}");
    ensure!(status.conditions.is_empty(), "{status:?}");
    let line = host.status_line("STATUS=generation 3, ")?;
    ensure!(line == "STATUS=generation 3, 1 of 1 backends up", "{line}");
    host.stop(&mut running)
}

fn start(host: &Host) -> Result<Running> {
    let config = host.path("settings.toml").display().to_string();
    let mut command = host.daemon(&["balancer", "--config", &config]);
    host.start(command.env("WATCHDOG_USEC", WATCHDOG))
}

/// The service manager is told what is wrong and since when, and goes on hearing that the daemon works. `status`
/// says the same.
fn is_behind(host: &Host, line: &str) -> Result<()> {
    for feeding in 0..3 {
        let told = host.told().with_context(|| format!("feeding {feeding}"))?;
        ensure!(told == "WATCHDOG=1", "{told}");
    }
    let status = host.status()?;
    ensure!(status.generation == 2, "{status:?}");
    ensure!(status.behind.contains("ADDRESSES"), "{status:?}");
    let [Condition { subject, text: cause, since: Some(since), .. }] = &*status.conditions else {
        bail!("{status:?}");
    };
    let since = since.to_string();
    let second = since.split(['.', 'Z']).next().unwrap_or_default();
    let said = format!("; {subject}: {cause} (since {second}Z)");
    ensure!(line.ends_with(&said), "{line:?} does not end with {said:?}");
    Ok(())
}

/// What `spillway apply` of a file says on standard error.
fn apply(host: &Host, arguments: &[&str], succeeds: bool) -> Result<String> {
    let file = host.path(arguments[0]).display().to_string();
    said(host, &[&["apply", "--yes", "--force", "-f", &*file], &arguments[1..]].concat(), succeeds)
}

fn said(host: &Host, arguments: &[&str], succeeds: bool) -> Result<String> {
    let output = host.cli(arguments)?;
    ensure!(output.status.success() == succeeds, "{arguments:?}: {output:?}");
    Ok(String::from_utf8(output.stderr)?)
}
