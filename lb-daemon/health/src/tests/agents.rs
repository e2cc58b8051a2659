//! What backends say of themselves.

use super::*;
use crate::{AgentReport, HealthChange, Utilisation};
use lb_model::AgentCheck;

/// A check by an agent, as fast as it is answered.
fn agent(server: SocketAddr) -> HealthCheck {
    HealthCheck { kind: CheckKind::Agent(AgentCheck::default()), ..http(server) }
}

fn header(server: SocketAddr, name: &str) -> HealthCheck {
    let mut check = http(server);
    let CheckKind::Http(probe) = &mut check.kind else { unreachable!("it is http") };
    probe.agent_header = Some(name.to_owned());
    check
}

impl Probing {
    async fn change(&mut self) -> HealthChange {
        timeout(PATIENCE, self.changes.recv()).await.expect("no change came").unwrap()
    }

    /// The next change: health, reason, and what the backend says.
    async fn next_report(&mut self) -> (Health, String, AgentReport) {
        let change = self.change().await;
        (change.health, change.reason.text, change.report)
    }
}

fn passing(reported: AgentReport) -> (Health, String, AgentReport) {
    (Passing, PASSES.to_owned(), reported)
}

fn drain(why: &str) -> AgentReport {
    AgentReport { drain: Some(format!("check load: {why}")), ..AgentReport::default() }
}

fn percent(percent: u8) -> AgentReport {
    AgentReport { percent: Some(percent), ..AgentReport::default() }
}

fn utilised(share: f64) -> AgentReport {
    AgentReport { utilisation: Utilisation::new(share), ..AgentReport::default() }
}

/// Answers the next check with a line, and closes.
async fn say(server: &mut Server, line: &str) {
    server.next().await.send(line).await;
}

#[tokio::test]
async fn an_agents_line_is_heard_and_only_news_of_it_is_told() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = agent(server.address);
    let mut probing = Probing::start(vec![target("web", server.address, &[("load", &check)])]);
    say(&mut server, "up 75%\n").await;
    let first = probing.change().await;
    assert!(first.first);
    assert_eq!((first.health, first.reason.text, first.report), passing(percent(75)));
    // Ended by the connection; the same again and a change of 0.9 % are no news.
    say(&mut server, "75% cpu_utilization=0.5").await;
    let of = |share| AgentReport { percent: Some(75), ..utilised(share) };
    assert_eq!(probing.next_report().await, passing(of(0.5)));
    say(&mut server, "cpu_utilization=0.509\n").await;
    say(&mut server, "cpu_utilization=0.519 up\n").await;
    assert_eq!(probing.next_report().await, passing(of(0.519)));
    say(&mut server, "drain#update\n").await;
    let drained =
        AgentReport { drain: drain("the backend says drain (update)").drain, ..of(0.519) };
    assert_eq!(probing.next_report().await, passing(drained));
    say(&mut server, "ready 100%\n").await;
    let ready = AgentReport { percent: Some(100), ..utilised(0.519) };
    assert_eq!(probing.next_report().await, passing(ready));
}

#[tokio::test]
async fn what_is_to_be_sent_is_sent_first() {
    let mut server = Server::start("[::1]:0").await;
    let send = b"state?\r\n\r\n".to_vec();
    let check =
        HealthCheck { kind: CheckKind::Agent(AgentCheck { send }), ..agent(server.address) };
    let mut probing = Probing::start(vec![target("web", server.address, &[("load", &check)])]);
    let mut held = server.next().await;
    assert_eq!(held.request().await, "state?\r\n\r\n");
    held.send("maint\n").await;
    assert_eq!(probing.next_report().await, passing(drain("the backend says maint")));
}

#[tokio::test]
async fn down_fails_the_check_after_fall_and_up_passes_it_after_rise() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = agent(server.address);
    let mut probing = Probing::start(vec![target("web", server.address, &[("load", &check)])]);
    say(&mut server, "up\n").await;
    assert_eq!(probing.next_report().await, passing(AgentReport::default()));
    say(&mut server, "down #disk full\n").await;
    // A line that does not say otherwise, and one that cannot be read, leave it down.
    say(&mut server, "maxconn:3\n").await;
    assert!(probing.is_silent());
    say(&mut server, "nonsense\n").await;
    let down = "check load: the backend says down (disk full)".to_owned();
    assert_eq!(probing.next_report().await, (Failing, down, AgentReport::default()));
    say(&mut server, "up\n").await;
    say(&mut server, "up\n").await;
    assert_eq!(probing.next_report().await, passing(AgentReport::default()));
}

