//! Over TLS a client does what the role of its certificate allows, and nothing else.

use std::{
    fs,
    net::{IpAddr, SocketAddr, TcpListener},
    path::Path,
    process::{Command, Output},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::Fixture;
use lb_tests::{
    daemon::{
        Binaries,
        printed::{self, Status},
    },
    sandbox::Sandbox,
    topology::Fabric,
};
use nix::sys::signal::Signal;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use serde_json::Value;

use crate::{host::Host, startup_reload::settings_files::hang_up};

/// An authority whose certificate is in a directory's `NAME.ca`.
pub(crate) fn authority(directory: &Path, name: &str) -> Result<Issuer<'static, KeyPair>> {
    let mut params = CertificateParams::new(vec![])?;
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    fs::write(directory.join(format!("{name}.ca")), params.self_signed(&key)?.pem())?;
    Ok(Issuer::new(params, key))
}

/// A certificate for a name and the balancer's address, in a directory's `FILE.cert` and `FILE.key`.
pub(crate) fn certificate(
    directory: &Path,
    of: &Issuer<'_, KeyPair>,
    file: &str,
    name: &str,
) -> Result<()> {
    certificate_with(directory, of, file, name, |_| {})
}

/// The same with a change.
pub(super) fn certificate_with(
    directory: &Path,
    of: &Issuer<'_, KeyPair>,
    file: &str,
    name: &str,
    change: impl FnOnce(&mut CertificateParams),
) -> Result<()> {
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    change(&mut params);
    for address in [Fabric::BALANCER_V4.into(), Fabric::BALANCER_V6.into()] {
        params.subject_alt_names.push(SanType::IpAddress(address));
    }
    let key = KeyPair::generate()?;
    fs::write(directory.join(format!("{file}.cert")), params.signed_by(&key, of)?.pem())?;
    Ok(fs::write(directory.join(format!("{file}.key")), key.serialize_pem())?)
}

/// Starts a fixture's balancer again with an API over TLS on port 7443 of an address, for eye.example with a role.
/// Answers how to run a `spillway` on the client's host that asks it by an address.
pub(crate) fn over_tls(
    fixture: &mut Fixture,
    listen: &str,
    role: &str,
) -> Result<impl Fn(IpAddr) -> Command + use<>> {
    let files = fixture.fabric.balancer.directory().to_owned();
    let ours = authority(&files, "ours")?;
    certificate(&files, &ours, "daemon", "spillwayd.example")?;
    certificate(&files, &ours, "eye", "eye.example")?;
    let settings = format!(
        "listen = \"{listen}:7443\"\ntls-cert = {:?}\ntls-key = {:?}\ntls-ca = {:?}\n\
         [tls-client]\n\"eye.example\" = \"{role}\"\n",
        files.join("daemon.cert"),
        files.join("daemon.key"),
        files.join("ours.ca"),
    );
    fixture.balancer.write_settings(&settings)?;
    fixture.balancer.stop()?;
    fixture.balancer.start()?;
    let (spillway, client) = (Binaries::find()?.spillway, fixture.fabric.client.clone());
    Ok(move |server| {
        let mut command = client.command(&spillway);
        command.args(["--server", &format!("https://{}", SocketAddr::new(server, 7443))]);
        // Nothing of this host is read.
        command.args(["--bpffs", "/nowhere", "--state-dir", "/nowhere", "--socket", "/nowhere"]);
        command.arg("--tls-ca").arg(files.join("ours.ca"));
        command.arg("--tls-cert").arg(files.join("eye.cert"));
        command.arg("--tls-key").arg(files.join("eye.key"));
        command
    })
}

/// Runs `spillway` on the client's host, as who has a certificate.
pub(super) fn cli(host: &Host, who: &str, arguments: &[&str]) -> Result<Output> {
    cli_at(host, (Fabric::BALANCER_V4, 7443).into(), who, arguments)
}

fn cli_at(host: &Host, server: SocketAddr, who: &str, arguments: &[&str]) -> Result<Output> {
    let mut command = host.fabric.client.command(&host.binaries.spillway);
    command.args(["--server", &format!("https://{server}")]);
    command.arg("--tls-ca").arg(host.path("ours.ca"));
    command.arg("--tls-cert").arg(host.path(&format!("{who}.cert")));
    command.arg("--tls-key").arg(host.path(&format!("{who}.key")));
    command.args(arguments).output().context("spillway")
}

fn failed(output: &Output, code: i32, words: &str) -> Result<()> {
    let said = String::from_utf8_lossy(&output.stderr);
    let words_there = said.contains(words) && said.contains("\nhint: ");
    ensure!(output.status.code() == Some(code) && words_there, "{output:?}");
    Ok(())
}

