//! The terminal, taken for a screen and given back however the program ends.

use std::{
    io::{self, IsTerminal, Stdout, stdout},
    panic,
    sync::Once,
};

use crossterm::{
    cursor::{Hide, Show},
    execute,
    terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode},
};
use ratatui::{Terminal, backend::CrosstermBackend};

use crate::{exit::Exit, failure::Failure};

/// Says where there is no terminal for a screen.
///
/// # Errors
/// Standard input or output is none.
pub(super) fn present() -> Result<(), Failure> {
    let missing = match (io::stdin().is_terminal(), stdout().is_terminal()) {
        (true, true) => return Ok(()),
        (_, false) => "standard output",
        (false, true) => "standard input",
    };
    Err(Failure::new(Exit::Usage, format!("top: {missing} is no terminal"))
        .hint("`spillway stats` prints the counters once, `spillway regions --watch` goes on"))
}

/// The terminal while the screen is shown.
pub(super) struct Held {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Held {
    /// Takes it: no line editing, no echo, a screen beside the one with the shell's lines.
    pub(super) fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        // A release build aborts on a panic: nothing is dropped then.
        HOOK.call_once(|| {
            let former = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                give_back();
                former(panic);
            }));
        });
        enable_raw_mode()?;
        let taken = execute!(stdout(), EnterAlternateScreen, Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match taken {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        give_back();
    }
}

/// As it was. There is nobody to tell that it could not be: the terminal may be gone.
fn give_back() {
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::process::ExitStatusExt,
        process::{Command, abort},
    };

    use nix::{pty::openpty, sys::termios::tcgetattr};

    use super::*;

    /// Set for the process that is to panic.
    const PANICS: &str = "SPILLWAY_TEST_PANICS_ON_A_TERMINAL";

    /// A release build aborts on a panic, and drops nothing. So does this one: the terminal is given
    /// back by the hook alone.
    #[test]
    fn a_panic_gives_the_terminal_back() {
        if std::env::var_os(PANICS).is_some() {
            panic::set_hook(Box::new(|_| abort()));
            let _held = Held::take().unwrap();
            panic!("on purpose");
        }
        let pty = openpty(None, None).unwrap();
        let before = tcgetattr(&pty.slave).unwrap();
        let name = "verbs::top::terminal::tests::a_panic_gives_the_terminal_back";
        let mut itself = Command::new(std::env::current_exe().unwrap());
        itself.args([name, "--exact", "--nocapture"]).env(PANICS, "1");
        itself.stdin(pty.slave.try_clone().unwrap()).stdout(pty.slave.try_clone().unwrap());
        let status = itself.status().unwrap();
        assert_eq!(status.signal(), Some(6), "aborted: {status}");
        assert_eq!(tcgetattr(&pty.slave).unwrap(), before);
    }
}
