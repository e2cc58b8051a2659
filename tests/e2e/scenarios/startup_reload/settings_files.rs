//! Settings and configuration files are in force when the daemon is ready, and again after SIGHUP.

use anyhow::{Context as _, Result, ensure};
use lb_tests::{
    process::{PATIENCE, until},
    sandbox::Sandbox,
};
use nix::{
    sys::signal::Signal,
    time::{ClockId, clock_gettime},
};
use spillway_proto::v1::Condition;

use crate::host::Host;

/// A pool of one backend that nobody checks.
pub(super) const WEB: &str = "\
[[region]]
name = \"eu\"

[[pool]]
name = \"web\"
slots = 1009
[[pool.backend]]
address = \"10.1.0.11\"
region = \"eu\"
";

pub(crate) fn in_force(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "files")?;
    let apply = format!("apply = {:?}\nregion = \"eu\"\n", host.path("web.toml"));
    host.write("settings.toml", &host.settings(&apply))?;
    host.write("web.toml", WEB)?;
    let config = host.path("settings.toml").display().to_string();
    let mut running = host.start(&mut host.daemon(&["balancer", "--config", &config]))?;

    // Who is told that the daemon is ready finds the file in force, without any waiting.
    ensure!(host.told()? == "READY=1", "not ready first");
    let status = host.status()?;
    ensure!(status.generation == 1 && status.region == "eu", "{status:?}");
    ensure!(status.conditions.is_empty(), "{status:?}");
    host.status_line("STATUS=generation 1, 1 of 1 backends up")?;

    // A broken file changes nothing, and is named until it is mended.
    let web = host.path("web.toml").display().to_string();
    for (text, cause) in [
        ("\n[[pools]]\n", "line 2, column 3: unknown field `pools`"),
        (
            &*WEB.replace("10.1.0.11", "10.1.0.256"),
            "line 8, column 1: pools[0] \"web\": backends[0]",
        ),
    ] {
        host.write("web.toml", text)?;
        hang_up(&host, &running)?;
        let status = host.status()?;
        ensure!(status.generation == 1, "{status:?}");
        let [Condition { subject, text: said, .. }] = &*status.conditions else {
            anyhow::bail!("{status:?}");
        };
        ensure!(*subject == web, "{status:?}");
        ensure!(said.starts_with(cause), "{said}");
        let table = String::from_utf8(host.cli(&["status"])?.stdout)?;
        ensure!(table.contains("\ncondition   /"), "{table}");
        until("the log says so", PATIENCE, || Ok(running.output().contains(said).then_some(())))?;
    }
    host.status_line(&format!("; {web}: line 8"))?;

    host.write("web.toml", &WEB.replace("10.1.0.11", "10.1.0.12"))?;
    hang_up(&host, &running)?;
    let status = host.status()?;
    ensure!(status.generation == 2 && status.conditions.is_empty(), "{status:?}");
    ensure!(status.backends[0].address == "10.1.0.12", "{status:?}");

    // A change by command lasts until then, which is said at once.
    let changed = host.cli(&["region", "create", "us"])?;
    let warning = String::from_utf8(changed.stderr)?;
    let taken_back = "at its next start or reload, which reverts this change: change the file too";
    ensure!(warning == format!("warning: the daemon reads {web} {taken_back}\n"), "{warning}");
    hang_up(&host, &running)?;
    ensure!(host.status()?.generation == 4, "it was not taken back");

    running.signal(Signal::SIGTERM)?;
    ensure!(host.told()? == "STOPPING=1");
    ensure!(running.wait()?.success(), "{}", running.output());
    // A file that is broken at the start: the daemon comes with what was in force.
    host.write("web.toml", "pool = 1")?;
    let mut running = host.start(&mut host.daemon(&["balancer", "--config", &config]))?;
    ensure!(host.told()? == "READY=1");
    let status = host.status()?;
    ensure!(status.generation == 4 && status.conditions[0].subject == web, "{status:?}");
    running.signal(Signal::SIGTERM)?;
    ensure!(running.wait()?.success(), "{}", running.output());
    Ok(())
}

pub(crate) fn settings_again(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "settings")?;
    host.write("settings.toml", &host.settings("region = \"eu\"\n"))?;
    host.write("web.toml", WEB)?;
    let config = host.path("settings.toml").display().to_string();
    let mut running = host.start(&mut host.daemon(&["balancer", "--config", &config]))?;
    ensure!(host.told()? == "READY=1");
    ensure!(host.status()?.generation == 0, "nothing was applied");

    host.write("settings.toml", "regoin = \"eu\"\n")?;
    hang_up(&host, &running)?;
    let condition = &host.status()?.conditions[0];
    // The other one is that the interface is missing.
    let cause = format!(
        "{config}: line 1, column 1: regoin: no such setting of the balancer (and 1 more mistake)"
    );
    ensure!(condition.subject == "settings" && condition.text == cause, "{condition:?}");

    // Another region waits for the next start, and says so; a file to apply does not.
    let more = format!("region = \"us\"\napply = {:?}\n", host.path("web.toml"));
    host.write("settings.toml", &host.settings(&more))?;
    hang_up(&host, &running)?;
    let status = host.status()?;
    ensure!(status.generation == 1 && status.region == "eu", "{status:?}");
    ensure!(status.conditions.is_empty(), "{status:?}");
    let said = "changed settings that need a restart: region";
    until("the log says so", PATIENCE, || Ok(running.output().contains(said).then_some(())))?;
    running.signal(Signal::SIGTERM)?;
    ensure!(running.wait()?.success(), "{}", running.output());
    Ok(())
}

/// Sends a hangup and waits until the service manager is told that it is done, the moment with it.
pub(crate) fn hang_up(host: &Host, running: &lb_tests::process::Running) -> Result<()> {
    let before = microseconds()?;
    running.signal(Signal::SIGHUP)?;
    let told = host.told()?;
    let moment = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").context(told.clone())?;
    let moment: i64 = moment.parse().context(told.clone())?;
    ensure!((before..=microseconds()?).contains(&moment), "{before} {moment}");
    ensure!(host.told()? == "READY=1");
    Ok(())
}

fn microseconds() -> Result<i64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    Ok(now.tv_sec() * 1_000_000 + now.tv_nsec() / 1_000)
}
