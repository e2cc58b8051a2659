//! Backends that several pools have: what one pool does with them is its own affair.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, Result, ensure};
use lb_tests::harness::Case;
use lb_tests::process::{PATIENCE, until};
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::scene::{ECHO, Health, Scene, Tunnel, configuration};
use lb_tests::traffic::{Stream, StreamReport, name_over_udp};

/// The pools that have the same backends, each with the tunnel whose services lead there.
const POOLS: [(&str, Tunnel); 2] = [("v4", Tunnel::Ipip), ("twin", Tunnel::Ip6In4)];
/// Flows and connections of each.
const FLOWS: usize = 24;

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_backend_disabled_in_one_pool_loses_what_it_had_of_that_pool_alone", disabled),
    Case::waits("a_backend_that_left_one_pool_keeps_its_flows_of_another", left),
    Case::waits("flows_stay_in_a_region_that_a_pool_asks_no_more", unasked),
];

/// What has nearly all that is new go to the far region.
const FULL: &str = "[[pool.group]]\nregion = \"eu\"\ncapacity = \"6/m\"\n";

/// The scene with a second pool of the same backends, and more said of both.
fn start(sandbox: &Sandbox, name: &str, pool: &str) -> Result<Scene> {
    let scene = Scene::idle(sandbox, name)?;
    let mut document = configuration(&scene.fabric, Health::QUICK);
    let mut twin = document.pools[0].clone();
    twin.name = POOLS[1].0.into();
    document.pools.push(twin);
    for service in &mut document.services {
        let of = POOLS.iter().find(|(_, tunnel)| tunnel.vip() == service.address);
        service.pool = of.map_or(service.pool.clone(), |(pool, _)| (*pool).into());
    }
    let (checks, udp) = ("health_checks = [\"page\"]\n", "protocol = \"udp\"\n");
    let text = document.text().replace(checks, &format!("{checks}{pool}"));
    scene.balancer.apply(&text.replace(udp, &format!("{udp}udp = \"tracked\"\n")))?;
    scene.wait_up(&[])?;
    Ok(scene)
}

/// Who answers each of some flows.
fn answers(scene: &Scene, tunnel: Tunnel, flows: &[SocketAddr]) -> Result<Vec<String>> {
    let to = tunnel.endpoint(ECHO);
    flows.iter().map(|from| name_over_udp(&scene.fabric.client, *from, to)).collect()
}

/// Who `spillway explain` says has the next datagram of a flow.
fn explained(scene: &Scene, tunnel: Tunnel, from: &SocketAddr) -> Result<String> {
    let (client, vip) = (from.to_string(), tunnel.endpoint(ECHO).to_string());
    let said = scene.balancer.ask(&["explain", &client, &vip, "--protocol", "udp"])?;
    let chosen = said["choice"]["backend"].as_str().context("nobody chosen")?;
    Ok(scene.at(chosen.parse()?)?.name().to_owned())
}

/// States of an address by pool, as `spillway status` has them.
fn states(scene: &Scene, address: IpAddr) -> Result<BTreeMap<String, String>> {
    let status = scene.balancer.ask(&["status"])?;
    let backends = status["backends"].as_array().context("no backends")?;
    let here = backends.iter().filter(|backend| backend["address"] == *address.to_string());
    let text =
        |backend: &serde_json::Value, field| backend[field].as_str().unwrap_or("").to_owned();
    Ok(here.map(|backend| (text(backend, "pool"), text(backend, "state"))).collect())
}

/// What is known of the flows and connections of a pool.
struct Open {
    tunnel: Tunnel,
    flows: Vec<SocketAddr>,
    names: Vec<String>,
    streams: Vec<Stream>,
}

impl Open {
    fn new(scene: &Scene, tunnel: Tunnel) -> Result<Self> {
        let mut random = Random::new(9);
        let flows: Vec<_> = (0..FLOWS).map(|_| random.client(tunnel.vip())).collect();
        let names = answers(scene, tunnel, &flows)?;
        let stream = |seed| Stream::open(&scene.fabric.client, tunnel.endpoint(ECHO), seed as u64);
        let streams = (0..FLOWS).map(stream).collect::<Result<Vec<_>>>()?;
        Ok(Self { tunnel, flows, names, streams })
    }

    /// Who in a region has both flows and connections.
    fn busy(&self, region: &str) -> Result<String> {
        let of = |name: &str| self.streams.iter().any(|stream| stream.backend() == name);
        let mut names = self.names.iter().filter(|name| name.starts_with(region) && of(name));
        names.next().cloned().with_context(|| format!("nobody in {region} has both"))
    }

    /// That all goes on where it was.
    fn ensure_as_before(&self, scene: &Scene) -> Result<()> {
        ensure!(answers(scene, self.tunnel, &self.flows)? == self.names, "{:?}", self.tunnel);
        Stream::all_go_on(&self.streams)
    }

