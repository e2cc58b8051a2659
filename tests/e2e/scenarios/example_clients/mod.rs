//! The example clients of docs/examples work against the real daemon, with code generated from the proto directory. So
//! does grpcurl, with none.
//!
//! What is built from Go is there in a long run only: `cargo xtask test --long example_clients`.

mod go;
mod grpcurl;
mod python;

use std::{fmt::Write as _, process::Command, time::Instant};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::harness::{Case, note};
use lb_tests::{
    daemon::{Balancer, Binaries, printed::Status},
    sandbox::Sandbox,
    topology::{Fabric, REGIONS},
};

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_client_in_python_drains_a_backend", python::drains),
    Case::alone("a_client_in_python_lists_50000_backends", python::lists),
    Case::waits("a_client_in_go_drains_a_backend", go::drains).only_with(go::FOLDER),
    Case::alone("a_client_in_go_lists_50000_backends", go::lists).only_with(go::FOLDER),
    Case::waits("grpcurl_reads_and_changes_without_files", grpcurl::works).only_with(go::FOLDER),
];

const CONFIGURATION: &str = r#"
[[region]]
name = "eu"
[[pool]]
name = "web"
[[pool.backend]]
address = "10.1.0.11"
region = "eu"
[[pool.backend]]
address = "10.1.0.12"
region = "eu"
"#;

/// The socket that examples of docs/api.md name.
const LAB_SOCKET: &str = "/run/spillway-lab/balancer/spillwayd.sock";

/// Pools and backends of each that are listed.
const POOLS: u32 = 500;
const BACKENDS: u32 = 100;
/// Of the pools, one of so many is listed for comparison.
const PART: u32 = 10;
/// How much longer each page of all may take than one of that part. If every page took as long as all that stands before
/// it, it would be the more by far.
const FACTOR: f64 = 3.0;

/// A host with a balancer, from which clients ask it.
struct Host {
    fabric: Fabric,
    balancer: Balancer,
}

impl Host {
    fn start(sandbox: &Sandbox, name: &str, configuration: &str) -> Result<Self> {
        Self::start_with(sandbox, name, configuration, &[])
    }

    fn start_with(
        sandbox: &Sandbox,
        name: &str,
        configuration: &str,
        more: &[&str],
    ) -> Result<Self> {
        let fabric = Fabric::new(sandbox, name, 2)?;
        let binaries = Binaries::find()?;
        let mut balancer = Balancer::new(sandbox, &binaries, &fabric.balancer, REGIONS[0])?;
        balancer.more = more.iter().map(ToString::to_string).collect();
        balancer.start()?;
        balancer.apply(configuration)?;
        Ok(Self { fabric, balancer })
    }

    /// A client's exit code and its two outputs.
    fn run(
        &self,
        mut client: Command,
        arguments: &[&str],
    ) -> Result<(Option<i32>, String, String)> {
        let output = client.args(arguments).output().context("start the client")?;
        let [out, err] =
            [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into());
        Ok((output.status.code(), out, err))
    }

    /// The first backend's state and the reason for it.
    fn state(&self) -> Result<String> {
        let status: Status = self.balancer.printed(&["status"])?;
        let backend = status.backends.first().context("no backend")?;
        ensure!(backend.address == "10.1.0.11", "{status:?}");
        Ok(format!("{} {}", backend.state, backend.text))
    }
}

