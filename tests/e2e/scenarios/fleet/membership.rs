//! Balancers join and leave while others are at work, and daemons die in the middle of changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Output,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    fixture::{FleetFixture, FleetPlan, Health, Tunnel},
    harness,
};
use lb_tests::{
    daemon::{
        answers::member,
        printed::{Generation, History},
    },
    process::{PATIENCE, pause, until},
    random::Random,
    sandbox::Sandbox,
    traffic::{LongConnectionServer, LongConnections},
};

use spillway_proto::v1::FleetStatus;

use super::calls::{
    CONFLICT, WHOLE, condition, joined_as, portions, reweigh, text, wait_for_whole, wait_until_well,
};
use super::members::{status, wait_in_force};
use super::traffic::Traffic;

const THREE: FleetPlan = FleetPlan { balancers: 3, etcd: 1, ..FleetPlan::FLEET };

/// A balancer leaves, is independent, and joins again.
pub(super) fn leave_and_join_again(sandbox: &Sandbox) -> Result<()> {
    let fleet = joined_as(sandbox, "leaves", THREE)?;
    let backend = fleet.fabric.backends[0].v4.to_string();
    let traffic = Traffic::start(&fleet)?;
    // What it had in force by itself, and the number of that.
    let mut alone: Option<(u64, String)> = None;
    for round in 0..2 {
        wait_for_whole(&fleet, 0, &[0, 1, 2])?;
        let output = fleet.spillway(2, &["fleet", "leave", "--dry-run"])?;
        ensure!(output.contains("would leave fleet edge"), "{output}");
        ensure!(status(&fleet, 2)?.member);

        // Nobody sees more than a whole while portions move.
        let left = thread::scope(|scope| {
            let leave = scope.spawn(|| fleet.spillway(2, &["fleet", "leave", "--yes"]));
            while !leave.is_finished() {
                for at in 0..2 {
                    let portions = portions(&status(&fleet, at)?)?;
                    let sum: f64 = portions.values().sum();
                    ensure!(sum <= WHOLE, "{sum}: {portions:?}");
                }
            }
            leave.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?
        })?;
        ensure!(left.contains("lb-3 has left fleet edge"), "{left}");
        wait_for_whole(&fleet, 0, &[0, 1])?;
        wait_for_whole(&fleet, 1, &[0, 1])?;
        let seen = status(&fleet, 0)?;
        ensure!(seen.members.len() == 2, "{seen:#?}");
        traffic.goes_on()?;

        // It is independent, with what it had.
        let own = status(&fleet, 2)?;
        ensure!(!own.member, "{own:#?}");
        ensure!(condition(&fleet, 2, "etcd")?.is_none());
        let text = exported(&fleet, 2)?;
        ensure!(text == exported(&fleet, 0)?, "it did not keep the configuration");
        fleet.spillway(0, &["backend", "update", &backend, "--pool", "v4", "--weight", "2"])?;
        ensure!(exported(&fleet, 2)? == text, "it follows the fleet still");
        if let Some((number, configuration)) = &alone {
            let numbers = history(&fleet, 2)?;
            ensure!(numbers.before_fleet.is_empty(), "{numbers:?}");
            ensure!(numbers.current[..2] == [number + 1, *number], "{numbers:?}");
            ensure!(numbers.last.why == "leave of the fleet", "{numbers:?}");
            ensure!(numbers.last.who.starts_with("uid 0"), "{numbers:?}");
            fleet.spillway(2, &["rollback", &number.to_string(), "--yes"])?;
            let back = exported(&fleet, 2)?;
            ensure!(back == *configuration, "back is {back} instead of {configuration}");
        }
        let changed = text.replacen("slots = 1009", "slots = 1013", 1);
        ensure!(changed != text, "{text}");
        fleet.balancers[2].apply(&changed)?;
        let number = fleet.balancers[2].status()?.generation;
        alone = Some((number, exported(&fleet, 2)?));
        let drained = fleet.spillway(2, &["backend", "drain", &backend, "--yes"])?;
        ensure!(!drained.contains("lb-1"), "{drained}");
        ensure!(fleet.balancers[0].overrides()?.overrides.is_empty());
        fleet.spillway(2, &["backend", "undrain", &backend])?;

        fleet.spillway(2, &["fleet", "join", "--yes"])?;
        fleet.spillway(0, &["backend", "update", &backend, "--pool", "v4", "--weight", "1"])?;
        wait_in_force(&fleet, 2, 3 + 2 * round)?;
        let numbers = history(&fleet, 2)?;
        ensure!(numbers.current.first() == Some(&(3 + 2 * round)), "{numbers:?}");
        ensure!(numbers.before_fleet.first() == Some(&number), "{numbers:?}");
        let others = history(&fleet, 1)?;
        ensure!(others.current == numbers.current, "{others:?} {numbers:?}");
        ensure!(exported(&fleet, 2)? == exported(&fleet, 1)?);
        wait_for_whole(&fleet, 2, &[0, 1, 2])?;
        wait_until_well(&fleet, 0..3)?;
    }
    traffic.finish(None)
}

