//! `spillway top` shows real traffic on a terminal, and restores the terminal when it ends.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use lb_e2e::fixture::{ECHO, Fixture, Health, Tunnel};
use lb_e2e::harness::Case;
use lb_tests::daemon::Binaries;
use lb_tests::process::{pause, until};
use lb_tests::sandbox::Sandbox;
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{Termios, tcgetattr};
use nix::unistd::Pid;

const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const CASES: &[Case] =
    &[Case::waits("top_shows_real_traffic_and_gives_the_terminal_back", top)];

/// A terminal of 80 columns and 24 lines, with a program on it.
struct Terminal {
    keys: File,
    /// Kept open, so that its modes can be looked at when the program is gone.
    end: OwnedFd,
    screen: Arc<Mutex<vt100::Parser>>,
    before: Termios,
    child: Child,
}

impl Terminal {
    fn start(fixture: &Fixture) -> Result<Self> {
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(Some(&size), None).context("open a terminal")?;
        let before = tcgetattr(&pty.slave).context("look at its modes")?;
        let mut command = fixture.fabric.balancer.command("setsid");
        command.arg("--ctty").arg(Binaries::find()?.spillway);
        command.arg("--socket").arg(&fixture.balancer.socket).arg("top");
        command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
        command.stdin(pty.slave.try_clone()?).stdout(pty.slave.try_clone()?);
        command.stderr(pty.slave.try_clone()?);
        let child = command.spawn().context("start spillway top")?;
        let screen = Arc::new(Mutex::new(vt100::Parser::default()));
        let mut shown = File::from(pty.master.try_clone()?);
        let parser = screen.clone();
        // It ends with the terminal.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = shown.read(&mut bytes) {
                lock(&parser).process(&bytes[..read]);
            }
        });
        Ok(Self { keys: File::from(pty.master), end: pty.slave, screen, before, child })
    }

    fn press(&mut self, keys: &str) -> Result<()> {
        self.keys.write_all(keys.as_bytes()).context("press keys")
    }

    fn text(&self) -> String {
        lock(&self.screen).screen().contents()
    }

    /// Waits until the screen is as it should be; says how it is else.
    fn until<T>(&self, what: &str, look: impl Fn(&str) -> Option<T>) -> Result<T> {
        let found = until(what, PATIENCE, || Ok(look(&self.text())));
        found.with_context(|| format!("the screen:\n{}", self.text()))
    }

    /// Waits for the program's end; the terminal is then as it was.
    fn end(mut self) -> Result<()> {
        let status = until("top ends", PATIENCE, || Ok(self.child.try_wait()?))?;
        ensure!(status.success(), "top: {status}\n{}", self.text());
        let restored = until("the terminal is given back", PATIENCE, || {
            let parser = lock(&self.screen);
            let screen = parser.screen();
            Ok((!screen.alternate_screen() && !screen.hide_cursor()).then_some(()))
        });
        restored.with_context(|| self.text())?;
        ensure!(tcgetattr(&self.end)? == self.before, "the terminal's modes are others");
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lock(screen: &Mutex<vt100::Parser>) -> MutexGuard<'_, vt100::Parser> {
    screen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The words of the first line with a text.
fn words(screen: &str, text: &str) -> Option<Vec<String>> {
    let line = screen.lines().find(|line| line.contains(text))?;
    Some(line.split_whitespace().map(str::to_owned).collect())
}

fn top(sandbox: &Sandbox) -> Result<()> {
    let mut fixture = Fixture::start(sandbox, "top", Health::QUICK)?;
    let refused = fixture.balancer.try_cli(&["top"], None)?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(refused.status.code() == Some(2), "{said}");
    ensure!(
        said.starts_with("error: top: standard output is not a terminal\nhint: `spillway stats`"),
        "{said}"
    );

    let mut terminal = Terminal::start(&fixture)?;
    terminal.until("the first screen", |screen| {
        (screen.contains("12 of 12 backends up") && screen.contains("[regions]")).then_some(())
    })?;
    let modes = tcgetattr(&terminal.end)?;
    ensure!(modes != terminal.before, "the terminal is not taken");
    traffic(&fixture, &mut terminal)?;
    operation(&fixture, &mut terminal)?;

    // The daemon goes and comes back.
    fixture.balancer.kill()?;
    terminal.until("STALE", |screen| screen.contains("STALE: spillwayd at ").then_some(()))?;
    fixture.balancer.start()?;
    terminal.until("no longer stale", |screen| (!screen.contains("STALE")).then_some(()))?;

    terminal.press("?")?;
    terminal.until("help", |screen| screen.contains("next view").then_some(()))?;
    terminal.press("q")?;
    terminal.end()?;

    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        let terminal = Terminal::start(&fixture)?;
        terminal.until("a screen", |screen| screen.contains("[regions]").then_some(()))?;
        kill(Pid::from_raw(terminal.child.id().try_into()?), signal)?;
        terminal.end().with_context(|| signal.to_string())?;
    }
    Ok(())
}

