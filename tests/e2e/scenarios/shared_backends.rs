//! What one pool does with a backend that other pools have too changes nothing for those.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel, configuration};
use lb_e2e::harness::Case;
use lb_tests::process::{PATIENCE, until};
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::{Stream, StreamReport, name_over_udp};
use spillway_proto::v1::BackendState;

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

/// The fixture with a second pool of the same backends, and more said of both.
fn start(sandbox: &Sandbox, name: &str, pool: &str) -> Result<Fixture> {
    let fixture = Fixture::idle(sandbox, name)?;
    let mut document = configuration(&fixture.fabric, Health::QUICK);
    let mut twin = document.pools[0].clone();
    twin.name = POOLS[1].0.into();
    document.pools.push(twin);
    for service in &mut document.services {
        let of = POOLS.iter().find(|(_, tunnel)| tunnel.vip() == service.address);
        service.pool = of.map_or(service.pool.clone(), |(pool, _)| (*pool).into());
    }
    let (checks, udp) = ("health_checks = [\"page\"]\n", "protocol = \"udp\"\n");
    let text = document.text().replace(checks, &format!("{checks}{pool}"));
    fixture.balancer.apply(&text.replace(udp, &format!("{udp}udp = \"tracked\"\n")))?;
    fixture.wait_up(&[])?;
    Ok(fixture)
}

/// Who answers each of some flows.
fn answers(fixture: &Fixture, tunnel: Tunnel, flows: &[SocketAddr]) -> Result<Vec<String>> {
    let to = tunnel.endpoint(ECHO);
    flows.iter().map(|from| name_over_udp(&fixture.fabric.client, *from, to)).collect()
}

/// Who `spillway explain` says has the next datagram of a flow.
fn explained(fixture: &Fixture, tunnel: Tunnel, from: &SocketAddr) -> Result<String> {
    let chosen = fixture.balancer.explain(*from, tunnel.endpoint(ECHO), "udp")?.backend()?;
    Ok(fixture.at(chosen)?.name().to_owned())
}

/// States of an address by pool, as `spillway status` has them.
fn states(fixture: &Fixture, address: IpAddr) -> Result<BTreeMap<String, BackendState>> {
    let (status, address) = (fixture.balancer.status()?, address.to_string());
    let here = status.backends.iter().filter(|backend| backend.address == address);
    Ok(here.map(|backend| (backend.pool.clone(), backend.state())).collect())
}

/// What is known of the flows and connections of a pool.
struct Open {
    tunnel: Tunnel,
    flows: Vec<SocketAddr>,
    names: Vec<String>,
    streams: Vec<Stream>,
}