/// The configuration in force, without the line of its number.
fn exported(fleet: &FleetFixture, balancer: usize) -> Result<String> {
    let text = fleet.spillway(balancer, &["export"])?;
    let (_, configuration) = text.split_once('\n').context("no line")?;
    Ok(configuration.to_owned())
}

/// Numbers of generations, the newest first.
#[derive(Debug)]
struct Numbers {
    current: Vec<u64>,
    before_fleet: Vec<u64>,
    last: Generation,
}

fn history(fleet: &FleetFixture, balancer: usize) -> Result<Numbers> {
    let listed: History = fleet.balancers[balancer].printed(&["history"])?;
    let (before, current): (Vec<_>, Vec<_>) =
        listed.generations.iter().partition(|it| it.before_fleet);
    let numbers = |generations: Vec<&Generation>| generations.iter().map(|it| it.number).collect();
    let last = (*current.first().context("no generation")?).clone();
    Ok(Numbers { current: numbers(current), before_fleet: numbers(before), last })
}

/// A host that has nothing takes the name of one that is gone: what that one owned has one owner all the time.
pub(super) fn name_taken_over(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = joined_as(sandbox, "taken", THREE)?;
    // Without a portion a balancer sends connections elsewhere, and what it alone knows of them goes with its host.
    wait_for_whole(&fleet, 2, &[0, 1, 2])?;
    let traffic = Traffic::start(&fleet)?;
    fleet.fabric.take_out(2)?;
    fleet.power_off(2)?;
    let state = &fleet.balancers[2].state;
    fs::remove_dir_all(state).and_then(|()| fs::create_dir(state)).context("a new disk")?;
    until("the lease ends", PATIENCE, || {
        Ok((!member(&status(&fleet, 0)?, "lb-3")?.alive).then_some(()))
    })?;
    fleet.power_on(2)?;
    fleet.spillway(2, &["fleet", "join", "--yes"])?;
    // Until it is forgotten it owns nothing, and says so. On a slow host that may be over by now.
    let is_forgotten = |status: &FleetStatus| status.epoch == 1 && !status.epoch_open;
    let early = status(&fleet, 0)?;
    ensure!(early.member, "{early:#?}");
    ensure!(is_forgotten(&early) || !member(&early, "lb-3")?.ready, "{early:#?}");
    until("it says what it waits for", PATIENCE, || {
        let status = status(&fleet, 0)?;
        let cause = &member(&status, "lb-3")?.not_ready_cause;
        let says_so = cause.contains("its ledger is an old copy");
        Ok((says_so || is_forgotten(&status)).then_some(()))
    })?;
    until("it is forgotten", PATIENCE, || Ok(is_forgotten(&status(&fleet, 0)?).then_some(())))?;
    wait_for_whole(&fleet, 0, &[0, 1, 2])?;
    wait_until_well(&fleet, 0..3)?;
    until("it is ready", PATIENCE, || {
        Ok((member(&status(&fleet, 0)?, "lb-3")?.ready).then_some(()))
    })?;
    fleet.fabric.put_back(2)?;
    traffic.finish(None)
}

