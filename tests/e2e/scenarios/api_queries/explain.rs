//! `ExplainPacket` names the backend that then answers.

use std::net::IpAddr;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{Fixture, HTTP, Health, Tunnel};
use lb_tests::daemon::{Answer, Client};
use lb_tests::random::Random;
use lb_tests::sandbox::Sandbox;
use lb_tests::traffic::name_over_http;
use spillway_proto::v1::{
    Affinity, ExplainRequest, ExplainResponse, ExplainedPacket, ExplainedRegionOutcome,
    ExplainedStepOutcome, Protocol,
};
use tonic::Code;

fn explain(client: &Client, from: &str, vip: &str, protocol: Protocol) -> Answer<ExplainResponse> {
    let (from, vip) = (from.to_owned(), vip.to_owned());
    let request = ExplainRequest { client: from, vip, protocol: protocol.into(), open: false };
    client.call(async |mut c| c.explain(request).await)
}

/// Who is named answers, through the next hop that is named.
pub(crate) fn comes_true(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::start(sandbox, "explained", Health::QUICK)?;
    let client = fixture.balancer.client()?;
    let (generation, _) = client.export()?;
    let links = fixture.fabric.router.ip_json("link show dev balancer")?;
    let router = links[0]["address"].as_str().context("the router's MAC")?.to_owned();
    let mut random = Random::new(7);
    for number in 0..20 {
        let tunnel = Tunnel::ALL[number % 4];
        let from = random.client(tunnel.vip());
        let to = tunnel.endpoint(HTTP);
        let told = explain(&client, &from.to_string(), &to.to_string(), Protocol::Unspecified)?;
        let name = name_over_http(&fixture.fabric.client, from, to)?;
        let choice = told.choice.as_ref().context("nobody is named")?;
        let backend = fixture.at(choice.backend.parse::<IpAddr>()?)?;
        ensure!(backend.name() == name, "{} is named, {name} answered", backend.name());

        let service = told.service.as_ref().context("no service")?;
        let names = (&*service.name, &*service.pool, service.affinity());
        let expected = format!("{}-tcp-80", tunnel.name());
        ensure!(names == (&*expected, tunnel.pool(), Affinity::Connection), "{told:?}");
        ensure!(told.generation == generation, "{told:?}");
        ensure!(told.packet() == ExplainedPacket::NewConnection, "{told:?}");
        ensure!(told.verdict == "forwarded", "{told:?}");
        ensure!(told.slot.is_some_and(|slot| slot.of == 1_009 && slot.number < 1_009));
        ensure!(told.hash.len() == 16 && u64::from_str_radix(&told.hash, 16).is_ok(), "{told:?}");
        // All are up, so that the owner in the near region has it.
        ensure!(
            (&*choice.region, &*choice.accepts, choice.owner) == ("eu", "all", true),
            "{told:?}"
        );
        ensure!((&*choice.next_hop, &*choice.interface) == (&*router, "eth0"), "{told:?}");
        let first = told.steps.first().context("no step")?;
        ensure!(first.outcome() == ExplainedStepOutcome::Chosen && first.place == "owner");
        ensure!(first.backend == choice.backend, "{told:?}");
        let regions = told.regions.iter().map(|region| (&*region.region, region.outcome()));
        let outcomes =
            [("eu", ExplainedRegionOutcome::Chosen), ("us", ExplainedRegionOutcome::NotAsked)];
        ensure!(regions.eq(outcomes), "{told:?}");
    }

    let vip = Tunnel::Ipip.endpoint(HTTP).to_string();
    // What nobody serves is an answer too.
    let nobody = explain(&client, "198.51.100.7:4000", "203.0.113.1:81", Protocol::Tcp)?;
    ensure!((nobody.service.is_none(), &*nobody.verdict) == (true, "unserved"), "{nobody:?}");
    for (from, field) in [("198.51.100.7", "client"), ("[2001:db8::7]:4000", "vip")] {
        let status = explain(&client, from, &vip, Protocol::Tcp).err().context("it is answered")?;
        ensure!(status.code() == Code::InvalidArgument, "{from}: {status}");
        let named = status.metadata().get("spillway-field").and_then(|field| field.to_str().ok());
        ensure!(named == Some(field), "{from}: {status}");
    }
    Ok(())
}
