//! Packets of all sizes arrive, also where a path carries less than its interfaces.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, Health, Tunnel};
use lb_tests::capture::{Capture, Frames};
use lb_tests::process::{PATIENCE, until};
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::Fabric;
use lb_tests::traffic::Curl;

use crate::traffic::settled_log;

/// Ten megabytes and a little, so that no packet size divides it.
const LARGE: usize = 10_000_019;

pub(crate) fn ten_megabytes_arrive_whole_both_ways(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "large", Health::QUICK)?;
    let directory = fixture.fabric.client.directory();
    let curl = Curl::new(&fixture.fabric.client);
    for (number, tunnel) in Tunnel::ALL.into_iter().enumerate() {
        let content = Random::new(number as u64).bytes(LARGE);
        let name = format!("{}.bin", tunnel.name());
        let (here, back) = (directory.join(&name), directory.join("back"));
        fs::write(&here, &content)?;
        let url = format!("http://{}/files/{name}", tunnel.endpoint(80));

        let capture = Capture::start(&fixture.fabric.router, "balancer", "")?;
        curl.upload(&here, &url)?;
        let frames = capture.stop()?;
        frames.assert_faultless().with_context(|| format!("{tunnel:?}: upload"))?;
        // The client sends as much as its link takes, and the outer header comes on top.
        let largest = largest(&frames, &tunnel.filter())?;
        let outer = if tunnel.is_outer_v4() { 20 } else { 40 };
        ensure!(largest == Some(14 + outer + 1500), "{tunnel:?}: largest frame {largest:?}");

        let copies = copies(&fixture, &name);
        ensure!(copies.len() == 1, "{tunnel:?}: {} backends have the upload", copies.len());
        ensure!(copies[0] == content, "{tunnel:?}: the upload differs");

        for nginx in &fixture.servers {
            fs::write(nginx.files().join(&name), &content)?;
        }
        curl.download(&url, &back)?;
        ensure!(fs::read(&back)? == content, "{tunnel:?}: the download differs");
    }
    Ok(())
}

/// Bytes of the longest frame that a filter of tshark's lets through.
fn largest(frames: &Frames, filter: &str) -> Result<Option<usize>> {
    let lengths = frames.fields(filter, ["frame.len"])?;
    Ok(lengths.iter().filter_map(|[length]| length.parse().ok()).max())
}

/// Each tunnel in IP, then each in GUE, and by how many bytes its header is longer than in IP.
fn tunnels_of_pools() -> impl Iterator<Item = (Tunnel, &'static str, u32)> {
    let forms = [("ip_in_ip", 0), ("gue", 12)];
    forms.into_iter().flat_map(|(form, more)| Tunnel::ALL.map(|tunnel| (tunnel, form, more)))
}

/// Has all pools use a form of tunnel.
fn encapsulate(fixture: &Fixture, form: &str) -> Result<()> {
    for pool in ["v4", "v6"] {
        fixture.balancer.cli(&["pool", "update", pool, "--encapsulation", form])?;
    }
    Ok(())
}

/// A file of a client's, for a tunnel's VIP in a form.
struct Upload {
    name: String,
    content: Vec<u8>,
    here: PathBuf,
    url: String,
}

impl Upload {
    fn new(fixture: &Fixture, seed: usize, tunnel: Tunnel, form: &str) -> Result<Self> {
        let content = Random::new(seed as u64).bytes(LARGE);
        let name = format!("{}-{form}.bin", tunnel.name());
        let here = fixture.fabric.client.directory().join(&name);
        fs::write(&here, &content)?;
        let url = format!("http://{}/files/{name}", tunnel.endpoint(80));
        Ok(Self { name, content, here, url })
    }

    /// Sent more than once, it did not always go to the same.
    fn ensure_arrived(&self, fixture: &Fixture) -> Result<()> {
        let copies = copies(fixture, &self.name);
        ensure!(!copies.is_empty(), "no backend has {}", self.name);
        ensure!(copies.iter().all(|copy| *copy == self.content), "{} differs", self.name);
        Ok(())
    }
}

/// A file as those backends have it that have it.
fn copies(fixture: &Fixture, name: &str) -> Vec<Vec<u8>> {
    fixture.servers.iter().filter_map(|nginx| fs::read(nginx.files().join(name)).ok()).collect()
}

