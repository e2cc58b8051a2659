//! Every verb of objects on the command line, with right and with wrong input, against the real daemon.

mod asked;
mod drain;
mod edit;
mod formats;

use anyhow::{Context as _, Result, bail, ensure};
use lb_e2e::harness::Case;
use lb_e2e::transcript;
use lb_tests::daemon::{Balancer, Binaries};
use lb_tests::sandbox::Sandbox;
use lb_tests::topology::{Fabric, REGIONS};
use spillway_proto::v1::WhenFull;

const DOCUMENT: &str = include_str!("../../../../docs/cli.md");
const MISTAKES: &str = include_str!("mistakes.md");

/// What the mistakes are made with.
const CONFIGURATION: &str = r#"
hash_key = "00112233445566778899aabbccddeeff"

[[region]]
name = "eu"

[[region]]
name = "us"

[[region]]
name = "void"

[[health_check]]
name = "page"
port = 80
http = {}

[[pool]]
name = "web"
health_checks = ["page"]
[[pool.backend]]
address = "10.1.0.11"
region = "eu"
[[pool.backend]]
address = "10.2.0.11"
region = "us"

[[pool]]
name = "dns"
encapsulation = "gue"
gue_port = 6081
[[pool.backend]]
address = "10.1.0.11"
region = "eu"

[[service]]
name = "web"
address = "203.0.113.1"
port = 80
protocol = "tcp"
pool = "web"
"#;

pub(crate) const CASES: &[Case] = &[
    Case::waits("the_document_shows_what_happens", document),
    Case::waits("each_command_prints_the_same_as_json_and_as_yaml", formats::agree),
    Case::waits("every_mistake_is_reported_and_changes_nothing", mistakes),
    Case::waits("several_balancers_want_a_hash_key_and_slots_and_are_offered_them", several),
    Case::waits("on_a_terminal_the_user_may_take_time_to_agree", asked::on_a_terminal),
    Case::waits("a_draft_is_kept_where_it_cannot_be_applied", edit::kept),
    Case::waits("an_edit_that_comes_second_changes_nothing", edit::overtaken),
    Case::waits("a_drained_backend_keeps_what_it_has_and_gets_nothing_new", drain::with_traffic),
];

/// A balancer with nothing behind it: no packet comes.
pub(crate) fn balancer(sandbox: &Sandbox, name: &str) -> Result<(Fabric, Balancer)> {
    let fabric = Fabric::new(sandbox, name, 1)?;
    fabric.net.ready()?;
    let balancer = Balancer::started(sandbox, &Binaries::find()?, &fabric.balancer, REGIONS[0])?;
    Ok((fabric, balancer))
}

/// Takes the steps of a transcript, all of them, and says what was not as it says.
fn take(balancer: &Balancer, steps: &[transcript::Step]) -> Result<()> {
    ensure!(!steps.is_empty(), "a transcript without a step");
    let take = |step: &transcript::Step| step.run(&mut balancer.shell(&step.command)).err();
    let wrong: Vec<_> = steps.iter().filter_map(take).map(|error| format!("{error:#}")).collect();
    ensure!(wrong.is_empty(), "{} of {} steps:\n{}", wrong.len(), steps.len(), wrong.join("\n"));
    Ok(())
}

fn document(sandbox: &Sandbox) -> Result<()> {
    let (_fabric, balancer) = balancer(sandbox, "document")?;
    take(&balancer, &transcript::of_document(DOCUMENT))?;
    let (_, exported) = balancer.client()?.export()?;
    let names: Vec<_> = exported.regions.iter().map(|region| &*region.name).collect();
    ensure!(names == ["eu", "us"], "{exported:#?}");
    let [service] = &*exported.services else { bail!("{exported:#?}") };
    ensure!((&*service.name, service.port) == ("web", 8080), "{service:#?}");
    ensure!(service.when_full() == WhenFull::Reject, "{service:#?}");
    let pool = exported.pools.first().context("no pool")?;
    let backends = pool.backends.iter();
    let weights: Vec<_> = backends.map(|it| (&*it.address, it.weight)).collect();
    let wanted = [("10.1.0.11", Some(1)), ("10.1.0.12", Some(4)), ("10.2.0.11", Some(1))];
    ensure!(weights == wanted, "{pool:#?}");
    let [group] = &*pool.groups else { bail!("{pool:#?}") };
    let limits = (group.capacity_per_second, group.scaler);
    ensure!((&*group.region, limits) == ("eu", (Some(10_000.0), Some(0.5))), "{group:#?}");
    Ok(())
}

fn several(sandbox: &Sandbox) -> Result<()> {
    let (_fabric, balancer) = balancer(sandbox, "key")?;
    let without = CONFIGURATION.replace("hash_key = \"00112233445566778899aabbccddeeff\"", "");
    balancer.apply(&without)?;
    let exported = balancer.cli(&["export"])?;
    let key = exported.lines().find(|line| line.starts_with("hash_key = ")).context("no key")?;
    let own = key.trim_start_matches("hash_key = ");
    let several = format!("balancers = 2\n{without}");
    let refused = balancer.try_cli(&["apply", "-f", "-"], Some(&several))?;
    let said = String::from_utf8_lossy(&refused.stderr);
    let expected = format!(
        "error: hash_key: 2 balancers need one key to choose the same backends, and none is set\n\
         hint: set hash_key in the configuration of all of them; with {own}, which this daemon has in force, \
         none of its connections moves\n"
    );
    ensure!((refused.status.code(), &*said) == (Some(6), &*expected), "{refused:?}");
    ensure!(balancer.cli(&["export"])? == exported, "it changed something");
    let given = format!("{key}\n{several}");
    let refused = balancer.try_cli(&["apply", "-f", "-"], Some(&given))?;
    let said = String::from_utf8_lossy(&refused.stderr);
    let expected = "error: standard input: line 20, column 1: pools[0] \"web\": slots: must be a number, the same on all 2 balancers; 1 more pool has none\n\
        hint: set slots = 1009 in pool web, slots = 1009 in pool dns, in the configuration of all balancers: this one has \
        these numbers in force, or would choose them; `spillway export` prints all that are in force\n";
    ensure!((refused.status.code(), &*said) == (Some(6), expected), "{refused:?}");
    ensure!(balancer.cli(&["export"])? == exported, "it changed something");
    let given = given.replace("[[pool]]\n", "[[pool]]\nslots = 1009\n");
    let dry = balancer.try_cli(&["apply", "--dry-run", "-f", "-"], Some(&given))?;
    let said = String::from_utf8_lossy(&dry.stdout);
    ensure!(said.contains("open connections: none move\n"), "{dry:?}");
    balancer.apply(&given).map(drop)
}

fn mistakes(sandbox: &Sandbox) -> Result<()> {
    let (_fabric, balancer) = balancer(sandbox, "mistakes")?;
    balancer.apply(CONFIGURATION)?;
    let before = balancer.client()?.export()?;
    let steps = transcript::of_document(MISTAKES);
    for step in &steps {
        ensure!(step.status != 0 && step.stdout.is_empty(), "{step:?} is no mistake");
    }
    take(&balancer, &steps)?;
    ensure!(balancer.client()?.export()? == before, "a mistake changed something");
    Ok(())
}
