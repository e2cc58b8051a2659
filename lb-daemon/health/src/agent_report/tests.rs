use proptest::prelude::*;

use super::*;

fn of(line: &str) -> ReportLine {
    ReportLine::parse(line.as_bytes()).unwrap_or_else(|why| panic!("{line:?}: {why}"))
}

fn unreadable(line: &[u8]) -> String {
    ReportLine::parse(line).unwrap_err().to_string()
}

fn ready() -> ReportLine {
    ReportLine { ready: true, ..ReportLine::default() }
}

fn drain(how: &str) -> ReportLine {
    ReportLine { drain: Some(how.to_owned()), ..ReportLine::default() }
}

fn down(how: &str) -> ReportLine {
    ReportLine { down: Some(how.to_owned()), ..ReportLine::default() }
}

fn percent(percent: u8) -> ReportLine {
    ReportLine { percent: Some(percent), ..ReportLine::default() }
}

fn utilised(thousandths: u32) -> ReportLine {
    ReportLine { utilisation: Some(Utilisation(thousandths)), ..ReportLine::default() }
}

#[test]
fn lines_and_what_they_say() {
    for (line, said) in [
        ("up", ready()),
        ("READY\r", ready()),
        ("drain", drain("drain")),
        ("maint # kernel  update\tat 5 ", drain("maint (kernel update at 5)")),
        ("down#disk full", down("down (disk full)")),
        ("Failed", down("failed")),
        ("stopped #", down("stopped")),
        ("75%", percent(75)),
        ("0%", percent(0)),
        ("100%", percent(100)),
        ("256%", percent(100)),
        ("99999999999999999999%", percent(100)),
        ("maxconn:30", ReportLine::default()),
        (
            "up 50% maxconn:30",
            ReportLine { ready: true, percent: Some(50), ..ReportLine::default() },
        ),
        ("up,75%", ReportLine { ready: true, percent: Some(75), ..ReportLine::default() }),
        ("ready drain", ReportLine { ready: true, ..drain("drain") }),
        ("up what-is-this", ready()),
        ("cpu_utilization=0.62", utilised(620)),
        (
            "TEXT cpu_utilization=0.62, application_utilization=1.25, rps_fractional=7",
            utilised(1250),
        ),
        ("application_utilization=.5,cpu_utilization=0.9", utilised(500)),
        ("cpu_utilization=1e9", utilised(1_000_000)),
        ("cpu_utilization=0", utilised(0)),
        ("mem_utilization=x named_metrics.queue=3", ReportLine::default()),
        (
            "drain 30% cpu_utilization=1 #x",
            ReportLine {
                percent: Some(30),
                utilisation: Some(Utilisation(1000)),
                ..drain("drain (x)")
            },
        ),
    ] {
        assert_eq!(of(line), said, "{line:?}");
    }
}

#[test]
fn lines_that_say_nothing() {
    for (line, why) in [
        (&b""[..], "the line is empty"),
        (b" \t\r", "the line is empty"),
        (b"SSH-2.0-OpenSSH_9.2", "no agent keyword in \"SSH-2.0-OpenSSH_9.2\""),
        (b"# up", "no agent keyword in \"# up\""),
        (b"%", "no agent keyword in \"%\""),
        (b"-5%", "no agent keyword in \"-5%\""),
        (b"7.5%", "no agent keyword in \"7.5%\""),
        (b"maxconn:", "no agent keyword in \"maxconn:\""),
        (b"=1", "no agent keyword in \"=1\""),
        (b"up cpu_utilization=", "invalid number in \"cpu_utilization=\""),
        (b"cpu_utilization=-0.1", "invalid number in \"cpu_utilization=-0.1\""),
        (b"cpu_utilization=nan", "invalid number in \"cpu_utilization=nan\""),
        (b"application_utilization=inf", "invalid number in \"application_utilization=inf\""),
        (b"\x1b[31m\x07\xff", "no agent keyword in \"[31m\""),
    ] {
        assert_eq!(unreadable(line), why, "{}", String::from_utf8_lossy(line));
    }
    assert_eq!(unreadable(&[b'x'; MOST + 1]), "the line is over 1024 bytes");
}

