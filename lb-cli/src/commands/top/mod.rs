//! `spillway top`: regions, services, backends and drops on a screen that is refreshed every second.
//!
//! [`sample`] polls the daemon and computes rates, [`views`] makes rows of them, [`mod@draw`] draws these;
//! [`screen`] holds what the user has selected.

mod draw;
mod operator_views;
mod sample;
mod screen;
#[cfg(test)]
mod tests;
mod traffic_views;
mod views;

use std::{
    io::{self, IsTerminal, Stdout, stdout},
    panic,
    sync::Once,
    time::Duration,
};

use crossterm::{
    cursor::{Hide, Show},
    event::EventStream,
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};
use futures::StreamExt;
use ratatui::{Terminal, backend::CrosstermBackend};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};

use self::{
    draw::{Palette, draw},
    sample::{ReadResult, Snapshot},
    screen::{Screen, handle_event},
};
use crate::{
    arguments::{Options, parse_interval},
    client::{DaemonClient, block_on},
    failure::{Exit, Failure, describe},
    output::Format,
};

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Time between two readings
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_interval())]
    interval: Duration,
}

/// # Errors
/// There is no terminal, or the daemon does not answer the first time.
pub(crate) fn run(options: Options, arguments: &Arguments) -> Result<(), Failure> {
    if options.output != Format::Table {
        return Err(Failure::new(Exit::Usage, "top: has no other output format than the screen")
            .hint("`spillway stats --output json` prints the counters as JSON"));
    }
    require_terminal()?;
    block_on(async {
        // Fail before the screen is taken if the daemon does not answer.
        let mut daemon = DaemonClient::connect(&options).await?;
        let first = sample::read(&mut daemon, None).await?;
        let (readings_tx, readings_rx) = mpsc::channel(1);
        let polling = tokio::spawn(sample::poll(options, daemon, arguments.interval, readings_tx));
        let result = run_screen(Snapshot::from_first(first), readings_rx).await;
        polling.abort();
        result
    })
}

async fn run_screen(
    mut snapshot: Snapshot,
    mut readings_rx: mpsc::Receiver<ReadResult>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::new(Exit::Failure, format!("terminal: {}", describe(&error)))
            .hint("`spillway stats` prints the counters without a screen")
    };
    let mut signals = StopSignals::listen().map_err(failed)?;
    let mut guard = TerminalGuard::new().map_err(failed)?;
    let mut events = EventStream::new();
    let mut screen = Screen::default();
    let palette = Palette::from_environment();
    loop {
        guard
            .terminal
            .draw(|frame| draw(frame, &mut screen, &snapshot, palette))
            .map_err(failed)?;
        tokio::select! {
            result = readings_rx.recv() => match result {
                Some(result) if !screen.paused => snapshot.update(result),
                Some(_) => {}
                None => return Ok(()),
            },
            event = events.next() => match event {
                Some(Ok(event)) => if handle_event(&mut screen, &event).is_break() {
                    return Ok(());
                },
                Some(Err(error)) => return Err(failed(error)),
                // The terminal is gone.
                None => return Ok(()),
            },
            () = signals.recv() => return Ok(()),
        }
    }
}

struct StopSignals([Signal; 3]);

impl StopSignals {
    fn listen() -> io::Result<Self> {
        let all = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        let [terminate, interrupt, hangup] = all.map(signal);
        Ok(Self([terminate?, interrupt?, hangup?]))
    }

    async fn recv(&mut self) {
        let [terminate, interrupt, hangup] = &mut self.0;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}

/// # Errors
/// Standard input or output is not a terminal.
fn require_terminal() -> Result<(), Failure> {
    let missing = match (io::stdin().is_terminal(), stdout().is_terminal()) {
        (true, true) => return Ok(()),
        (_, false) => "standard output",
        (false, true) => "standard input",
    };
    Err(Failure::new(Exit::Usage, format!("top: {missing} is not a terminal"))
        .hint("`spillway stats` prints the counters once, `spillway regions --watch` repeatedly"))
}

/// The terminal while the screen is shown; it is restored however the program ends.
struct TerminalGuard {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl TerminalGuard {
    /// Switches to raw mode and the alternate screen.
    fn new() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        // A release build aborts on a panic, which drops nothing.
        HOOK.call_once(|| {
            let previous = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                restore_terminal();
                previous(panic);
            }));
        });
        enable_raw_mode()?;
        let terminal = execute!(stdout(), EnterAlternateScreen, Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match terminal {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                restore_terminal();
                Err(error)
            }
        }
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Ignores errors: the terminal may be gone.
fn restore_terminal() {
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

#[cfg(test)]
mod restore_tests {
    use std::{
        os::unix::process::ExitStatusExt,
        process::{Command, abort},
    };

    use nix::{pty::openpty, sys::termios::tcgetattr};

    use super::*;

    /// Set for the process that panics.
    const PANICS: &str = "SPILLWAY_TEST_PANICS_ON_A_TERMINAL";

    /// Aborts on the panic as a release build does, so only the hook can restore the terminal.
    #[test]
    fn a_panic_restores_the_terminal() {
        if std::env::var_os(PANICS).is_some() {
            panic::set_hook(Box::new(|_| abort()));
            let _held = TerminalGuard::new().unwrap();
            panic!("on purpose");
        }
        let pty = openpty(None, None).unwrap();
        let before = tcgetattr(&pty.slave).unwrap();
        let name = "commands::top::restore_tests::a_panic_restores_the_terminal";
        let mut itself = Command::new(std::env::current_exe().unwrap());
        itself.args([name, "--exact", "--nocapture"]).env(PANICS, "1");
        itself.stdin(pty.slave.try_clone().unwrap()).stdout(pty.slave.try_clone().unwrap());
        let status = itself.status().unwrap();
        assert_eq!(status.signal(), Some(6), "aborted: {status}");
        assert_eq!(tcgetattr(&pty.slave).unwrap(), before);
    }
}