/// Of two changes at the same time one wins; the other is refused and has changed nothing.
pub(super) fn pairs(sandbox: &Sandbox) -> Result<()> {
    const PAIRS: u64 = 25;
    let fleet = joined_as(sandbox, "pairs", FleetPlan { etcd: 3, ..THREE })?;
    let text = text(&fleet)?;
    let apply =
        |balancer: usize, weight: u64, generation: u64, barrier: &Barrier| -> Result<Output> {
            let text = text.replacen("weight = 1", &format!("weight = {weight}"), 1);
            let expected = format!("--expect-generation={generation}");
            barrier.wait();
            fleet.balancers[balancer]
                .try_cli(&["apply", "--yes", "-f", "-", &expected], Some(&text))
        };
    let mut won = [0; 2];
    for pair in 0..PAIRS {
        let generation = 1 + pair;
        let weights = [2 + 2 * pair, 3 + 2 * pair];
        let barrier = Barrier::new(2);
        let outputs = thread::scope(|scope| {
            let each = [0, 1].map(|n| {
                let (apply, barrier, weight) = (&apply, &barrier, weights[n]);
                scope.spawn(move || apply(n, weight, generation, barrier))
            });
            each.map(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let [first, second] = outputs;
        let outputs = [first?, second?];
        let codes = [0, 1].map(|n| outputs[n].status.code());
        let winner = match codes {
            [Some(0), Some(CONFLICT)] => 0,
            [Some(CONFLICT), Some(0)] => 1,
            _ => anyhow::bail!("pair {pair}: {outputs:?}"),
        };
        won[winner] += 1;
        let said = String::from_utf8_lossy(&outputs[1 - winner].stderr);
        ensure!(said.contains(&format!("generation {}", generation + 1)), "{said}");
        wait_in_force(&fleet, 2, generation + 1)?;
        let export = fleet.spillway(2, &["export"])?;
        let has = |weight: u64| export.contains(&format!("weight = {weight}\n"));
        ensure!(has(weights[winner]) && !has(weights[1 - winner]), "pair {pair}: {export}");
    }
    harness::note(format!("of {PAIRS} pairs the balancers won {won:?}"));
    Ok(())
}

/// Daemons that die while they change something leave a fleet of which all have the same in force.
pub(super) fn killed(sandbox: &Sandbox) -> Result<()> {
    const KILLS: u64 = 8;
    let mut fleet = joined_as(sandbox, "killed", THREE)?;
    let text = text(&fleet)?;
    let traffic = Traffic::start(&fleet)?;
    let mut random = Random::new(20);
    let (mut answered, mut committed) = (0, 0);
    // Follows how long a change takes here, so that some kills come before it is made and some after.
    let mut span = 40;
    for kill in 0..KILLS {
        let balancer = (kill % 3) as usize;
        let before = status(&fleet, (balancer + 1) % 3)?.generation;
        let text = text.replacen("weight = 1", &format!("weight = {}", 2 + kill), 1);
        let mut command = fleet.balancers[balancer].command(&["apply", "--yes", "-f", "-"]);
        let file = fleet.balancers[balancer].node().directory().join("killed.toml");
        fs::write(&file, text)?;
        command.stdin(fs::File::open(&file)?);
        let apply = thread::spawn(move || command.output());
        pause(Duration::from_millis(2 + random.below(span)));
        fleet.balancers[balancer].kill()?;
        let output = apply.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        answered += u64::from(output.status.success());
        fleet.balancers[balancer].start()?;
        let now = wait_for_agreement(&fleet)?;
        committed += u64::from(now != before);
        span = if now == before { span * 2 } else { (span / 2).max(10) };
        ensure!(!output.status.success() || now != before, "an answered change is lost");
    }
    harness::note(format!("of {KILLS} changes {answered} were answered, {committed} were made"));
    // Seldom enough that all of them were too early or too late.
    ensure!(committed > 0, "no kill came after the commit");
    for at in 0..3 {
        wait_for_whole(&fleet, at, &[0, 1, 2])?;
    }
    wait_until_well(&fleet, 0..3)?;
    traffic.finish(None)
}

/// Waits until all have the generation of etcd in force, with equal tables, and answers which.
fn wait_for_agreement(fleet: &FleetFixture) -> Result<u64> {
    until("all agree", PATIENCE, || {
        let mut agreed = BTreeSet::new();
        for at in 0..fleet.balancers.len() {
            let status = status(fleet, at)?;
            let generation = status.generation;
            if generation == 0 || status.members.len() != fleet.balancers.len() {
                return Ok(None);
            }
            for member in status.members {
                if !member.ready || member.generation != generation {
                    return Ok(None);
                }
                agreed.insert((generation, member.tables));
            }
        }
        Ok(agreed.first().filter(|_| agreed.len() == 1).map(|(generation, _)| *generation))
    })
    .with_context(|| format!("{:#?}", status(fleet, 0)))
}

/// Connections from before a change find their backend through a balancer that joins after it.
pub(super) fn joins_after_a_change(sandbox: &Sandbox) -> Result<()> {
    const CONNECTIONS: usize = 500;
    const PORT: u16 = 8080;
    let plan = FleetPlan { balancers: 4, ..THREE };
    let mut fleet = FleetFixture::start(sandbox, "fourth", plan)?;
    fleet.fabric.take_out(3)?;
    let nodes = fleet.fabric.backends.iter().map(|backend| &backend.node);
    let _servers = LongConnectionServer::start(nodes, PORT)?;
    let vip = Tunnel::Ipip.endpoint(PORT);
    let service = format!(
        "[[service]]\nname = \"long\"\naddress = \"{}\"\nport = {PORT}\nprotocol = \"tcp\"\npool = \"v4\"\n",
        vip.ip()
    );
    // No connection is to be sent elsewhere for want of room.
    let text = fleet.configuration_with(Health::DEFAULT, "1000000/s", None)?;
    fleet.balancers[0].apply(&(text + &service))?;
    for balancer in 0..3 {
        fleet.spillway(balancer, &["fleet", "join", "--yes"])?;
    }
    let all = fleet.fabric.backends.iter();
    let all: Vec<_> = all.flat_map(|it| [std::net::IpAddr::from(it.v4), it.v6.into()]).collect();
    for balancer in &fleet.balancers[..3] {
        balancer.wait_up(&all, PATIENCE)?;
    }
    wait_for_whole(&fleet, 0, &[0, 1, 2])?;
    let client = &fleet.fabric.client;
    let connections = &mut LongConnections::new(client)?;
    for _ in 0..10 {
        connections.open(vip, CONNECTIONS / 10)?;
    }
    let traffic = Traffic::start(&fleet)?;

    // 50 % of the slots become 20 %.
    let loser = fleet.fabric.backends[0].clone();
    let gainer = fleet.fabric.backends[1].v4.to_string();
    let on_loser =
        connections.connections().iter().filter(|it| it.backend() == loser.name()).count();
    let backends = || connections.connections().iter().map(|it| it.backend().to_owned());
    let by_backend: BTreeMap<_, _> =
        backends().map(|name| (backends().filter(|it| *it == name).count(), name)).collect();
    ensure!(
        on_loser * 10 > CONNECTIONS * 4,
        "{on_loser} of {CONNECTIONS} are on {}: {by_backend:?}",
        loser.name()
    );
    fleet.spillway(0, &reweigh(&gainer, "4"))?;
    let changed = Instant::now();
    // What the figure says: other balancers have forgotten nothing by then.
    pause(Duration::from_secs(5));
    fleet.spillway(3, &["fleet", "join", "--yes"])?;
    wait_in_force(&fleet, 3, 2)?;
    harness::note(format!(
        "the fourth balancer is ready {:.1?} after the change",
        changed.elapsed()
    ));
    // Ready to take traffic: it refuses no connection for want of a portion.
    let given = portions(&status(&fleet, 3)?)?;
    ensure!(given.get("lb-4").is_some_and(|it| *it > 0.05), "{given:?}");
    fleet.balancers[3].wait_up(&all, PATIENCE)?;
    let before = fleet.balancers[3].packets("transmitted")?;
    fleet.fabric.put_back(3)?;
    (0..3).try_for_each(|balancer| fleet.fabric.take_out(balancer))?;
    connections.all_go_on(&[])?;
    let through = fleet.balancers[3].packets("transmitted")? - before;
    ensure!(through > CONNECTIONS as u64, "{through} packets came to the fourth balancer");
    harness::note(format!(
        "{on_loser} of {CONNECTIONS} connections had another home; 0 are broken"
    ));
    traffic.finish(None)
}