/// Drains and puts back, and reports what the daemon refuses. `undo` is the client's flag for the second.
fn check_drain(host: &mut Host, client: impl Fn(&Host) -> Command, undo: &str) -> Result<()> {
    ensure!(host.state()? == "up no checks");
    let reason = "drained by an override of uid 0 (root): maintenance";
    let drained = format!("10.1.0.11 is draining ({reason})\n");
    let back = "10.1.0.11 is up (no checks)\n";
    for (arguments, said, is) in [
        (&["web", "10.1.0.11"][..], &*drained, format!("draining {reason}")),
        (&[undo, "web", "10.1.0.11"], back, "up no checks".into()),
        (&[undo, "web", "10.1.0.11"], back, "up no checks".into()),
    ] {
        let told = host.run(client(host), arguments)?;
        ensure!(told == (Some(0), said.into(), String::new()), "{arguments:?}: {told:?}");
        ensure!(host.state()? == is, "{arguments:?}: {}", host.state()?);
    }
    for (arguments, error) in [
        (
            &["none", "10.1.0.11"][..],
            "OBJECT_NOT_FOUND: pool none: backend 10.1.0.11 does not exist",
        ),
        (&["web", "10.1.0.99"], "OBJECT_NOT_FOUND: pool web: backend 10.1.0.99 does not exist"),
        (&["web", "ten"], "INVALID_FIELD: targets[0].backend: must be an IPv4"),
    ] {
        let (code, out, err) = host.run(client(host), arguments)?;
        ensure!((code, &*out) == (Some(1), ""), "{arguments:?}: {code:?} {out}{err}");
        ensure!(err.starts_with(error) && err.lines().count() == 1, "{arguments:?}: {err}");
    }
    host.balancer.stop()?;
    let (code, _, err) = host.run(client(host), &["web", "10.1.0.11"])?;
    ensure!(code == Some(1) && err.to_uppercase().starts_with("UNAVAILABLE: "), "{err}");
    Ok(())
}

/// Reads the state of 50,000 backends with the client's own limits, each backend once, and at the pace at which it reads
/// a few thousand.
fn check_list(sandbox: &Sandbox, name: &str, client: impl Fn(&Host) -> Command) -> Result<()> {
    let mut configuration = String::from("[[region]]\nname = \"eu\"\n");
    let mut expected = Vec::new();
    for pool in 0..POOLS {
        write!(configuration, "[[pool]]\nname = \"pool-{pool:03}\"\nslots = 251\n")?;
        for backend in 0..BACKENDS {
            let address = format!("10.{}.{}.{backend}", 100 + pool / 250, pool % 250);
            write!(
                configuration,
                "[[pool.backend]]\naddress = \"{address}\"\nregion = \"eu\"\nadmin_state = \"disabled\"\n"
            )?;
            expected.push(format!("pool-{pool:03} {address} disabled"));
        }
    }
    let room = (POOLS * BACKENDS).to_string();
    let more = ["--backends", &room, "--pool-backends", &room];
    let host = Host::start_with(sandbox, name, &configuration, &more)?;
    let names: Vec<_> = (0..POOLS / PART).map(|pool| format!("pool-{pool:03}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let (mut best, mut part) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..3 {
        let start = Instant::now();
        let (code, out, err) = host.run(client(&host), &names)?;
        part = part.min(start.elapsed().as_secs_f64());
        let listed = out.lines().count();
        ensure!((code, listed) == (Some(0), names.len() * BACKENDS as usize), "{code:?} {err}");
        let start = Instant::now();
        let (code, out, err) = host.run(client(&host), &[])?;
        best = best.min(start.elapsed().as_secs_f64());
        ensure!((code, &*err) == (Some(0), ""), "{code:?} {err}");
        let mut listed: Vec<_> = out.lines().collect();
        listed.sort_unstable();
        let mut expected: Vec<_> = expected.iter().map(String::as_str).collect();
        expected.sort_unstable();
        ensure!(listed == expected, "{} lines: {:?}", listed.len(), listed.first());
    }
    note(format!(
        "{name}: {} backends by pages of 1,000 in {best:.2} s, a tenth of them in {part:.2} s",
        expected.len()
    ));
    ensure!(best < FACTOR * f64::from(PART) * part, "{best:.2} s, and a tenth of them {part:.2} s");
    let (code, out, _) = host.run(client(&host), &["pool-007", "pool-499"])?;
    ensure!(code == Some(0) && out.lines().count() == 2 * BACKENDS as usize, "{out}");
    Ok(())
}
