//! A missing interface ends the start: as wrong settings, after the wait that is set, or to be tried again if it was there before.

use anyhow::{Result, ensure};
use lb_tests::{
    process::{PATIENCE, Running, until},
    sandbox::Sandbox,
};
use nix::sys::signal::Signal;

use crate::host::Host;

/// Settings of a role, on this interface.
fn settings(host: &Host, role: &str, interface: &str, more: &str) -> String {
    let rest = match role {
        "balancer" => host.settings("").replace("\"eth0\"", &format!("{interface:?}")),
        _ => format!(
            "interface = {interface:?}\nbpffs = {:?}\nsocket = {:?}\nvip = \"203.0.113.1\"\n\
             allow-source = \"10.0.0.2\"\n",
            host.bpffs,
            host.path("s.sock")
        ),
    };
    rest + more
}

fn start(host: &Host, role: &str) -> Result<Running> {
    let config = host.path("settings.toml").display().to_string();
    host.start(&mut host.daemon(&[role, "--config", &config]))
}

fn until_ready(host: &Host, running: &mut Running) -> Result<()> {
    until("it is ready", PATIENCE, || {
        running.check()?;
        Ok((host.told()? == "READY=1").then_some(()))
    })
}

fn detach(host: &Host, role: &str) -> Result<()> {
    let mut detach = host.fabric.balancer.command(&host.binaries.spillway);
    detach.arg("--bpffs").arg(&host.bpffs).arg("--state-dir").arg(host.path("state"));
    let detached = detach.args(["detach", "--yes", "--component", role]).output()?;
    ensure!(detached.status.success(), "{detached:?}");
    Ok(())
}

/// The sentence and the hint of the last daemon.
fn last_words(running: &Running) -> Vec<String> {
    let output = running.output();
    let lines: Vec<_> = output.lines().collect();
    let at = lines.iter().rposition(|line| line.starts_with("spillwayd: ")).unwrap_or(lines.len());
    lines[at..].iter().map(|line| (*line).to_owned()).collect()
}

pub(crate) fn that_are_not_there(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "wrong-if")?;
    let ip = |line: &str| host.fabric.balancer.ip(line);
    let config = host.path("settings.toml").display().to_string();
    for role in ["balancer", "receiver"] {
        // Wrong settings: status 2, so that the unit is not started again.
        for (interface, more) in [("eth7", ""), ("eth7", "interface-wait = \"1s\"\n")] {
            host.write("settings.toml", &settings(&host, role, interface, more))?;
            let mut running = start(&host, role)?;
            ensure!(running.wait()?.code() == Some(2), "{}", running.output());
            let words = last_words(&running);
            ensure!(
                words[0] == "spillwayd: eth7: no such interface: this host has eth0 and lo",
                "{words:?}"
            );
            ensure!(words[1] == format!("hint: name one of them as `interface` in {config}"));
            if !more.is_empty() {
                host.status_line("STATUS=waiting for interface eth7")?;
            }
        }

        // One that comes late is waited for, as at a boot.
        let wait = "interface-wait = \"10m\"\n";
        host.write("settings.toml", &settings(&host, role, "late0", wait))?;
        let mut running = start(&host, role)?;
        host.status_line("STATUS=waiting for interface late0")?;
        let longer = host.told()?;
        ensure!(longer.starts_with("EXTEND_TIMEOUT_USEC="), "{longer}");
        ip("link add late0 type veth peer name late1")?;
        ip("link set late0 up")?;
        until_ready(&host, &mut running)?;

        // One that was there and is gone: it may come back, so the unit tries again.
        ip("link delete late0")?;
        running.signal(Signal::SIGTERM)?;
        ensure!(running.wait()?.success(), "{}", running.output());
        ensure!(host.told()? == "STOPPING=1");
        host.write("settings.toml", &settings(&host, role, "late0", ""))?;
        let mut again = start(&host, role)?;
        ensure!(again.wait()?.code() == Some(1), "{}", again.output());
        let words = last_words(&again);
        ensure!(
            words[0] == "spillwayd: late0: the interface is gone: this host has eth0 and lo",
            "{words:?}"
        );
        detach(&host, role)?;
    }

    // A VLAN's is one of the settings too.
    let vlan = settings(&host, "balancer", "eth0", "[vlan]\neth8 = 5\n");
    host.write("settings.toml", &vlan)?;
    let mut running = start(&host, "balancer")?;
    ensure!(running.wait()?.code() == Some(2), "{}", running.output());
    let words = last_words(&running);
    let expected = "spillwayd: vlan eth8=5: eth8: no such interface: this host has eth0 and lo";
    ensure!(words[0] == expected, "{words:?}");
    Ok(())
}

pub(crate) fn by_another_name(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "other-name")?;
    // Longer than the kernel's own names can be.
    let long = "enp129s0f0np0alternative";
    host.fabric.balancer.ip(&format!("link property add dev eth0 altname {long}"))?;
    for role in ["balancer", "receiver"] {
        let more = if role == "balancer" { format!("[vlan]\n{long} = 5\n") } else { String::new() };
        host.write("settings.toml", &settings(&host, role, long, &more))?;
        let mut running = start(&host, role)?;
        until_ready(&host, &mut running)?;
        let mut show = host.fabric.balancer.command("ip");
        let shown = String::from_utf8(show.args(["link", "show", "dev", "eth0"]).output()?.stdout)?;
        ensure!(shown.contains("prog/xdp"), "{role}: {shown}");
        host.stop(&mut running)?;
        detach(&host, role)?;
    }

    // One that was there and is gone, with its other name: it may come back, so the unit tries again.
    let ip = |line: &str| host.fabric.balancer.ip(line);
    for role in ["balancer", "receiver"] {
        ip("link add late0 type veth peer name late1")?;
        ip("link set late0 up")?;
        ip("link property add dev late0 altname carrier0")?;
        host.write("settings.toml", &settings(&host, role, "carrier0", ""))?;
        let mut running = start(&host, role)?;
        until_ready(&host, &mut running)?;
        host.stop(&mut running)?;
        ip("link delete late0")?;
        let mut again = start(&host, role)?;
        ensure!(again.wait()?.code() == Some(1), "{}", again.output());
        let words = last_words(&again);
        let expected = "spillwayd: carrier0: the interface is gone: this host has eth0 and lo";
        ensure!(words[0] == expected, "{words:?}");
        detach(&host, role)?;
    }
    Ok(())
}