#[tokio::test]
async fn an_agent_that_is_not_there_fails_nothing_and_is_forgotten_after_fall() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = agent(server.address);
    let mut probing = Probing::start(vec![target("web", server.address, &[("load", &check)])]);
    say(&mut server, "drain 30%\n").await;
    assert!(probing.next_report().await.2.drain.is_some());
    server.next().await.reset();
    drop(server.next().await);
    // The third in a row.
    say(&mut server, "SSH-2.0-OpenSSH_9.2\n").await;
    let why = "no report: no agent keyword in \"SSH-2.0-OpenSSH_9.2\"";
    let report_error = |why| AgentReport {
        report_error: Some(format!("check load: {why}")),
        ..AgentReport::default()
    };
    assert_eq!(probing.next_report().await, passing(report_error(why)));
    // It comes up though nobody is there from the first.
    let address = server.address;
    drop(server);
    let (gone, check) = (target("shop", address, &[("load", &check)]), agent(address));
    let check = HealthCheck { fall: 1, ..check };
    let other = target("other", address, &[("load", &check)]);
    let mut probing = Probing::start(vec![gone, other]);
    for _ in 0..2 {
        let change = probing.change().await;
        assert_eq!((change.health, change.first), (Passing, true));
        let why = match change.pool.as_str() {
            "other" => report_error("no report: connection refused"),
            _ => AgentReport::default(),
        };
        assert_eq!(change.report, why);
    }
}

#[tokio::test]
async fn an_endless_line_and_one_that_drips_are_cut_off() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = HealthCheck { fall: 1, ..agent(server.address) };
    let mut probing = Probing::start(vec![target("web", server.address, &[("load", &check)])]);
    let mut held = server.next().await;
    held.send_forever("up ").await;
    let report_error = probing.next_report().await.2.report_error;
    assert_eq!(report_error.unwrap(), "check load: no report: the line is over 1024 bytes");

    let mut server = Server::start("127.0.0.1:0").await;
    let short = Duration::from_millis(150);
    let check = HealthCheck { fall: 1, timeout: short, ..agent(server.address) };
    let mut probing = Probing::start(vec![target("web", server.address, &[("load", &check)])]);
    let mut held = server.next().await;
    assert!(held.drip(&"up ".repeat(500), Duration::from_millis(10)).await.is_some());
    let report_error = probing.next_report().await.2.report_error;
    assert_eq!(report_error.unwrap(), "check load: no report: no answer within 150 ms");
}

#[tokio::test]
async fn a_header_says_it_too_and_the_status_decides() {
    let mut server = Server::start("127.0.0.1:0").await;
    let check = header(server.address, "Endpoint-Load-Metrics");
    let mut probing = Probing::start(vec![target("web", server.address, &[("load", &check)])]);
    let mut answer = async |status: u16, head: &str| {
        let mut held = server.next().await;
        held.request().await;
        held.send(&format!("HTTP/1.1 {status} X\r\n{head}Content-Length: 0\r\n\r\n")).await;
    };
    answer(200, "endpoint-load-metrics: TEXT cpu_utilization=0.3\r\n").await;
    assert_eq!(probing.next_report().await, passing(utilised(0.3)));
    // What a bad answer says of it counts too; of two the first.
    for _ in 0..3 {
        answer(503, "endpoint-load-metrics: drain\r\nendpoint-load-metrics: up\r\n").await;
    }
    let drained = AgentReport { drain: drain("the backend says drain").drain, ..utilised(0.3) };
    assert_eq!(probing.next_report().await, passing(drained.clone()));
    let status = "check load: status 503, expected 200 to 299".to_owned();
    assert_eq!(probing.next_report().await, (Failing, status.clone(), drained));
    answer(503, "").await;
    answer(503, "").await;
    answer(503, "endpoint-load-metrics: \r\n").await;
    let why = "check load: no report: header Endpoint-Load-Metrics: the line is empty";
    let forgotten = AgentReport { report_error: Some(why.to_owned()), ..AgentReport::default() };
    assert_eq!(probing.next_report().await, (Failing, status, forgotten));
}

#[tokio::test]
async fn an_agent_beside_another_check_leaves_the_host_to_that() {
    // Nobody is at the port of `open`; the host is, so the connect is refused, and nothing is silent.
    let mut server = Server::start("127.0.0.1:0").await;
    let load = agent(server.address);
    let open = Server::start("127.0.0.1:0").await;
    let check = HealthCheck { port: open.address.port(), ..tcp(server.address) };
    drop(open);
    let both = target("web", server.address, &[("open", &check), ("load", &load)]);
    let mut probing = Probing::start(vec![both]);
    say(&mut server, "40%\n").await;
    loop {
        let (health, reason, reported) = probing.next_report().await;
        assert_eq!((health, &*reason), (Failing, "check open: connection refused"));
        if reported == percent(40) {
            return;
        }
    }
}
