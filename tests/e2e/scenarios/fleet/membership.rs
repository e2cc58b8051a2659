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
use lb_tests::{
    fixture::{FleetFixture, FleetPlan, Health, Tunnel},
    harness,
    process::{PATIENCE, pause, until},
    random::Random,
    sandbox::Sandbox,
    topology::Cut,
    traffic::{LongConnectionServer, LongConnections},
};
use serde_json::Value;

use super::calls::{
    CONFLICT, NOT_FOUND, USAGE, WHOLE, condition, ensure_refused, joined_as, portions, reweigh,
    text, wait_for_condition, wait_for_whole, wait_until_well,
};
use super::members::{status, wait_in_force};
use super::traffic::Traffic;

const THREE: FleetPlan = FleetPlan { balancers: 3, etcd: 1, ..FleetPlan::FLEET };

/// What is wrong is said in a sentence, and nothing changes.
pub(super) fn wrong_joins(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = FleetFixture::prepare(sandbox, "wrong", THREE)?;
    // One whose settings name no fleet.
    fleet.balancers[2].write_settings("")?;
    for balancer in &mut fleet.balancers {
        balancer.spawn()?;
    }
    for balancer in &mut fleet.balancers {
        balancer.wait_until_it_answers()?;
    }
    let text = text(&fleet)?;
    fleet.balancers[0].apply(&text)?;
    let is_member = |fleet: &FleetFixture, balancer| -> Result<bool> {
        Ok(status(fleet, balancer)?["member"] == true)
    };
    ensure!(!is_member(&fleet, 0)?, "a balancer is a member by itself");
    for verb in [
        &["leave", "--yes"][..],
        &["remove", "lb-2", "--yes"],
        &["restore", "--from=this", "--yes"],
    ] {
        let words = [&["fleet"], verb].concat();
        ensure_refused(
            &fleet,
            0,
            &words,
            (CONFLICT, &["no member of a fleet", "spillway fleet join"]),
        )?;
    }
    let founded = fleet.spillway(0, &["fleet", "join"])?;
    ensure!(founded.contains("founded fleet edge"), "{founded}");
    ensure_refused(
        &fleet,
        0,
        &["fleet", "join"],
        (CONFLICT, &["is a member of fleet edge already"]),
    )?;

    // The last one leaves, and joins again: the capacities are its own still.
    fleet.spillway(0, &["fleet", "leave", "--yes"])?;
    fleet.spillway(0, &["fleet", "join", "--yes"])?;
    wait_for_whole(&fleet, 0, &[0])?;

    // What is wrong with the settings is seen before anybody hears of it.
    for (wrong, words) in wrong_settings(&fleet)? {
        fleet.balancers[2].write_settings(&wrong)?;
        fleet.balancers[2].stop()?;
        fleet.balancers[2].start()?;
        for argument in ["--dry-run", "--yes"] {
            let output = fleet.balancers[2].try_cli(&["fleet", "join", argument], None)?;
            let said = String::from_utf8_lossy(&output.stderr);
            let has_words = said.contains(words) && said.contains("nothing was changed");
            ensure!(!output.status.success() && has_words, "{words}: {said}");
        }
        ensure!(!is_member(&fleet, 2)?);
    }
    let members = fleet.etcd.as_ref().context("there is no etcd")?;
    let members = members.ask(&["get", "--prefix", "--keys-only", "/spillway/edge/members/lb"])?;
    ensure!(members.trim() == "/spillway/edge/members/lb-1", "{members}");

    // A misspelled fleet is not founded beside the one that is there, unless that is meant.
    let table = fleet.fleet_table(2)?.replace("\"edge\"", "\"egde\"");
    fleet.balancers[2].write_settings(&table)?;
    fleet.balancers[2].stop()?;
    fleet.balancers[2].start()?;
    let words = ["etcd has no fleet egde, but it has edge", "--new"];
    for arguments in [&["--yes"][..], &["--dry-run"], &[]] {
        ensure_refused(&fleet, 2, &[&["fleet", "join"], arguments].concat(), (CONFLICT, &words))?;
    }
    ensure!(!is_member(&fleet, 2)?);
    fleet.spillway(2, &["fleet", "join", "--new"])?;
    ensure!(is_member(&fleet, 2)?);
    fleet.spillway(2, &["fleet", "leave", "--yes"])?;
    fleet.balancers[2].write_settings("")?;
    fleet.balancers[2].stop()?;
    fleet.balancers[2].start()?;

    let command = ["fleet", "join", "--yes"];
    ensure_refused(&fleet, 2, &command, (CONFLICT, &["the settings name no fleet", "[fleet]"]))?;

    // The name of a balancer that is alive.
    let table = fleet.fleet_table(0)?.replace("10.0.1.2:", "10.0.3.2:");
    fleet.balancers[2].write_settings(&table)?;
    fleet.balancers[2].stop()?;
    fleet.balancers[2].start()?;
    let words = ["lb-1 is a member of the fleet, and alive, at 10.0.1.2:7946"];
    ensure_refused(&fleet, 2, &command, (CONFLICT, &words))?;
    ensure!(!is_member(&fleet, 2)?);

    // Another configuration.
    let other = text.replacen("weight = 1", "weight = 7", 1);
    ensure!(other != text);
    fleet.balancers[1].apply(&other)?;
    let before = fleet.spillway(1, &["export"])?;
    let dry_run = fleet.spillway(1, &["fleet", "join", "--dry-run"])?;
    ensure!(dry_run.contains("weight") && dry_run.contains("dry run"), "{dry_run}");
    let words = ["the configuration of fleet edge would replace that of lb-2: ", "--yes"];
    ensure_refused(&fleet, 1, &["fleet", "join"], (USAGE, &words))?;
    ensure!(!is_member(&fleet, 1)? && fleet.spillway(1, &["export"])? == before);
    let members = status(&fleet, 0)?["balancers"].as_array().map(Vec::len);
    ensure!(members == Some(1), "{members:?} members");

    fleet.spillway(1, &command)?;
    ensure!(is_member(&fleet, 1)? && fleet.spillway(1, &["export"])? != before);
    ensure_refused(
        &fleet,
        0,
        &["fleet", "remove", "lb-2", "--yes"],
        (CONFLICT, &["lb-2 is alive"]),
    )?;
    ensure_refused(&fleet, 0, &["fleet", "remove", "lb-9", "--yes"], (NOT_FOUND, &["lb-9"]))?;
    ensure_refused(&fleet, 0, &["fleet", "remove", "lb-1", "--yes"], (USAGE, &["fleet leave"]))?;

    // What a fleet cannot have.
    let shares = format!("balancers = 2\n{text}");
    let output = fleet.balancers[0].try_cli(&["apply", "--yes", "-f", "-"], Some(&shares))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code() == Some(6) && said.contains("balancers: must not be set"),
        "{output:?}"
    );
    wait_for_whole(&fleet, 0, &[0, 1])
}

