//! Two clients, each a request after the other, and the moment a node is switched off.

use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use lb_tests::process::pause;
use lb_tests::topology::Node;
use lb_tests::traffic::{Curl, Timed};

use super::setup::Setup;
use super::{NGINX, Options, PAUSE};
use crate::shared::{Screen, Watch};

/// The node that is switched off.
const VICTIM: usize = 1;
/// The two ways, in the order of [`Record::answers`].
pub(crate) const WAYS: [&str; 2] = ["nginx", "Spillway"];

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) begun: Instant,
    pub(crate) timed: Timed,
}

/// What was seen.
#[derive(Debug)]
pub(crate) struct Record {
    /// By the proxy, and by Spillway.
    pub(crate) answers: [Vec<Answer>; 2],
    pub(crate) victim: String,
    pub(crate) switched_off: Instant,
    /// The balancer had taken the node out.
    pub(crate) detected: Instant,
}

/// Has both ask until the end.
pub(crate) fn ask(setup: &Setup, options: &Options, screen: &mut Screen) -> Result<Record> {
    screen.heading("Two clients, side by side");
    let urls = [Setup::proxied(), Setup::balanced()];
    let gap = options.scaled(PAUSE);
    for url in &urls {
        let command = format!("curl -w '%{{http_code}} %{{time_total}}' {url}");
        screen.command("client", &format!("{command} # {} times", options.requests));
    }
    let watch = Watch::start(&setup.balancer)?;
    let (sender, answers) = channel();
    for (way, url) in urls.into_iter().enumerate() {
        let (client, sender, requests) =
            (setup.fabric.client.clone(), sender.clone(), options.requests);
        std::thread::spawn(move || client_of(way, &client, &url, requests, gap, &sender));
    }
    drop(sender);

    let mut all: [Vec<Answer>; 2] = Default::default();
    let mut off = None;
    for (way, answer) in answers {
        let answer: Answer = answer?;
        let number = all[way].len() + 1;
        if answer.timed.seconds > 0.5 || number.is_multiple_of(options.requests.div_ceil(4)) {
            let Timed { seconds, status, page } = &answer.timed;
            screen.done(&format!(
                "{}: request {number} took {seconds:.3} s: {status}, {page}",
                WAYS[way]
            ));
        }
        all[way].push(answer);
        if off.is_none() && all.iter().all(|answers| answers.len() >= options.before()) {
            off = Some(switch_off(setup, &watch, screen)?);
        }
    }
    let (switched_off, detected) =
        off.context("a client gave up before the node was switched off")?;
    if all.iter().any(|answers| answers.len() < options.requests) {
        bail!("a client gave up");
    }
    let victim = setup.fabric.backends[VICTIM].name().to_owned();
    Ok(Record { answers: all, victim, switched_off, detected })
}

fn client_of(
    way: usize,
    node: &Node,
    url: &str,
    requests: usize,
    gap: Duration,
    sender: &Sender<(usize, Result<Answer>)>,
) {
    let curl = Curl::new(node);
    for _ in 0..requests {
        let begun = Instant::now();
        // Whatever nginx waits for, and half as much again.
        let timed = curl.timed(url, NGINX.0.mul_f64(1.5));
        let failed = timed.is_err();
        let gone = sender.send((way, timed.map(|timed| Answer { begun, timed }))).is_err();
        if failed || gone {
            return;
        }
        pause(gap);
    }
}

/// Takes the node off the network; returns when that was, and when the balancer had noticed.
fn switch_off(setup: &Setup, watch: &Watch, screen: &mut Screen) -> Result<(Instant, Instant)> {
    let victim = &setup.fabric.backends[VICTIM];
    let name = victim.name().to_owned();
    screen.event(&format!("{name} is switched off: it answers nothing any more"));
    let at = Instant::now();
    victim.unplug()?;
    screen.command(&name, "ip link set eth0 down");
    let said = watch.wait_down(&victim.v4.to_string())?;
    let took = said.at.saturating_duration_since(at).as_secs_f64();
    screen
        .done(&format!("{name} is {} to Spillway after {took:.2} s: {}", said.state, said.reason));
    Ok((at, said.at))
}
