//! With direct return packets go unencapsulated to backends on the balancer's link, by a second interface of its.

use std::fs;
use std::net::IpAddr;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::harness::Case;
use lb_tests::capture::Capture;
use lb_tests::daemon::{Balancer, Binaries, Document, Member, Pool, Service, answers};
use lb_tests::process::{PATIENCE, until};
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Fabric, REGIONS};
use lb_tests::traffic::{Curl, Nginx};
use spillway_proto::v1::BackendStatus;

/// Ten megabytes and a little, so that no packet size divides it.
const LARGE: usize = 10_000_019;

pub(crate) const CASES: &[Case] =
    &[Case::waits("ten_megabytes_go_by_macs_alone", ten_megabytes_go_by_macs_alone)];

/// Services of both versions, in front of two backends on the balancer's second link and one behind a gateway,
/// all by their IPv4 addresses. Nobody has a receiver.
fn document(fabric: &Fabric) -> Document {
    let member = |address, region: &str| Member { address, region: region.into(), weight: 1 };
    let members = fabric.backends.iter().take(3).map(|b| member(b.v4.into(), b.region));
    let service = |name: &str, address| Service {
        name: name.into(),
        address,
        port: 80,
        protocol: "tcp",
        pool: "web".into(),
    };
    Document {
        regions: REGIONS.map(Into::into).to_vec(),
        pools: vec![Pool { name: "web".into(), checks: Vec::new(), members: members.collect() }],
        services: vec![
            service("four", Fabric::VIP_V4.into()),
            service("six", Fabric::VIP_V6.into()),
        ],
        ..Document::default()
    }
}

