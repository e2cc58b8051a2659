//! What a key does.

use std::ops::ControlFlow;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::screen::{Look, Screen, Tab};

/// The keys, as the help says them.
pub(super) const HELP: [(&str, &str); 10] = [
    ("tab, right", "next view"),
    ("shift-tab, left", "view before"),
    ("up, down", "mark another row"),
    ("page up/down, home, end", "go far"),
    ("s", "sort by the next column; after the last, by none"),
    ("r", "turn the order round"),
    ("/", "show only rows with a text; escape ends that"),
    ("p, space", "hold the picture, or let it go on"),
    ("?", "this page, and back"),
    ("q, ctrl-c", "end"),
];

/// Does what a key means; break: the person wants to leave.
pub(super) fn press(screen: &mut Screen, event: &Event) -> ControlFlow<()> {
    let Event::Key(key) = event else { return ControlFlow::Continue(()) };
    if key.kind == KeyEventKind::Release {
        return ControlFlow::Continue(());
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if control && key.code == KeyCode::Char('c') {
        return ControlFlow::Break(());
    }
    if screen.filtering {
        write(screen, key);
        return ControlFlow::Continue(());
    }
    if screen.help {
        match key.code {
            KeyCode::Char('q') => return ControlFlow::Break(()),
            _ => screen.help = false,
        }
        return ControlFlow::Continue(());
    }
    let page = isize::try_from(screen.room.max(1)).unwrap_or(1);
    match key.code {
        KeyCode::Char('q') => return ControlFlow::Break(()),
        KeyCode::Tab | KeyCode::Right => screen.tab = screen.tab.further(1),
        KeyCode::BackTab | KeyCode::Left => screen.tab = screen.tab.further(Tab::ALL.len() - 1),
        KeyCode::Up => screen.step(-1),
        KeyCode::Down => screen.step(1),
        KeyCode::PageUp => screen.step(-page),
        KeyCode::PageDown => screen.step(page),
        KeyCode::Home => screen.step(isize::MIN),
        KeyCode::End => screen.step(isize::MAX),
        KeyCode::Char('s') => sort(screen),
        KeyCode::Char('r') => {
            let look = screen.look_mut();
            look.reversed = !look.reversed;
        }
        KeyCode::Char('/') => screen.filtering = true,
        KeyCode::Esc => screen.filter.clear(),
        KeyCode::Char('p' | ' ') => screen.paused = !screen.paused,
        KeyCode::Char('?' | 'h') => screen.help = true,
        _ => {}
    }
    ControlFlow::Continue(())
}

/// A key while the filter is written.
fn write(screen: &mut Screen, key: &KeyEvent) {
    match key.code {
        KeyCode::Enter => screen.filtering = false,
        KeyCode::Esc => {
            screen.filtering = false;
            screen.filter.clear();
        }
        KeyCode::Backspace => {
            screen.filter.pop();
        }
        KeyCode::Char(letter) => screen.filter.push(letter),
        _ => {}
    }
    screen.look_mut().row = 0;
}

/// By the next column, and after the last as the daemon has it.
fn sort(screen: &mut Screen) {
    let columns = screen.columns;
    let look = screen.look_mut();
    let next = look.sort.map_or(0, |column| column + 1);
    *look = Look { sort: (next < columns).then_some(next), reversed: false, row: 0 };
}