/// Tables of the third balancer with a mistake, and what is said of each.
fn wrong_settings(fleet: &FleetFixture) -> Result<Vec<(String, &'static str)>> {
    let table = fleet.fleet_table(2)?;
    let other = fleet.fleet_table(0)?;
    let line = |table: &str, setting: &str| {
        let line = table.lines().find(|line| line.starts_with(setting));
        line.map(str::to_owned).with_context(|| format!("no {setting}: {table}"))
    };
    let replaced = |with: &[&str]| -> Result<String> {
        with.iter().try_fold(table.clone(), |table, setting| {
            Ok(table.replace(&line(&table, setting)?, &line(&other, setting)?))
        })
    };
    let etcd = line(&table, "etcd")?;
    let address = line(&table, "address")?;
    let port = "etcd = [\"https://10.0.9.2:1\"]";
    Ok(vec![
        (
            replaced(&["tls-cert", "tls-key"])?,
            "the certificate is of lb-1, but this balancer is lb-3",
        ),
        (replaced(&["tls-key"])?, "lb-3"),
        (
            replaced(&["address"])?,
            "10.0.1.2:7946: this host cannot listen for the other balancers there",
        ),
        (
            table.replace(&address, "address = \"127.0.0.1:7946\""),
            "127.0.0.1:7946: lb-1 cannot reach this host there",
        ),
        (table.replace(&etcd, port), "(etcd in the settings: https://10.0.9.2:1)"),
    ])
}

