//! Slots by need: a new pool's tables have as many as its backends need, and change their size only on request,
//! without moving an open connection.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel, configuration};
use lb_e2e::harness::Case;
use lb_tests::daemon::{Document, Member};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::REGIONS;
use lb_tests::traffic::Stream;
use spillway_proto::v1::WarningReason;

pub(crate) const CASES: &[Case] = &[
    Case::waits("a_pool_keeps_its_slots_until_it_is_told_to_choose_again", grown),
    Case::waits("a_weight_too_small_for_a_slot_is_told_at_apply_and_in_the_status", far_weights),
];

/// The slots of the first pool: as the configuration, the status and the maps have them.
fn slots(fixture: &Fixture) -> Result<u32> {
    let client = fixture.balancer.client()?;
    let ((_, configuration), status, table) =
        (client.export()?, client.status()?, client.table("v4")?);
    let of_pool = configuration.pools.iter().find(|it| it.name == "v4").and_then(|it| it.slots);
    let of_services = status.services.iter().filter(|it| it.pool == "v4");
    let of_services = of_services.map(|it| Some(it.slots));
    let of_tables = table.pools.iter().flat_map(|it| &it.groups).map(|it| Some(it.slots));
    let mut all: Vec<_> = of_services.chain(of_tables).chain([of_pool]).collect();
    let number = all.len();
    all.dedup();
    let [Some(slots)] = *all else { anyhow::bail!("{all:?}: {status:?}, {table:?}") };
    // A service, a table for each region, and the pool itself.
    ensure!(number >= 4, "{status:?}, {table:?}");
    Ok(slots)
}

/// The causes of conditions about slots.
fn conditions(fixture: &Fixture) -> Result<Vec<(String, String)>> {
    let conditions = fixture.balancer.status()?.conditions.into_iter();
    let of_slots = conditions.filter(|it| it.subject.starts_with("slots of "));
    Ok(of_slots.map(|it| (it.subject, it.text)).collect())
}

/// As many backends in the first region of the first pool. Those that are added answer nothing.
fn with_backends(document: &Document, number: usize) -> Document {
    let mut document = document.clone();
    let members = &mut document.pools[0].members;
    let here = members.iter().filter(|member| member.region == REGIONS[0]).count();
    members.extend((here..number).map(|number| Member {
        address: IpAddr::V4(Ipv4Addr::from_bits(0x0a01_0064 + number as u32)),
        region: REGIONS[0].into(),
        weight: 1,
    }));
    document
}

fn grown(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::idle(sandbox, "slots")?;
    let small = configuration(&fixture.fabric, Health { interval_ms: 1000, fall: 5 });
    fixture.balancer.apply(&small.text())?;
    fixture.wait_up(&[])?;
    ensure!(slots(&fixture)? == 1_009, "three backends a region");
    ensure!(conditions(&fixture)?.is_empty());
    let endpoint = Tunnel::Ipip.endpoint(ECHO);
    let streams: Vec<_> = (0..20)
        .map(|seed| Stream::open(&fixture.fabric.client, endpoint, seed))
        .collect::<Result<_>>()?;

    // Sixty backends: the size stays, over a restart too, and the daemon says that it is too small.
    let large = with_backends(&small, 60).text();
    fixture.balancer.apply(&large)?;
    let outgrown = |fixture: &Fixture| -> Result<()> {
        ensure!(slots(fixture)? == 1_009);
        let conditions = conditions(fixture)?;
        let [(subject, cause)] = &*conditions else { anyhow::bail!("{conditions:?}") };
        ensure!(subject == "slots of pool v4", "{subject}");
        let (has, fits) = cause.split_once(" has 16, ").with_context(|| cause.clone())?;
        ensure!(has == "of 1009 slots the backend with the least weight in region eu", "{cause}");
        ensure!(fits.contains("; slots = 16381, or slots = 0 "), "{cause}");
        Ok(())
    };
    outgrown(&fixture)?;
    fixture.balancer.stop()?;
    fixture.balancer.start()?;
    outgrown(&fixture)?;
    let again = fixture.balancer.apply(&large)?;
    ensure!(again.contains("stays in force: nothing differs"), "{again}");
    let exported = fixture.balancer.cli(&["export"])?;
    ensure!(exported.contains("slots = 1009\n"), "{exported}");
    Stream::all_go_on(&streams)?;

    let update = ["pool", "update", "v4", "--slots", "0"];
    let dry = fixture.balancer.cli(&[&update[..], &["--dry-run"]].concat())?;
    ensure!(dry.contains("~ pool v4 (32762 slots moved)\n    slots: 1009 -> 16381\n"), "{dry}");
    ensure!(dry.contains("\n  pool v4  ") && dry.contains("stay for the settle time"), "{dry}");
    outgrown(&fixture)?;
    fixture.balancer.cli(&update)?;
    ensure!(slots(&fixture)? == 16_381);
    ensure!(conditions(&fixture)?.is_empty());
    let settling = fixture.balancer.status()?.settling;
    ensure!(settling.first().is_some_and(|it| it.pool == "v4"), "it is no remap: {settling:?}");
    Stream::all_go_on(&streams)?;
    Stream::finish_all(streams)
}

/// Of 1,009 slots the first of three backends gets all: dry run and apply say so, and the status as long as it lasts.
fn far_weights(sandbox: &Sandbox) -> Result<()> {
    let fixture = Fixture::idle(sandbox, "far")?;
    let even = configuration(&fixture.fabric, Health { interval_ms: 1000, fall: 5 });
    fixture.balancer.apply(&even.text())?;
    ensure!(conditions(&fixture)?.is_empty());

    let client = fixture.balancer.client()?;
    let (_, mut configuration) = client.export()?;
    let pool = configuration.pools.iter_mut().find(|pool| pool.name == "v4").context("no pool")?;
    let here = pool.backends.iter_mut().filter(|backend| backend.region == REGIONS[0]);
    here.zip([1_000_000, 30, 1]).for_each(|(backend, weight)| backend.weight = Some(weight));
    let light = pool
        .backends
        .iter()
        .find(|backend| backend.weight == Some(1) && backend.region == REGIONS[0]);
    let light = light.context("no third backend")?.address.clone();
    let named = format!("{light} in region {} (weight 1 of 1000031)", REGIONS[0]);
    for validate_only in [true, false] {
        let warnings = client.apply(&configuration, validate_only)?.warnings;
        let [warning] = &*warnings else { anyhow::bail!("{warnings:?}") };
        ensure!(warning.reason() == WarningReason::WithoutSlots, "{warning:?}");
        let begins =
            warning.text.starts_with("pool v4: of 1009 slots 2 backends with weights have none");
        ensure!(begins && warning.text.contains(&named), "{warning:?}");
    }
    let table = client.table("v4")?;
    let groups = table.pools.iter().flat_map(|pool| &pool.groups);
    let slots: Vec<_> = groups
        .flat_map(|group| &group.backends)
        .filter(|backend| backend.address == light)
        .map(|backend| backend.slots)
        .collect();
    ensure!(slots == [0], "{table:?}");
    let lasting = conditions(&fixture)?;
    let [(subject, cause)] = &*lasting else { anyhow::bail!("{lasting:?}") };
    ensure!(subject == "slots of pool v4" && cause.contains(&named), "{lasting:?}");
    fixture.balancer.apply(&even.text())?;
    ensure!(conditions(&fixture)?.is_empty());
    Ok(())
}