/// What operators did while it is looked at, from the view of drops on.
fn operation(fixture: &Fixture, terminal: &mut Terminal) -> Result<()> {
    terminal.press("\t")?;
    terminal
        .until("no override", |screen| screen.contains("no override is in force").then_some(()))?;
    let drain = ["backend", "drain", "10.1.0.11", "--for", "1h", "-m", "new kernel"];
    fixture.balancer.cli(&drain)?;
    terminal.until("the drain", |screen| {
        let row = words(screen, "backends/10.1.0.11/drain")?;
        (row.ends_with(&["new".into(), "kernel".into()])).then_some(())
    })?;
    terminal.press("\t")?;
    terminal.until("the generation", |screen| {
        let row = words(screen, "(in force)")?;
        (row[0] == "1:" || row[0] == "1").then_some(())
    })?;
    let update = ["backend", "update", "10.1.0.12", "--pool", "v4", "--weight", "2"];
    fixture.balancer.cli(&[&update[..], &["-m", "larger"]].concat())?;
    terminal.until("the next generation", |screen| {
        let row = words(screen, "larger")?;
        (row[0] == "2").then_some(())
    })?;
    terminal.press("\t")?;
    terminal.until("no condition", |screen| screen.contains("nothing is wrong").then_some(()))
}

/// Connections to one service while the views are looked at.
fn traffic(fixture: &Fixture, terminal: &mut Terminal) -> Result<()> {
    let to = Tunnel::Ipip.endpoint(ECHO);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let opening = scope.spawn(|| -> Result<u64> {
            let mut opened = 0;
            while !over.load(Ordering::Relaxed) {
                fixture.fabric.client.enter(|| TcpStream::connect(to))??;
                opened += 1;
                pause(Duration::from_millis(10));
            }
            Ok(opened)
        });
        let looked = look(terminal);
        over.store(true, Ordering::Relaxed);
        let opened = opening.join().map_err(|_| anyhow::anyhow!("opening panicked"))??;
        ensure!(opened > 0, "nothing was opened");
        looked
    })
}

fn look(terminal: &mut Terminal) -> Result<()> {
    let positive = |word: &str| word.parse().is_ok_and(|rate: f64| rate > 0.0);
    terminal.until("demand in the near region", |screen| {
        let row = words(screen, "v4 ").filter(|row| row[1] == "eu")?;
        (positive(&row[2]) && row.concat().contains("|#")).then_some(())
    })?;
    terminal.press("\t")?;
    // Sorted by connections a second, the busy service stands first.
    terminal.press("ssss")?;
    terminal.until("the service's rates", |screen| {
        let rows: Vec<_> = screen.lines().collect();
        let heading = rows.iter().position(|line| line.contains("CONN/Sv"))?;
        let row = words(rows.get(heading + 1)?, "")?;
        let is = row[..3] == ["ipip-tcp-7", "203.0.113.1:7", "tcp"].map(String::from);
        (is && positive(&row[3]) && positive(&row[4])).then_some(())
    })?;
    terminal.press("\t/10.1\r")?;
    terminal.until("the near backends share it all", |screen| {
        let shares: Option<Vec<f64>> = ["10.1.0.11", "10.1.0.12", "10.1.0.13"]
            .iter()
            .map(|address| {
                let row = words(screen, address)?;
                (row[3] == "up").then(|| row[4].trim_end_matches('%').parse().ok()).flatten()
            })
            .collect();
        let whole: f64 = shares?.iter().sum();
        // Each is rounded.
        ((99.0..=101.0).contains(&whole) && !screen.contains("10.2.0.1")).then_some(())
    })?;
    terminal.press("\x1b")?;
    terminal.until("the filter is gone", |screen| screen.contains("10.2.0.1").then_some(()))?;
    terminal.press("\t")?;
    terminal.until("no drops", |screen| screen.contains("no packets dropped").then_some(()))
}
