//! What came of it: a histogram, figures, and what must be true of them.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lb_tests::report::{Histogram, histogram};
use serde_json::{Value, json};

use super::clients::{Answer, Record, WAYS};
use super::{NGINX, Options};
use crate::shared::{Environment, Screen, align, table};

/// Orange and blue.
const COLOURS: [(u8, &str); 2] = [(208, "#ea8a2e"), (25, "#1b4f8a")];
/// Seconds after which a kernel has sent a SYN again at the latest: once after one (RFC 6298, 2.1),
/// then each time after twice as long. Kernels from 6.5 on stay at one second for the first four.
const REPEATS: [f64; 3] = [1.0, 3.0, 7.0];
/// What an answer may take that waits for nothing, on a busy machine, seconds.
const AT_ONCE: f64 = 0.5;

/// Draws, prints, writes and judges.
pub(crate) fn conclude(
    environment: &Environment,
    options: &Options,
    record: &Record,
    screen: &mut Screen,
) -> Result<()> {
    let seconds = |answers: &Vec<Answer>| answers.iter().map(|a| a.timed.seconds).collect();
    let rows: Vec<(String, Vec<f64>)> =
        WAYS.iter().zip(&record.answers).map(|(way, a)| ((*way).into(), seconds(a))).collect();
    screen.heading("How long requests took, by curl");
    let shown = Histogram::new(&rows);
    screen.line(&shown.text(40, &COLOURS.map(|colour| colour.0), screen.ink));
    let title = format!("{} is switched off: response times of curl", record.victim);
    environment.write("histogram.svg", &histogram(&title, &shown, &COLOURS.map(|c| c.1)))?;
    figures(options, record, screen);
    environment.report(&report(options, record))?;
    environment.write("commands.txt", &screen.commands())?;

    screen.heading("Does it hold?");
    judge(options, record, screen)?;
    environment.point_to(&["histogram.svg", "report.json", "web.toml", "commands.txt"], screen);
    Ok(())
}

fn figures(options: &Options, record: &Record, screen: &Screen) {
    let mut table =
        table(&["", "requests", "answered", "median", "longest", "waited out a timeout", "total"]);
    for (way, answers) in WAYS.iter().zip(&record.answers) {
        let mut seconds: Vec<_> = answers.iter().map(|answer| answer.timed.seconds).collect();
        seconds.sort_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2];
        let waited = waited(options, answers, record.switched_off);
        table.add_row([
            (*way).to_owned(),
            answers.len().to_string(),
            answers.iter().filter(|answer| answer.timed.status == 200).count().to_string(),
            format!("{:.1} ms", median * 1e3),
            format!("{:.3} s", seconds[seconds.len() - 1]),
            format!("{} of {}", waited.0, waited.1),
            format!("{:.1} s", seconds.iter().sum::<f64>()),
        ]);
    }
    align(&mut table, 1);
    screen.quote(&table.to_string());
    screen
        .line("           of the requests after the switch-off, those that took nginx's timeout;");
    screen.line("           in the experiment of 2020 about 10 % did through nginx");
}

/// Of those after the switch-off: how many took nginx's timeout or longer, and how many there are.
fn waited(options: &Options, answers: &[Answer], off: Instant) -> (usize, usize) {
    let timeout = options.scaled(NGINX.0).as_secs_f64();
    let after = answers.iter().filter(|answer| answer.begun >= off);
    let waited = after.clone().filter(|answer| answer.timed.seconds >= timeout);
    (waited.count(), after.count())
}

fn report(options: &Options, record: &Record) -> Value {
    let detection = record.detected.duration_since(record.switched_off).as_secs_f64();
    let way = |answers: &[Answer]| {
        let (waited, after) = waited(options, answers, record.switched_off);
        let all = answers.iter().map(|Answer { begun, timed }| {
            let since = match begun.checked_duration_since(record.switched_off) {
                Some(after) => after.as_secs_f64(),
                None => -record.switched_off.duration_since(*begun).as_secs_f64(),
            };
            json!({
                "since_switch_off": since,
                "seconds": timed.seconds,
                "status": timed.status,
                "page": timed.page,
            })
        });
        json!({"after": after, "waited": waited, "requests": all.collect::<Vec<_>>()})
    };
    json!({
        "scale": options.scale,
        "victim": record.victim,
        "nginx_timeout_seconds": options.scaled(NGINX.0).as_secs_f64(),
        "detection_seconds": detection,
        "nginx": way(&record.answers[0]),
        "spillway": way(&record.answers[1]),
    })
}

fn judge(options: &Options, record: &Record, screen: &Screen) -> Result<()> {
    let timeout = options.scaled(NGINX.0);
    for (way, answers) in WAYS.iter().zip(&record.answers) {
        answered(way, answers, record)?;
        screen.done(&format!("{way}: every request was answered, after the switch-off by others"));
    }
    let [nginx, spillway] = &record.answers;
    let longest = longest(nginx);
    let fair = timeout.as_secs_f64()..timeout.as_secs_f64() + AT_ONCE;
    ensure!(
        fair.contains(&longest),
        "nginx: the longest request took {longest:.3} s, which is not its timeout of {timeout:?}"
    );
    screen
        .done(&format!("nginx: its clients wait for its timeout, again and again: {longest:.3} s"));
    let detection = record.detected.duration_since(record.switched_off);
    let (bound, longest) = (bound(detection), self::longest(spillway));
    ensure!(
        longest <= bound,
        "Spillway: a request took {longest:.3} s; the first SYN that is repeated after the \
         detection comes in time for {bound:.1} s"
    );
    let late = spillway.iter().filter(|answer| answer.begun >= record.detected);
    let slow = late.clone().find(|answer| answer.timed.seconds > AT_ONCE);
    ensure!(slow.is_none(), "Spillway: slow after the detection: {slow:?}");
    screen.done(&format!(
        "Spillway: no request took longer than {longest:.3} s, and after the detection ({detection:.2?}) \
         none of {} waited",
        late.count()
    ));
    Ok(())
}

/// Every request has an answer; the node answers before it is switched off, and not afterwards.
fn answered(way: &str, answers: &[Answer], record: &Record) -> Result<()> {
    for Answer { begun, timed } in answers {
        ensure!(timed.status == 200, "{way}: {timed:?}");
        let after = *begun >= record.switched_off;
        ensure!(!after || timed.page != record.victim, "{way}: {} answered", record.victim);
    }
    Ok(())
}

fn longest(answers: &[Answer]) -> f64 {
    answers.iter().map(|answer| answer.timed.seconds).fold(0.0, f64::max)
}

/// What a request may take that began with a SYN to the dead node: until the first repetition of the
/// SYN after the detection, and a moment.
fn bound(detection: Duration) -> f64 {
    let detection = detection.as_secs_f64();
    let repeat = REPEATS.into_iter().find(|seconds| *seconds > detection);
    repeat.unwrap_or(15.0) + AT_ONCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_waits_for_its_own_second_syn_at_most() {
        assert_eq!(bound(Duration::from_millis(400)), 1.5);
        assert_eq!(bound(Duration::from_millis(2900)), 3.5);
        assert_eq!(bound(Duration::from_millis(3500)), 7.5);
    }
}