#[test]
fn a_reason_is_short_and_plain() {
    let word = of(&format!("drain #\u{202e}{}\u{7}é", "long ".repeat(40)));
    let reason = word.drain.unwrap();
    assert!(reason.starts_with("drain (long long "), "{reason}");
    assert!(reason.ends_with("…)"), "{reason}");
    assert_eq!(reason.chars().count(), "drain (".len() + REASON + "…)".chars().count());
}

#[test]
fn what_a_line_leaves_out_stands() {
    let mut standing = ReportState::new(2);
    assert!(standing.report().is_nothing());
    standing.update(of("drain 40% cpu_utilization=0.5 #update"));
    standing.update(of("cpu_utilization=0.25"));
    assert_eq!(
        standing.report(),
        AgentReport {
            drain: Some("the backend says drain (update)".to_owned()),
            percent: Some(40),
            utilisation: Some(Utilisation(250)),
            report_error: None,
        }
    );
    standing.update(of("down #bye"));
    assert_eq!(standing.down(), Some("down (bye)"));
    standing.update(of("70%"));
    assert_eq!(standing.down(), Some("down (bye)"));
    standing.update(of("up"));
    assert_eq!((standing.down(), standing.report().drain), (None, None));
    assert_eq!(standing.report().percent, Some(70));
    standing.update(of("0%"));
    let none = standing.report();
    assert_eq!((none.drain.as_deref(), none.percent), (Some("the backend says 0%"), None));
}

#[test]
fn what_was_said_is_forgotten_after_as_many_misses_as_fall_says() {
    let mut standing = ReportState::new(3);
    standing.update(of("drain 40%"));
    standing.miss("timed out", true);
    standing.miss("timed out", true);
    assert!(standing.is_in_doubt() && !standing.is_silent());
    assert_eq!(standing.report().percent, Some(40));
    standing.update(of("maxconn:1"));
    assert!(!standing.is_in_doubt());
    for silent in [true, true, false] {
        standing.miss("connection refused", silent);
    }
    let report_error = Some("no report: connection refused".to_owned());
    assert_eq!(standing.report(), AgentReport { report_error, ..AgentReport::default() });
    assert!(!standing.is_silent() && !standing.is_in_doubt());
    for _ in 0..3 {
        standing.miss("no connection within 10 ms", true);
    }
    assert!(standing.is_silent());
    standing.update(of("50%"));
    assert!(!standing.is_silent());
    assert_eq!(standing.report(), AgentReport { percent: Some(50), ..AgentReport::default() });
}

#[test]
fn of_several_checks_the_worst_counts() {
    let said = |drain: Option<&str>, percent, utilisation: Option<u32>| AgentReport {
        drain: drain.map(str::to_owned),
        percent,
        utilisation: utilisation.map(Utilisation),
        report_error: None,
    };
    let mut all = AgentReport::default();
    all.join("a", &said(None, Some(50), None));
    all.join("b", &said(Some("x"), Some(40), Some(300)));
    all.join("c", &said(Some("y"), None, Some(200)));
    assert_eq!(all, said(Some("check b: x"), Some(40), Some(300)));
}

#[test]
fn small_changes_of_utilisation_are_no_news() {
    let said = |of| AgentReport { utilisation: Utilisation::new(of), ..AgentReport::default() };
    assert!(!said(0.5).is_news(&said(0.509)));
    assert!(said(0.5).is_news(&said(0.51)));
    assert!(said(0.5).is_news(&AgentReport::default()));
    assert!(said(0.5).is_news(&AgentReport { percent: Some(99), ..said(0.5) }));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_within_bounds(line in prop::collection::vec(any::<u8>(), 0..1200)) {
        let shown = match ReportLine::parse(&line) {
            Ok(word) => [word.drain, word.down].into_iter().flatten().collect(),
            Err(why) => why.to_string(),
        };
        prop_assert!(shown.chars().count() < 4 * REASON, "{shown}");
        prop_assert!(!shown.contains(|c: char| c.is_control()), "{shown:?}");
    }

    #[test]
    fn words_among_any_others_are_heard(
        before in "[a-z]{0,4} ?", percent in 0u8..=100, share in 0u32..2000, after in "( [a-z_]{1,9}=[0-9]{1,3}){0,3}",
    ) {
        let line = format!("{before} {percent}% cpu_utilization={}{after}", f64::from(share) / 1000.0);
        let word = ReportLine::parse(line.as_bytes()).unwrap();
        prop_assert_eq!((word.percent, word.utilisation), (Some(percent), Some(Utilisation(share))));
    }
}
