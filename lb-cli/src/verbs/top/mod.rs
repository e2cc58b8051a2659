//! `spillway top`: regions, services, backends and drops on a screen that is renewed every second, from
//! what the daemon says and counts.
//!
//! Data goes one way: [`reading`] asks, [`rates`] makes rates of two answers, [`sheets`] makes rows of
//! them, [`draw`] puts them on the screen; [`screen`] holds what the person at the keys has chosen.

mod draw;
mod keys;
mod rates;
mod reading;
mod screen;
mod sheets;
mod terminal;
#[cfg(test)]
mod tests;

use std::{io, time::Duration};

use crossterm::event::EventStream;
use futures::StreamExt;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};

use self::{
    draw::{Palette, draw},
    rates::Now,
    screen::Screen,
    terminal::Held,
};
use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    exit::Exit,
    failure::{Failure, describe},
    output::Form,
};

/// Options of `top`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,
}

/// Shows the screen until it is told to end.
///
/// # Errors
/// There is no terminal, or the daemon does not answer at first; later it is asked again.
pub(crate) fn run(options: Options, arguments: &Arguments) -> Result<(), Failure> {
    if options.output != Form::Table {
        return Err(Failure::new(Exit::Usage, "top: shows a screen, and has no other form")
            .hint("`spillway stats --output json` prints the counters as JSON"));
    }
    terminal::present()?;
    let interval = Duration::from_secs(arguments.interval);
    converse(async {
        // What cannot be had is said before the screen is taken.
        let mut daemon = Daemon::open(&options).await?;
        let first = reading::read(&mut daemon).await?;
        let (news, heard) = mpsc::channel(1);
        let reading = tokio::spawn(reading::go_on(options, daemon, interval, news));
        let shown = show(Now::first(first), heard).await;
        reading.abort();
        shown
    })
}

async fn show(mut now: Now, mut heard: mpsc::Receiver<reading::News>) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::new(Exit::Failure, format!("terminal: {}", describe(&error)))
            .hint("`spillway stats` prints the counters without a screen")
    };
    let mut told_to_end = End::listen().map_err(failed)?;
    let mut held = Held::take().map_err(failed)?;
    let mut events = EventStream::new();
    let mut screen = Screen::default();
    let palette = Palette::of_environment();
    loop {
        held.terminal.draw(|frame| draw(frame, &mut screen, &now, palette)).map_err(failed)?;
        tokio::select! {
            news = heard.recv() => match news {
                Some(news) if !screen.paused => now.take(news),
                Some(_) => {}
                None => return Ok(()),
            },
            event = events.next() => match event {
                Some(Ok(event)) => if keys::press(&mut screen, &event).is_break() {
                    return Ok(());
                },
                Some(Err(error)) => return Err(failed(error)),
                // The terminal is gone.
                None => return Ok(()),
            },
            () = told_to_end.come() => return Ok(()),
        }
    }
}

/// The signals that mean the end.
struct End([Signal; 3]);

impl End {
    fn listen() -> io::Result<Self> {
        let all = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        let [terminate, interrupt, hangup] = all.map(signal);
        Ok(Self([terminate?, interrupt?, hangup?]))
    }

    async fn come(&mut self) {
        let [terminate, interrupt, hangup] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