/// Traffic to a balancer that has no portions because no other one can reach it would be refused, so it is not ready.
pub(super) fn unreached(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = FleetFixture::prepare(sandbox, "unreached", THREE)?;
    for balancer in &mut fleet.balancers {
        balancer.spawn()?;
    }
    for balancer in &mut fleet.balancers {
        balancer.wait_until_it_answers()?;
    }
    fleet.balancers[0].apply(&text(&fleet)?)?;
    for balancer in 0..2 {
        fleet.spillway(balancer, &["fleet", "join", "--yes"])?;
    }
    wait_for_whole(&fleet, 0, &[0, 1])?;
    fleet.fabric.cut(2, Cut::FromPeers)?;
    fleet.spillway(2, &["fleet", "join", "--yes"])?;
    // Longer than anything waits for portions.
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(12) {
        let own = status(&fleet, 2)?;
        ensure!(own["balancers"][2]["ready"] == false, "{own:#}");
        let sum: f64 = portions(&status(&fleet, 0)?)?.values().sum();
        ensure!(sum > 2.0 - WHOLE && sum <= WHOLE, "{sum} of a capacity is owned");
        pause(Duration::from_millis(200));
    }
    let own = status(&fleet, 2)?;
    let cause = own["balancers"][2]["not_ready_cause"].as_str().unwrap_or_default();
    ensure!(cause.contains("no other balancer exchanges messages with it"), "{cause}");
    let problems = own["problems"].as_array().context("no problems")?;
    let silent = problems.iter().filter(|it| it["reason"] == "silent");
    ensure!(silent.count() == 2, "{problems:#?}");
    ensure_refused(&fleet, 2, &["fleet", "status", "--check"], (1, &["10.0.3.2:7946"]))?;
    let seen = status(&fleet, 0)?;
    let said = seen["balancers"][2]["peer_problem"].as_str().unwrap_or_default();
    ensure!(said.contains("10.0.3.2:7946"), "{seen:#}");

    fleet.fabric.heal(2)?;
    wait_for_whole(&fleet, 0, &[0, 1, 2])?;
    until("it is ready", PATIENCE, || {
        Ok((status(&fleet, 2)?["balancers"][2]["ready"] == true).then_some(()))
    })
}

/// A balancer leaves, is independent, and joins again.
pub(super) fn leave_and_join_again(sandbox: &Sandbox) -> Result<()> {
    let fleet = joined_as(sandbox, "leaves", THREE)?;
    let backend = fleet.fabric.backends[0].v4.to_string();
    let traffic = Traffic::start(&fleet)?;
    for round in 0..2 {
        wait_for_whole(&fleet, 0, &[0, 1, 2])?;
        let output = fleet.spillway(2, &["fleet", "leave", "--dry-run"])?;
        ensure!(output.contains("would leave fleet edge"), "{output}");
        ensure!(status(&fleet, 2)?["member"] == true);

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
        ensure!(seen["balancers"].as_array().map(Vec::len) == Some(2), "{seen:#}");
        traffic.goes_on()?;

        // It is independent, with what it had.
        let own = status(&fleet, 2)?;
        ensure!(own["member"] == false, "{own:#}");
        ensure!(condition(&fleet, 2, "etcd")?.is_none());
        let text = fleet.spillway(2, &["export"])?;
        ensure!(text == fleet.spillway(0, &["export"])?, "it did not keep the configuration");
        fleet.spillway(0, &["backend", "update", &backend, "--pool", "v4", "--weight", "2"])?;
        ensure!(fleet.spillway(2, &["export"])? == text, "it follows the fleet still");
        let changed = text.replacen("slots = 1009", "slots = 1013", 1);
        ensure!(changed != text, "{text}");
        fleet.balancers[2].apply(&changed)?;
        let drained = fleet.spillway(2, &["backend", "drain", &backend, "--yes"])?;
        ensure!(!drained.contains("lb-1"), "{drained}");
        ensure!(
            fleet.balancers[0].ask(&["override", "list"])?["overrides"] == Value::Array(vec![])
        );
        fleet.spillway(2, &["backend", "undrain", &backend])?;

        fleet.spillway(2, &["fleet", "join", "--yes"])?;
        fleet.spillway(0, &["backend", "update", &backend, "--pool", "v4", "--weight", "1"])?;
        wait_in_force(&fleet, 2, 3 + 2 * round)?;
        ensure!(fleet.spillway(2, &["export"])? == fleet.spillway(1, &["export"])?);
        wait_for_whole(&fleet, 2, &[0, 1, 2])?;
        wait_until_well(&fleet, 0..3)?;
    }
    traffic.finish(None)
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
        Ok((status(&fleet, 0)?["balancers"][2]["alive"] == false).then_some(()))
    })?;
    fleet.power_on(2)?;
    fleet.spillway(2, &["fleet", "join", "--yes"])?;
    // Until it is forgotten it owns nothing, and says so.
    let early = status(&fleet, 0)?;
    ensure!(early["epoch"] == 0 && early["balancers"][2]["ready"] == false, "{early:#}");
    until("it says what it waits for", PATIENCE, || {
        let status = status(&fleet, 0)?;
        let cause = status["balancers"][2]["not_ready_cause"].as_str().unwrap_or_default();
        Ok(cause.contains("its ledger is an old copy").then_some(()))
    })?;
    until("it is forgotten", PATIENCE, || {
        let status = status(&fleet, 0)?;
        Ok((status["epoch"] == 1 && status["epoch_open"] == false).then_some(()))
    })?;
    wait_for_whole(&fleet, 0, &[0, 1, 2])?;
    wait_until_well(&fleet, 0..3)?;
    until("it is ready", PATIENCE, || {
        Ok((status(&fleet, 0)?["balancers"][2]["ready"] == true).then_some(()))
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
    for kill in 0..KILLS {
        let balancer = (kill % 3) as usize;
        let before = status(&fleet, (balancer + 1) % 3)?["generation"].as_u64();
        let text = text.replacen("weight = 1", &format!("weight = {}", 2 + kill), 1);
        let mut command = fleet.balancers[balancer].command(&["apply", "--yes", "-f", "-"]);
        let file = fleet.balancers[balancer].node().directory().join("killed.toml");
        fs::write(&file, text)?;
        command.stdin(fs::File::open(&file)?);
        let apply = thread::spawn(move || command.output());
        pause(Duration::from_millis(2 + random.below(40)));
        fleet.balancers[balancer].kill()?;
        let output = apply.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        answered += u64::from(output.status.success());
        fleet.balancers[balancer].start()?;
        let now = wait_for_agreement(&fleet)?;
        committed += u64::from(Some(now) != before);
        ensure!(!output.status.success() || Some(now) != before, "an answered change is lost");
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
            let Some(generation) = status["generation"].as_u64() else { return Ok(None) };
            let members = status["balancers"].as_array().cloned().unwrap_or_default();
            if members.len() != fleet.balancers.len() {
                return Ok(None);
            }
            for member in members {
                if member["ready"] != true || member["generation"] != generation {
                    return Ok(None);
                }
                agreed.insert((generation, member["tables"].to_string()));
            }
        }
        Ok(agreed.first().filter(|_| agreed.len() == 1).map(|(generation, _)| *generation))
    })
    .with_context(|| format!("{:#}", status(fleet, 0).unwrap_or_default()))
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