    /// That flows and connections of one backend have moved, and no others.
    fn ensure_moved_from(&mut self, scene: &Scene, backend: &str) -> Result<()> {
        for (from, before) in self.flows.iter().zip(&self.names) {
            let said = explained(scene, self.tunnel, from)?;
            let answered = name_over_udp(&scene.fabric.client, *from, self.tunnel.endpoint(ECHO))?;
            // The near region has room for one more every ten seconds: it may come between the two.
            let has_room =
                || Ok::<_, anyhow::Error>(explained(scene, self.tunnel, from)? == answered);
            let came = answered.starts_with("eu") && !said.starts_with("eu") && has_room()?;
            ensure!(said == answered || came, "{from}: explain says {said}, {answered} answers");
            ensure!((*before == backend) == (answered != *before), "{from}: {before}, {answered}");
            ensure!(answered != backend, "{from} is still answered by {backend}");
        }
        let (gone, there): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.streams).into_iter().partition(|s| s.backend() == backend);
        until("its connections are reset", PATIENCE, || {
            Ok(gone.iter().all(Stream::is_lost).then_some(()))
        })?;
        for StreamReport { lost, .. } in gone.into_iter().map(Stream::finish) {
            ensure!(lost.is_some(), "a connection went on");
        }
        Stream::all_go_on(&there)?;
        self.streams = there;
        self.names = answers(scene, self.tunnel, &self.flows)?;
        Ok(())
    }
}

fn disabled(sandbox: &Sandbox) -> Result<()> {
    let mut scene = start(sandbox, "disabled", FULL)?;
    let [mut here, there] = [Open::new(&scene, POOLS[0].1)?, Open::new(&scene, POOLS[1].1)?];
    let name = here.busy("us")?;
    ensure!(there.names.contains(&name), "{name} has nothing of the other pool");
    let address = IpAddr::from(scene.fabric.backends[scene.number(&name)?].v4);
    let change = |scene: &Scene, verb: &str, pool: &str| {
        scene.balancer.cli(&["backend", verb, &address.to_string(), "--pool", pool])
    };

    change(&scene, "disable", POOLS[0].0)?;
    // The very next packet: nothing waits for anybody.
    here.ensure_moved_from(&scene, &name)?;
    there.ensure_as_before(&scene)?;
    let said = states(&scene, address)?;
    ensure!((&*said["v4"], &*said["twin"]) == ("dead", "up"), "{said:?}");

    // With the daemon gone, too, and with the next one.
    scene.balancer.kill()?;
    there.ensure_as_before(&scene)?;
    here.ensure_as_before(&scene)?;
    scene.balancer.start()?;
    there.ensure_as_before(&scene)?;
    here.ensure_as_before(&scene)?;

    // Deleted on top: it does not come back.
    change(&scene, "delete", POOLS[0].0)?;
    here.ensure_as_before(&scene)?;
    there.ensure_as_before(&scene)?;

    // The other way round: disabled where it was still wanted.
    let mut there = there;
    change(&scene, "disable", POOLS[1].0)?;
    there.ensure_moved_from(&scene, &name)?;
    change(&scene, "enable", POOLS[1].0)?;
    scene.wait_up(&[])?;
    there.ensure_as_before(&scene)?;
    here.ensure_as_before(&scene)?;

    // Removed while it is well: what was sent on to its region moves at once.
    let well = there.busy("us")?;
    let address = scene.fabric.backends[scene.number(&well)?].v4.to_string();
    scene.balancer.cli(&["backend", "delete", &address, "--pool", POOLS[1].0])?;
    there.ensure_moved_from(&scene, &well)?;
    here.ensure_as_before(&scene)
}

/// Its flows of the pool that it left stay for the settle time, as those of a backend that only one pool had.
fn left(sandbox: &Sandbox) -> Result<()> {
    let scene = start(sandbox, "left", "settle_time = \"3s\"\n")?;
    let [mut here, there] = [Open::new(&scene, POOLS[0].1)?, Open::new(&scene, POOLS[1].1)?];
    let name = here.busy("eu")?;
    ensure!(there.names.contains(&name), "{name} has nothing of the other pool");
    let address = scene.fabric.backends[scene.number(&name)?].v4.to_string();
    scene.balancer.cli(&["backend", "delete", &address, "--pool", POOLS[0].0])?;
    let flow = here.names.iter().position(|has| *has == name).context("no flow")?;
    until("the settle time is over", PATIENCE, || {
        Ok((explained(&scene, here.tunnel, &here.flows[flow])? != name).then_some(()))
    })?;
    here.ensure_moved_from(&scene, &name)?;
    there.ensure_as_before(&scene)
}

/// Backends of a region that a pool asks no more are its own all the same; to be disabled takes their flows.
fn unasked(sandbox: &Sandbox) -> Result<()> {
    let mut scene = start(sandbox, "unasked", FULL)?;
    let [mut here, there] = [Open::new(&scene, POOLS[0].1)?, Open::new(&scene, POOLS[1].1)?];
    let name = here.busy("us")?;
    scene.balancer.cli(&["region", "update", "eu", "--overflow-to", ""])?;
    for _ in 0..2 {
        here.ensure_as_before(&scene)?;
        for (from, name) in here.flows.iter().zip(&here.names) {
            ensure!(explained(&scene, here.tunnel, from)? == *name, "{from}: it is at {name}");
        }
        there.ensure_as_before(&scene)?;
        scene.balancer.kill()?;
        scene.balancer.start()?;
    }
    let address = scene.fabric.backends[scene.number(&name)?].v4.to_string();
    scene.balancer.cli(&["backend", "disable", &address, "--pool", POOLS[0].0])?;
    here.ensure_moved_from(&scene, &name)?;
    there.ensure_as_before(&scene)
}
