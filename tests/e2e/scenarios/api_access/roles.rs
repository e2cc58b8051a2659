//! Who may only plan, who is for some pools, and the socket that is only for reading.

use std::{
    fs,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _},
    process::Output,
};

use anyhow::{Context as _, Result, ensure};
use lb_tests::{
    daemon::printed::{self, Status},
    sandbox::Sandbox,
    topology::Fabric,
};
use nix::sys::signal::Signal;

use super::tls::{authority, certificate, cli};
use crate::host::Host;

const CLIENTS: [(&str, &str); 4] =
    [("ci", "plan"), ("web", "operator:web-*"), ("team", "admin:web-*"), ("boss", "admin")];

/// Two pools, each with a service and a backend.
pub(super) fn configuration(weight: u32) -> String {
    let pool = |name: &str, backend: &str, vip: &str| {
        format!(
            "[[pool]]\nname = \"{name}\"\n[[pool.backend]]\naddress = \"{backend}\"\nregion = \"eu\"\n\
             weight = {weight}\n[[service]]\nname = \"{name}\"\naddress = \"{vip}\"\nport = 80\n\
             protocol = \"tcp\"\npool = \"{name}\"\n"
        )
    };
    let (web, mail) =
        (pool("web-eu", "10.1.0.11", "192.0.2.1"), pool("mail", "10.1.0.12", "192.0.2.2"));
    format!("[[region]]\nname = \"eu\"\n{web}{mail}")
}