/// With an outer header a client's packets do not fit the balancer's link. The client is told so, and sends
/// smaller ones.
pub(crate) fn an_upload_fits_itself_to_the_tunnel(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "upload", Health::QUICK)?;
    fixture.fabric.balancer.ip("link set eth0 mtu 1500")?;
    let client = &fixture.fabric.client;
    let curl = Curl::new(client);
    for (number, (tunnel, form, more)) in tunnels_of_pools().enumerate() {
        encapsulate(&fixture, form)?;
        let upload = Upload::new(&fixture, 100 + number, tunnel, form)?;
        let room = if tunnel.is_outer_v4() { 1480 } else { 1460 } - more;
        let (vip, before) =
            (tunnel.vip().to_string(), fixture.balancer.packets("answered_too_large")?);
        // The first one may come before the daemon has heard of the link.
        until(&format!("{tunnel:?}: the client learns"), PATIENCE, || {
            curl.upload(&upload.here, &upload.url)?;
            let route = client.run("ip", ["route", "get", &vip])?;
            Ok(route.contains(&format!("mtu {room} ")).then_some(()))
        })?;
        ensure!(fixture.balancer.packets("answered_too_large")? > before, "{tunnel:?}: by whom?");

        let capture = Capture::start(&fixture.fabric.router, "balancer", "")?;
        curl.upload(&upload.here, &upload.url)?;
        let frames = capture.stop()?;
        frames.assert_faultless().with_context(|| format!("{tunnel:?}"))?;
        let in_gue = "udp.dstport == 6080".to_owned();
        let largest = largest(&frames, &if more > 0 { in_gue } else { tunnel.filter() })?;
        ensure!(largest == Some(14 + 1500), "{tunnel:?}: largest frame {largest:?}");
        upload.ensure_arrived(&fixture)?;
    }
    Ok(())
}

/// The way to the client takes less than either end knows of. The router says so to the VIP; the backend
/// that has the connection hears of it, and nobody else, and sends smaller packets.
pub(crate) fn a_backend_hears_of_a_small_path_mtu(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "narrow", Health::QUICK)?;
    fixture.fabric.router.ip("link set client mtu 1300")?;
    let back = fixture.fabric.client.directory().join("back");
    let curl = Curl::new(&fixture.fabric.client);
    let content = Random::new(13).bytes(LARGE);
    for nginx in &fixture.servers {
        fs::write(nginx.files().join("narrow.bin"), &content)?;
    }
    for tunnel in Tunnel::ALL {
        let before = fixture.logged(tunnel.vip())?;
        curl.download(&format!("http://{}/files/narrow.bin", tunnel.endpoint(80)), &back)
            .with_context(|| format!("{tunnel:?}"))?;
        ensure!(fs::read(&back)? == content, "{tunnel:?}: the download differs");
        let total = before.iter().sum::<u64>() + 1;
        let after = settled_log(&fixture, tunnel, total)?;
        for ((backend, before), after) in fixture.fabric.backends.iter().zip(before).zip(after) {
            let route = |to: &str| {
                let from = tunnel.vip().to_string();
                backend.node.run("ip", ["route", "get", to, "from", &from])
            };
            let route = match tunnel.vip().is_ipv4() {
                true => route(&Fabric::CLIENT_V4.to_string())?,
                false => route(&Fabric::CLIENT_V6.to_string())?,
            };
            let knows = route.contains("mtu 1300");
            ensure!(knows == (after > before), "{tunnel:?}: {}: {route}", backend.name());
            // Each tunnel's backend learns it anew.
            backend.node.run("ip", ["-4", "route", "flush", "cache"])?;
            backend.node.run("ip", ["-6", "route", "flush", "cache"])?;
        }
    }
    Ok(())
}

/// The path to the backends takes less than the balancer's link, and the backends' `mtu` says so: the client is told,
/// and its upload gets through.
pub(crate) fn clients_are_told_of_a_configured_mtu(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "configured", Health::QUICK)?;
    fixture.fabric.router.ip("link set eu mtu 1400")?;
    for backend in fixture.fabric.region_backends("eu") {
        for address in [backend.v4.to_string(), backend.v6.to_string()] {
            fixture.balancer.cli(&["backend", "update", &address, "--mtu", "1400"])?;
        }
    }
    let client = &fixture.fabric.client;
    let curl = Curl::new(client);
    for (number, (tunnel, form, more)) in tunnels_of_pools().enumerate() {
        encapsulate(&fixture, form)?;
        let upload = Upload::new(&fixture, 200 + number, tunnel, form)?;
        curl.upload(&upload.here, &upload.url).with_context(|| format!("{tunnel:?}"))?;
        upload.ensure_arrived(&fixture)?;
        let room = if tunnel.is_outer_v4() { 1380 } else { 1360 } - more;
        let route = client.run("ip", ["route", "get", &tunnel.vip().to_string()])?;
        ensure!(route.contains(&format!("mtu {room} ")), "{tunnel:?}: {route}");
    }
    for backend in fixture.balancer.status()?.backends {
        let mtu = if backend.region == "eu" { 1400 } else { 1600 };
        ensure!(backend.mtu == mtu, "{backend:?}");
    }
    Ok(())
}
