use std::os::{fd::OwnedFd, unix::net::UnixListener};

use anyhow::{Result, ensure};
use lb_tests::sandbox::Sandbox;
use nix::sys::signal::Signal;

use crate::doors::host::Host;

/// Hands its standard input over as a service manager does, sd_listen_fds(3).
const HAND_OVER: &str =
    "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" balancer --config \"$1\"";

pub(crate) fn handed_over(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "activation")?;
    host.write("settings.toml", &host.settings(""))?;
    let listener = UnixListener::bind(host.path("s.sock"))?;
    for _ in 0..2 {
        let mut command = host.fabric.balancer.command("sh");
        command.args(["-c", HAND_OVER]).arg(&host.binaries.spillwayd);
        command.arg(host.path("settings.toml")).env("NOTIFY_SOCKET", host.path("notify"));
        command.stdin(OwnedFd::from(listener.try_clone()?));
        let mut running = host.start(&mut command)?;
        ensure!(host.told()? == "READY=1");
        ensure!(host.ask("status")?["generation"] == 0);
        running.signal(Signal::SIGTERM)?;
        ensure!(running.wait()?.success(), "{}", running.output());
        ensure!(host.told()? == "STOPPING=1");
        // It is the service manager's, who hands it over again.
        ensure!(host.path("s.sock").exists(), "the socket is gone");
    }
    Ok(())
}