impl Open {
    fn new(fixture: &Fixture, tunnel: Tunnel) -> Result<Self> {
        let mut random = Random::new(9);
        let flows: Vec<_> = (0..FLOWS).map(|_| random.client(tunnel.vip())).collect();
        let names = answers(fixture, tunnel, &flows)?;
        let stream =
            |seed| Stream::open(&fixture.fabric.client, tunnel.endpoint(ECHO), seed as u64);
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
    fn ensure_as_before(&self, fixture: &Fixture) -> Result<()> {
        ensure!(answers(fixture, self.tunnel, &self.flows)? == self.names, "{:?}", self.tunnel);
        Stream::all_go_on(&self.streams)
    }

    /// That flows and connections of one backend have moved, and no others.
    fn ensure_moved_from(&mut self, fixture: &Fixture, backend: &str) -> Result<()> {
        for (from, before) in self.flows.iter().zip(&self.names) {
            let said = explained(fixture, self.tunnel, from)?;
            let answered =
                name_over_udp(&fixture.fabric.client, *from, self.tunnel.endpoint(ECHO))?;
            // The near region has room for one more every ten seconds: it may come between the two.
            let has_room =
                || Ok::<_, anyhow::Error>(explained(fixture, self.tunnel, from)? == answered);
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
        self.names = answers(fixture, self.tunnel, &self.flows)?;
        Ok(())
    }
}

fn disabled(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = start(sandbox, "disabled", FULL)?;
    let [mut here, there] = [Open::new(&fixture, POOLS[0].1)?, Open::new(&fixture, POOLS[1].1)?];
    let name = here.busy("us")?;
    ensure!(there.names.contains(&name), "{name} has nothing of the other pool");
    let address = IpAddr::from(fixture.fabric.backends[fixture.number(&name)?].v4);
    let change = |fixture: &Fixture, verb: &str, pool: &str| {
        fixture.balancer.cli(&["backend", verb, &address.to_string(), "--pool", pool])
    };

    change(&fixture, "disable", POOLS[0].0)?;
    // The very next packet: nothing waits for anybody.
    here.ensure_moved_from(&fixture, &name)?;
    there.ensure_as_before(&fixture)?;
    let said = states(&fixture, address)?;
    ensure!([said["v4"], said["twin"]] == [BackendState::Disabled, BackendState::Up], "{said:?}");

    // With the daemon gone, too, and with the next one.
    fixture.balancer.kill()?;
    there.ensure_as_before(&fixture)?;
    here.ensure_as_before(&fixture)?;
    fixture.balancer.start()?;
    there.ensure_as_before(&fixture)?;
    here.ensure_as_before(&fixture)?;

    // Deleted on top: it does not come back.
    change(&fixture, "delete", POOLS[0].0)?;
    here.ensure_as_before(&fixture)?;
    there.ensure_as_before(&fixture)?;

    // The other way round: disabled where it still took traffic.
    let mut there = there;
    change(&fixture, "disable", POOLS[1].0)?;
    there.ensure_moved_from(&fixture, &name)?;
    change(&fixture, "enable", POOLS[1].0)?;
    fixture.wait_up(&[])?;
    there.ensure_as_before(&fixture)?;
    here.ensure_as_before(&fixture)?;

    // Removed while it is well: what was sent on to its region moves at once.
    let well = there.busy("us")?;
    let address = fixture.fabric.backends[fixture.number(&well)?].v4.to_string();
    fixture.balancer.cli(&["backend", "delete", &address, "--pool", POOLS[1].0])?;
    there.ensure_moved_from(&fixture, &well)?;
    here.ensure_as_before(&fixture)
}

/// Its flows of the pool that it left stay for the settle time, as those of a backend that only one pool had.
fn left(sandbox: &Sandbox) -> Result<()> {
    let fixture = start(sandbox, "left", "settle_time = \"3s\"\n")?;
    let [mut here, there] = [Open::new(&fixture, POOLS[0].1)?, Open::new(&fixture, POOLS[1].1)?];
    let name = here.busy("eu")?;
    ensure!(there.names.contains(&name), "{name} has nothing of the other pool");
    let address = fixture.fabric.backends[fixture.number(&name)?].v4.to_string();
    fixture.balancer.cli(&["backend", "delete", &address, "--pool", POOLS[0].0])?;
    let flow = here.names.iter().position(|has| *has == name).context("no flow")?;
    until("the settle time is over", PATIENCE, || {
        Ok((explained(&fixture, here.tunnel, &here.flows[flow])? != name).then_some(()))
    })?;
    here.ensure_moved_from(&fixture, &name)?;
    there.ensure_as_before(&fixture)
}

/// Backends of a region that a pool asks no more are its own all the same; to be disabled takes their flows.
fn unasked(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = start(sandbox, "unasked", FULL)?;
    let [mut here, there] = [Open::new(&fixture, POOLS[0].1)?, Open::new(&fixture, POOLS[1].1)?];
    let name = here.busy("us")?;
    fixture.balancer.cli(&["region", "update", "eu", "--overflow-to", ""])?;
    for _ in 0..2 {
        here.ensure_as_before(&fixture)?;
        for (from, name) in here.flows.iter().zip(&here.names) {
            ensure!(explained(&fixture, here.tunnel, from)? == *name, "{from}: it is at {name}");
        }
        there.ensure_as_before(&fixture)?;
        fixture.balancer.kill()?;
        fixture.balancer.start()?;
    }
    let address = fixture.fabric.backends[fixture.number(&name)?].v4.to_string();
    fixture.balancer.cli(&["backend", "disable", &address, "--pool", POOLS[0].0])?;
    here.ensure_moved_from(&fixture, &name)?;
    there.ensure_as_before(&fixture)
}