/// A member whose key was deleted has no portions: it says so, is not ready after a restart, and can leave and join again.
pub(super) fn unknown_to_etcd(sandbox: &Sandbox) -> Result<()> {
    let mut fleet = joined_as(sandbox, "unknown", THREE)?;
    let etcd = fleet.etcd.as_ref().context("there is no etcd")?;
    let deleted = etcd.ask(&["del", "/spillway/edge/members/lb-3"])?;
    ensure!(deleted.trim() == "1", "{deleted}");
    let words = "does not have this balancer among the members";
    wait_for_condition(&fleet, 2, ("fleet membership", words))?;
    fleet.balancers[2].kill()?;
    fleet.balancers[2].start()?;
    wait_for_condition(&fleet, 2, ("fleet membership", words))?;
    let ready = || -> Result<bool> {
        let seen = status(&fleet, 2)?;
        let own =
            seen["balancers"].as_array().into_iter().flatten().find(|it| it["name"] == "lb-3");
        Ok(own.is_some_and(|it| it["ready"] == true))
    };
    ensure!(!ready()?, "{:#}", status(&fleet, 2)?);
    // It changes nothing, and each answer says what to do.
    let backend = fleet.fabric.backends[0].v4.to_string();
    let says = [words, "`spillway fleet leave`, and join again"];
    ensure_refused(&fleet, 2, &reweigh(&backend, "3"), (CONFLICT, &says))?;
    ensure_refused(&fleet, 2, &["backend", "drain", &backend, "--yes"], (CONFLICT, &says))?;
    ensure_refused(&fleet, 2, &["fleet", "join", "--yes"], (CONFLICT, &says))?;
    let check = ["fleet", "status", "--check"];
    ensure_refused(&fleet, 2, &check, (1, &["the fleet has removed lb-3", says[1]]))?;
    ensure!(status(&fleet, 0)?["generation"] == 1, "it was changed");
    fleet.spillway(2, &["fleet", "leave", "--yes"])?;
    ensure!(condition(&fleet, 2, "fleet membership")?.is_none(), "the condition stays");
    fleet.spillway(2, &["fleet", "join", "--yes"])?;
    wait_in_force(&fleet, 2, 1)?;
    Ok(())
}
