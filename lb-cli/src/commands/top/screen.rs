//! What the user has selected on the screen, and the keys.

use std::ops::ControlFlow;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tab {
    #[default]
    Regions,
    Services,
    Backends,
    Drops,
    Overrides,
    History,
    Conditions,
}

impl Tab {
    pub(super) const ALL: [Self; 7] = [
        Self::Regions,
        Self::Services,
        Self::Backends,
        Self::Drops,
        Self::Overrides,
        Self::History,
        Self::Conditions,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Regions => "regions",
            Self::Services => "services",
            Self::Backends => "backends",
            Self::Drops => "drops",
            Self::Overrides => "overrides",
            Self::History => "history",
            Self::Conditions => "conditions",
        }
    }

    /// The tab `by` places further on, wrapping around.
    pub(super) const fn advance(self, by: usize) -> Self {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

/// Sorting and selection of a tab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TabState {
    /// The column to sort by; `None`: the daemon's order.
    pub(super) sort: Option<usize>,
    /// Whether the order is reversed.
    pub(super) reversed: bool,
    /// The selected row.
    pub(super) row: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Screen {
    pub(super) tab: Tab,
    pub(super) tabs: [TabState; Tab::ALL.len()],
    /// Only rows that contain this are shown.
    pub(super) filter: String,
    /// Whether keys are typed into the filter.
    pub(super) filtering: bool,
    pub(super) help: bool,
    pub(super) paused: bool,
    /// Rows of the view, and how many fit, as last drawn.
    pub(super) rows: usize,
    pub(super) visible_rows: usize,
    /// Columns of the view, as last drawn.
    pub(super) columns: usize,
}

impl Screen {
    /// The state of the current tab.
    pub(super) fn tab_state(&self) -> TabState {
        self.tabs[self.tab as usize]
    }

    pub(super) fn tab_state_mut(&mut self) -> &mut TabState {
        &mut self.tabs[self.tab as usize]
    }

    /// Moves the selection down, or up if negative.
    pub(super) fn move_selection(&mut self, by: isize) {
        let last = self.rows.saturating_sub(1);
        let row = self.tab_state().row.min(last).saturating_add_signed(by).min(last);
        self.tab_state_mut().row = row;
    }
}

pub(super) const HELP: [(&str, &str); 10] = [
    ("tab, right", "next view"),
    ("shift-tab, left", "previous view"),
    ("up, down", "select another row"),
    ("page up/down, home, end", "move by a page, or to the first or last row"),
    ("s", "sort by the next column; after the last, not sorted"),
    ("r", "reverse the order"),
    ("/", "show only rows that contain a text; escape clears it"),
    ("p, space", "pause or resume"),
    ("?", "open or close this page"),
    ("q, ctrl-c", "quit"),
];

/// Handles a key; breaks if the user quits.
pub(super) fn handle_event(screen: &mut Screen, event: &Event) -> ControlFlow<()> {
    let Event::Key(key) = event else { return ControlFlow::Continue(()) };
    if key.kind == KeyEventKind::Release {
        return ControlFlow::Continue(());
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if control && key.code == KeyCode::Char('c') {
        return ControlFlow::Break(());
    }
    if screen.filtering {
        edit_filter(screen, key);
        return ControlFlow::Continue(());
    }
    if screen.help {
        match key.code {
            KeyCode::Char('q') => return ControlFlow::Break(()),
            _ => screen.help = false,
        }
        return ControlFlow::Continue(());
    }
    let page = isize::try_from(screen.visible_rows.max(1)).unwrap_or(1);
    match key.code {
        KeyCode::Char('q') => return ControlFlow::Break(()),
        KeyCode::Tab | KeyCode::Right => screen.tab = screen.tab.advance(1),
        KeyCode::BackTab | KeyCode::Left => screen.tab = screen.tab.advance(Tab::ALL.len() - 1),
        KeyCode::Up => screen.move_selection(-1),
        KeyCode::Down => screen.move_selection(1),
        KeyCode::PageUp => screen.move_selection(-page),
        KeyCode::PageDown => screen.move_selection(page),
        KeyCode::Home => screen.move_selection(isize::MIN),
        KeyCode::End => screen.move_selection(isize::MAX),
        KeyCode::Char('s') => sort_by_next_column(screen),
        KeyCode::Char('r') => {
            let state = screen.tab_state_mut();
            state.reversed = !state.reversed;
        }
        KeyCode::Char('/') => screen.filtering = true,
        KeyCode::Esc => screen.filter.clear(),
        KeyCode::Char('p' | ' ') => screen.paused = !screen.paused,
        KeyCode::Char('?' | 'h') => screen.help = true,
        _ => {}
    }
    ControlFlow::Continue(())
}

/// Handles a key while the filter is being typed.
fn edit_filter(screen: &mut Screen, key: &KeyEvent) {
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
    screen.tab_state_mut().row = 0;
}

/// After the last column comes the daemon's order.
fn sort_by_next_column(screen: &mut Screen) {
    let columns = screen.columns;
    let state = screen.tab_state_mut();
    let next = state.sort.map_or(0, |column| column + 1);
    *state = TabState { sort: (next < columns).then_some(next), reversed: false, row: 0 };
}