fn ten_megabytes_go_by_macs_alone(sandbox: &Sandbox) -> Result<()> {
    let fabric = Fabric::new(sandbox, "direct", 2)?;
    fabric.net.link(&fabric.balancer, "eth1", &fabric.router, "arm", 1600)?;
    fabric.router.ip("link set arm master eu")?;
    fabric.net.pass_all(&fabric.router, "arm")?;
    fabric.balancer.ip("address add 10.1.0.2/24 dev eth1")?;
    fabric.net.ready()?;
    let [here, there, far] = &fabric.backends[..3] else { anyhow::bail!("three backends") };
    let servers = [Nginx::start(&here.node)?, Nginx::start(&there.node)?];
    let balancer = Balancer::started(sandbox, &Binaries::find()?, &fabric.balancer, REGIONS[0])?;
    let text = document(&fabric).text();
    let name = "[[pool]]\nname = \"web\"\n";
    balancer.apply(&text.replace(name, &format!("{name}encapsulation = \"direct\"\n")))?;
    let near = [IpAddr::from(here.v4), there.v4.into()];
    balancer.wait_up(&near, PATIENCE)?;
    let why = format!(
        "direct return needs a backend on the link, but the route leads through {}",
        Fabric::GATEWAY_V4
    );
    ensure!(hop_of(&balancer, far.v4.into())? == why, "{}", hop_of(&balancer, far.v4.into())?);

    for (vip, url_host) in [
        (IpAddr::from(Fabric::VIP_V4), Fabric::VIP_V4.to_string()),
        (Fabric::VIP_V6.into(), format!("[{}]", Fabric::VIP_V6)),
    ] {
        let directory = fabric.client.directory();
        let (up, back) = (directory.join("up.bin"), directory.join("back.bin"));
        let content = Random::new(u64::from(vip.is_ipv6())).bytes(LARGE);
        fs::write(&up, &content)?;
        let url = format!("http://{url_host}/files/up.bin");
        let curl = Curl::new(&fabric.client);
        let capture = Capture::start(&fabric.router, "arm", "")?;
        curl.upload(&up, &url).with_context(|| format!("{vip}: upload"))?;
        let frames = capture.stop()?;
        frames.assert_faultless().with_context(|| format!("{vip}"))?;
        // 64 at the client; router and balancer are a hop each.
        let (filter, ttl) = match vip {
            IpAddr::V4(vip) => (format!("ip.dst == {vip} && tcp"), "ip.ttl"),
            IpAddr::V6(vip) => (format!("ipv6.dst == {vip} && tcp"), "ipv6.hlim"),
        };
        let seen = frames.fields(&filter, ["frame.len", ttl, "frame.protocols"])?;
        ensure!(!seen.is_empty(), "{vip}: nothing went by the second arm");
        let ip = if vip.is_ipv4() { "eth:ethertype:ip:tcp" } else { "eth:ethertype:ipv6:tcp" };
        for [_, ttl, protocols] in &seen {
            ensure!(ttl == "62" && protocols.starts_with(ip), "{vip}: {ttl} {protocols}");
        }
        let largest = seen.iter().filter_map(|[length, ..]| length.parse::<usize>().ok()).max();
        ensure!(largest == Some(14 + 1500), "{vip}: largest frame {largest:?}");
        let copies = servers.iter().filter_map(|nginx| fs::read(nginx.files().join("up.bin")).ok());
        let copies: Vec<_> = copies.collect();
        ensure!(copies == [content.clone()], "{vip}: the upload differs, or is not one");
        for nginx in &servers {
            fs::write(nginx.files().join("up.bin"), &content)?;
        }
        curl.download(&url, &back).with_context(|| format!("{vip}: download"))?;
        ensure!(fs::read(&back)? == content, "{vip}: the download differs");
        for nginx in &servers {
            fs::remove_file(nginx.files().join("up.bin"))?;
        }
    }

    // Checks of the VIPs go by MACs too, if VIP and backend have an IP version in common; where clients' packets
    // cannot go, nor can they.
    let create = ["health", "create", "as-clients", "--port", "80", "--via", "tunnel"];
    let create = [&create[..], &["--http-path", "/healthz", "--interval", "300ms"]].concat();
    balancer.cli(&create)?;
    balancer.cli(&["pool", "update", "web", "--health-checks", "as-clients"])?;
    let reason =
        format!("no path through the tunnel: direct return: {} is not on the link", far.v4);
    until("the far one is asked", PATIENCE, || {
        Ok(reason_of(&balancer, far.v4.into())?.contains(&reason).then_some(()))
    })?;
    let reason =
        format!("direct return: IPv6 packets need a backend's IPv6 address, not {}", here.v4);
    until("IPv6 is refused", PATIENCE, || {
        Ok(reason_of(&balancer, here.v4.into())?.contains(&reason).then_some(()))
    })?;
    balancer.cli(&["service", "delete", "six", "--yes"])?;
    balancer.wait_up(&near, PATIENCE)?;
    here.node.ip(&format!("address del {}/32 dev lo", Fabric::VIP_V4))?;
    balancer.wait_up(&near[1..], PATIENCE)?;
    here.node.ip(&format!("address add {}/32 dev lo", Fabric::VIP_V4))?;
    balancer.wait_up(&near, PATIENCE)?;
    balancer.cli(&["pool", "update", "web", "--unset", "health_checks"])?;

    // In a tunnel the far one can be reached, and no longer without.
    let all = [near[0], near[1], far.v4.into()];
    balancer.cli(&["pool", "update", "web", "--encapsulation", "ip_in_ip"])?;
    balancer.wait_up(&all, PATIENCE)?;
    balancer.cli(&["pool", "update", "web", "--encapsulation", "direct"])?;
    balancer.wait_up(&near, PATIENCE)?;
    until("the reason is told again", PATIENCE, || {
        Ok((hop_of(&balancer, far.v4.into())? == why).then_some(()))
    })
}

/// What a backend's status says of its next hop.
fn hop_of(balancer: &Balancer, address: IpAddr) -> Result<String> {
    Ok(status_of(balancer, address)?.next_hop)
}

/// Why a backend has its state.
fn reason_of(balancer: &Balancer, address: IpAddr) -> Result<String> {
    Ok(answers::reason(&status_of(balancer, address)?).to_owned())
}

/// How a backend is.
fn status_of(balancer: &Balancer, address: IpAddr) -> Result<BackendStatus> {
    answers::backend(&balancer.status()?, &address.to_string()).cloned()
}
