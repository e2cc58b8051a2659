//! Services at addresses of the balancer itself, and roles for services at some addresses.

use anyhow::{Result, ensure};
use lb_tests::{
    process::{PATIENCE, until},
    sandbox::Sandbox,
    topology::Fabric,
};
use nix::sys::signal::Signal;

use super::{
    roles::{configuration, ended, write_settings},
    tls::cli,
};
use crate::host::Host;

/// Exit status of a change that is refused, as docs/cli.md has it.
const CONFLICT: i32 = 7;

const CLIENTS: [(&str, &str); 3] =
    [("team", "admin:web-*"), ("vips", "admin:web-*@192.0.2.0/24"), ("boss", "admin")];

pub(crate) fn by_force(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "own-addresses")?;
    write_settings(&host, &CLIENTS, "")?;
    host.write("web.toml", &configuration(1))?;
    let file = |name: &str| host.path(name).display().to_string();
    let mut running =
        host.start(&mut host.daemon(&["balancer", "--config", &file("settings.toml")]))?;
    ensure!(host.told()? == "READY=1", "{}", running.output());
    ended(&cli(&host, "boss", &["apply", "-f", &file("web.toml")])?, 0, ["generation 1", ""])?;
    let create = |who: &str, name: &str, address: &str, more: &[&str]| {
        let service = ["service", "create", name, "--address", address, "--protocol", "tcp"];
        cli(&host, who, &[&service[..], &["--port", "22", "--pool", "web-eu"], more].concat())
    };

    // Where the API listens, and by each address of the interface.
    let (v4, v6) = (Fabric::BALANCER_V4.to_string(), Fabric::BALANCER_V6.to_string());
    let listens =
        format!("service ssh has {v4}, which is the address in `listen` of this balancer");
    let force = "make the change again with --force";
    ended(&create("boss", "ssh", &v4, &[])?, CONFLICT, [&listens, force])?;
    let eth0 = format!("service ssh has {v6}, which is an address of eth0 of this balancer");
    ended(&create("boss", "ssh", &v6, &[])?, CONFLICT, [&eth0, force])?;
    let dry = create("boss", "ssh", &v4, &["--dry-run"])?;
    ended(&dry, 0, [&format!("{listens}: this needs --force"), "dry run"])?;
    let mine = host.path("mine.toml");
    let text = configuration(1).replace("\"192.0.2.1\"", &format!("{v4:?}"));
    host.write("mine.toml", &text)?;
    let apply = ["apply", "--yes", "-f", &mine.display().to_string()];
    ended(&cli(&host, "boss", &apply)?, CONFLICT, ["service web-eu has 10.0.0.2", "hint: "])?;

    // Not by a role for some pools, whatever it says.
    let only = "only a client whose role is for all pools may force";
    for more in [&[][..], &["--force"]] {
        ended(&create("team", "ssh", &v4, more)?, CONFLICT, [&listens, only])?;
    }
    // An address that the host gets later; and VIPs that it has for its neighbours.
    let balancer = &host.fabric.balancer;
    balancer.ip("address add 10.0.0.77/24 dev eth0")?;
    let has_it = "service later has 10.0.0.77, which is an address of eth0 of this balancer";
    until("the address is known", PATIENCE, || {
        let dry = create("team", "later", "10.0.0.77", &["--dry-run"])?;
        Ok(String::from_utf8_lossy(&dry.stderr).contains(has_it).then_some(()))
    })?;
    balancer.ip("address add 192.0.2.9/32 dev eth0\naddress add 192.0.2.10/24 dev lo")?;
    ended(&create("team", "neighbours", "192.0.2.9", &[])?, 0, ["generation 2", ""])?;
    ended(&create("vips", "loopback", "192.0.2.10", &[])?, 0, ["generation 3", ""])?;

    // A role for some addresses ends at them.
    let outside = create("vips", "outside", "198.51.100.1", &[])?;
    let is =
        "certificate vips.example: is for the pools web-* with services at 192.0.2.0/24, but this";
    ended(&outside, 4, [is, "concerns service outside at 198.51.100.1"])?;
    let update = ["service", "update", "loopback", "--address", "198.51.100.1", "--yes"];
    ended(&cli(&host, "vips", &update)?, 4, [is, "concerns service loopback at 198.51.100.1"])?;

    // What was forced stays, and only what it takes beyond that is forced again.
    ended(&create("boss", "ssh", &v4, &["--force"])?, 0, ["generation 4", ""])?;
    let update = |more: &[&str]| {
        cli(&host, "team", &[&["service", "update", "ssh", "--yes"][..], more].concat())
    };
    ended(&update(&["--affinity", "client"])?, 0, ["generation 5", ""])?;
    ended(&update(&["--port", "2379"])?, CONFLICT, [&listens, only])?;
    ended(&cli(&host, "team", &["pool", "create", "web-us"])?, 0, ["generation 6", ""])?;

    running.signal(Signal::SIGTERM)?;
    ensure!(running.wait()?.success(), "{}", running.output());
    Ok(())
}