pub(crate) fn roles(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "remote")?;
    let files = host.fabric.balancer.directory();
    let (ours, theirs) = (authority(files, "ours")?, authority(files, "theirs")?);
    certificate(files, &ours, "daemon", "spillwayd.example")?;
    certificate(files, &ours, "eye", "eye.example")?;
    certificate(files, &theirs, "stranger", "eye.example")?;
    let settings = |role: &str| {
        host.settings(&format!(
            "listen = \"{}:7443\"\ntls-cert = {:?}\ntls-key = {:?}\ntls-ca = {:?}\n\
             audit-file = {:?}\n[tls-client]\n\"eye.example\" = \"{role}\"\n",
            Fabric::BALANCER_V4,
            host.path("daemon.cert"),
            host.path("daemon.key"),
            host.path("ours.ca"),
            host.path("audit.log"),
        ))
    };
    host.write("settings.toml", &settings("viewer"))?;
    host.write("web.toml", "[[region]]\nname = \"eu\"\n")?;
    let pool = "[[region]]\nname = \"eu\"\n[[pool]]\nname = \"web\"\n[[pool.backend]]\naddress = \"10.1.0.11\"\n\
                region = \"eu\"\n";
    host.write("pool.toml", pool)?;
    let config = host.path("settings.toml").display().to_string();
    let mut running = host.start(&mut host.daemon(&["balancer", "--config", &config]))?;
    ensure!(host.told()? == "READY=1", "{}", running.output());

    let web = host.path("web.toml").display().to_string();
    let apply = ["apply", "-f", &web];
    let status = cli(&host, "eye", &["--output", "json", "status"])?;
    ensure!(status.status.success(), "{status:?}");
    ensure!(printed::read::<Status>(&status.stdout)?.generation == 0);
    let said = "certificate eye.example: is viewer, but /spillway.v1.Spillway/Apply needs admin";
    failed(&cli(&host, "eye", &apply)?, 4, said)?;
    failed(&cli(&host, "stranger", &["status"])?, 4, "does not know the CA of our certificate")?;
    failed(&cli(&host, "nobody", &["status"])?, 5, "nobody.cert")?;
    certificate(files, &ours, "mixed", "eye.example")?;
    host.write("mixed.key", &fs::read_to_string(host.path("eye.key"))?)?;
    failed(&cli(&host, "mixed", &["status"])?, 1, "mixed.key: keys may not be consistent")?;
    // Who takes the connection and says nothing is not waited for.
    let mute = host.fabric.balancer.enter(|| TcpListener::bind((Fabric::BALANCER_V4, 0)))??;
    failed(&cli_at(&host, mute.local_addr()?, "eye", &["status"])?, 3, "timed out")?;

    // An operator is told of draining what it may drain.
    host.write("settings.toml", &settings("operator"))?;
    hang_up(&host, &running)?;
    let drained = cli(&host, "eye", &["pool", "drain", "web", "--yes"])?;
    failed(&drained, 5, "pool web does not exist")?;
    host.write("settings.toml", &settings("admin"))?;
    hang_up(&host, &running)?;
    let pool = cli(&host, "eye", &["apply", "-f", &host.path("pool.toml").display().to_string()])?;
    ensure!(pool.status.success(), "{pool:?}");
    host.write("settings.toml", &settings("operator"))?;
    hang_up(&host, &running)?;
    for target in [&["backend", "drain", "10.1.0.11"][..], &["pool", "drain", "web"]] {
        let drained = cli(&host, "eye", &[target, &["--yes"]].concat())?;
        ensure!(drained.status.success(), "{drained:?}");
    }

    // Another role at a hangup, and the log file after it was moved away.
    host.write("settings.toml", &settings("admin"))?;
    fs::rename(host.path("audit.log"), host.path("audit.old"))?;
    hang_up(&host, &running)?;
    let applied = cli(&host, "eye", &apply)?;
    ensure!(applied.status.success(), "{applied:?}");
    let old = fs::read_to_string(host.path("audit.old"))?;
    let lines_of =
        |what| old.lines().filter(|line| line.contains(&format!("\"what\":\"{what}\""))).count();
    let lines = ["denied", "settings", "intent", "apply", "overrides"].map(lines_of);
    ensure!((lines, old.lines().count()) == ([1, 3, 4, 1, 3], 12), "{old}");
    let new = fs::read_to_string(host.path("audit.log"))?;
    let lines: Vec<Value> = new.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    ensure!(lines.len() == 3, "{new}");
    ensure!(lines[0]["what"] == "settings" && lines[0]["outcome"] == "read", "{new}");
    ensure!(lines[1]["what"] == "intent" && lines[1]["id"] == lines[2]["id"], "{new}");
    let line = &lines[2];
    ensure!(line["outcome"] == "changed", "{line}");
    ensure!(line["what"] == "apply" && line["who"]["certificate"] == "eye.example", "{line}");
    ensure!(line["before"] == 1 && line["after"] == 2, "{line}");
    ensure!(line["changes"][0]["object"] == "pool web", "{line}");

    running.signal(Signal::SIGTERM)?;
    ensure!(running.wait()?.success(), "{}", running.output());
    Ok(())
}
