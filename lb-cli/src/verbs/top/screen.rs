//! What the person at the keys has chosen.

/// One of the views.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Tab {
    #[default]
    Regions,
    Services,
    Backends,
    Drops,
}

impl Tab {
    pub(super) const ALL: [Self; 4] = [Self::Regions, Self::Services, Self::Backends, Self::Drops];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Regions => "regions",
            Self::Services => "services",
            Self::Backends => "backends",
            Self::Drops => "drops",
        }
    }

    /// The view so many further on, round and round.
    pub(super) const fn further(self, by: usize) -> Self {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }
}

/// How a view is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Look {
    /// The column that rows are sorted by; `None`: they come as the daemon has them.
    pub(super) sort: Option<usize>,
    /// Whether the order is turned round: from the least number, from the last name.
    pub(super) reversed: bool,
    /// The row that is marked.
    pub(super) row: usize,
}

/// All that was chosen.
#[derive(Clone, Debug, Default)]
pub(super) struct Screen {
    pub(super) tab: Tab,
    pub(super) looks: [Look; Tab::ALL.len()],
    /// Only rows with this in them are shown.
    pub(super) filter: String,
    /// Whether keys are letters of the filter.
    pub(super) filtering: bool,
    pub(super) help: bool,
    pub(super) paused: bool,
    /// Rows of the view, and how many of them there is room for: as last drawn.
    pub(super) rows: usize,
    pub(super) room: usize,
    /// Columns of the view, as last drawn.
    pub(super) columns: usize,
}

impl Screen {
    /// How the view is looked at.
    pub(super) fn look(&self) -> Look {
        self.looks[self.tab as usize]
    }

    pub(super) fn look_mut(&mut self) -> &mut Look {
        &mut self.looks[self.tab as usize]
    }

    /// Marks a row so many further down, or up.
    pub(super) fn step(&mut self, by: isize) {
        let last = self.rows.saturating_sub(1);
        let row = self.look().row.min(last).saturating_add_signed(by).min(last);
        self.look_mut().row = row;
    }
}