/// Checks how a command ended, and that both words are in what it said.
pub(super) fn ended(output: &Output, code: i32, words: [&str; 2]) -> Result<()> {
    let said = [&*output.stdout, &*output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let there = words.iter().all(|word| said.contains(word));
    ensure!(output.status.code() == Some(code) && there, "{words:?}: {output:?}");
    Ok(())
}

/// Writes `settings.toml`, with `more` lines, of a balancer whose API answers these clients with certificates, and their
/// files.
pub(super) fn write_settings(host: &Host, clients: &[(&str, &str)], more: &str) -> Result<()> {
    let files = host.fabric.balancer.directory();
    let ours = authority(files, "ours")?;
    certificate(files, &ours, "daemon", "spillwayd.example")?;
    let mut roles = String::new();
    for (name, role) in clients {
        certificate(files, &ours, name, &format!("{name}.example"))?;
        roles += &format!("\"{name}.example\" = \"{role}\"\n");
    }
    let settings = host.settings(&format!(
        "listen = \"{}:7443\"\ntls-cert = {:?}\ntls-key = {:?}\ntls-ca = {:?}\n{more}[tls-client]\n{roles}",
        Fabric::BALANCER_V4,
        host.path("daemon.cert"),
        host.path("daemon.key"),
        host.path("ours.ca"),
    ));
    host.write("settings.toml", &settings)
}

pub(crate) fn narrowed(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "roles")?;
    let read_only = host.path("read-only.sock");
    write_settings(&host, &CLIENTS, &format!("read-only-socket = {read_only:?}\n"))?;
    host.write("web.toml", &configuration(1))?;
    host.write("better.toml", &configuration(3))?;
    let wrong = configuration(3).replace("pool = \"mail\"", "pool = \"male\"");
    host.write("wrong.toml", &wrong.replace("region = \"eu\"", "region = \"us\""))?;
    let file = |name: &str| host.path(name).display().to_string();
    let mut running =
        host.start(&mut host.daemon(&["balancer", "--config", &file("settings.toml")]))?;
    ensure!(host.told()? == "READY=1", "{}", running.output());
    ended(&cli(&host, "boss", &["apply", "-f", &file("web.toml")])?, 0, ["generation 1", ""])?;

    // A plan: what a file would change, all of its mistakes, and no more.
    let (better, wrong) = (file("better.toml"), file("wrong.toml"));
    let words = ["pool web-eu: backend 10.1.0.11", "weight: 1 -> 3"];
    ended(&cli(&host, "ci", &["diff", "-f", &better])?, 8, words)?;
    ended(&cli(&host, "ci", &["apply", "--dry-run", "-f", &better])?, 0, words)?;
    let for_ci = cli(&host, "ci", &["diff", "-f", &wrong])?;
    let for_boss = cli(&host, "boss", &["diff", "-f", &wrong])?;
    ended(&for_ci, 6, ["region", "male"])?;
    ensure!(for_ci.stderr == for_boss.stderr, "{for_ci:?} and {for_boss:?}");
    let refused = cli(&host, "ci", &["apply", "-f", &better])?;
    ended(&refused, 4, ["certificate ci.example: is plan, but", "Apply needs admin\nhint: "])?;
    let refused = cli(&host, "ci", &["backend", "drain", "10.1.0.11", "--yes"])?;
    ended(&refused, 4, ["certificate ci.example: is plan, but", "SetOverrides needs operator"])?;

    // Some pools: its own, and nothing that another one shares.
    let drain = ["backend", "drain", "10.1.0.11", "--pool", "web-eu", "--yes"];
    ended(&cli(&host, "web", &drain)?, 0, ["web-eu", ""])?;
    let waiting = [&drain[..], &["--wait=1s"]].concat();
    ended(&cli(&host, "web", &waiting)?, 0, ["has had no packet for 1 s", ""])?;
    let is = "certificate web.example: is for the pools web-*, but";
    for (target, other) in [
        (&["pool", "drain", "mail"][..], "override of pool mail"),
        (&["region", "drain", "eu"], "override of region eu"),
        (&["backend", "drain", "10.1.0.11"], "override of backend 10.1.0.11"),
        (
            &["backend", "update", "10.1.0.12", "--pool", "mail", "--weight", "2"],
            "concerns pool mail",
        ),
    ] {
        ended(&cli(&host, "web", target)?, 4, [is, other])?;
    }
    let update = ["backend", "update", "10.1.0.11", "--pool", "web-eu", "--weight", "2"];
    ended(&cli(&host, "web", &update)?, 0, ["generation 2", ""])?;
    ended(&cli(&host, "team", &["pool", "create", "web-us"])?, 0, ["generation 3", ""])?;
    ended(&cli(&host, "team", &["pool", "create", "shop"])?, 4, ["concerns pool shop", "hint: "])?;
    let refused = cli(&host, "team", &["apply", "-f", &better])?;
    ended(&refused, 4, ["is admin of the pools web-*, but", "Apply concerns all pools"])?;

    // The key is for the admin alone, and whoever lacks it is told what that means.
    let shown = |who: &str| -> Result<(bool, String)> {
        let output = cli(&host, who, &["export"])?;
        ensure!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout)?;
        Ok((text.contains("hash_key"), String::from_utf8(output.stderr)?))
    };
    ensure!(shown("boss")? == (true, String::new()), "{:?}", shown("boss")?);
    for who in ["ci", "web", "team"] {
        let (key, warning) = shown(who)?;
        ensure!(!key && warning.contains("the hash_key is left out"), "{who}: {warning}");
    }

    // By the second socket everybody reads and nobody changes.
    let metadata = fs::metadata(&read_only)?;
    ensure!(metadata.file_type().is_socket(), "{metadata:?}");
    ensure!(metadata.permissions().mode() & 0o777 == 0o666, "{metadata:?}");
    let locally = |arguments: &[&str]| {
        let mut command = host.fabric.balancer.command(&host.binaries.spillway);
        command.arg("--socket").arg(&read_only).args(arguments).output().context("spillway")
    };
    let status = locally(&["--output", "json", "status"])?;
    ensure!(printed::read::<Status>(&status.stdout)?.generation == 3, "{status:?}");
    for change in
        [&["apply", "-f", &better][..], &["diff", "-f", &better], &["pool", "undrain", "web-eu"]]
    {
        ended(
            &locally(change)?,
            4,
            ["uid 0 (root): is viewer, but", "hint: this socket is only for reading"],
        )?;
    }

    running.signal(Signal::SIGTERM)?;
    ensure!(running.wait()?.success(), "{}", running.output());
    ensure!(!read_only.exists(), "the socket is left behind");
    Ok(())
}
