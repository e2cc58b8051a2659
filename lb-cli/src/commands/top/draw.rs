//! Draws the screen. 80 columns and 24 lines suffice, and nothing is shown by colour alone.

use ratatui::{
    Frame,
    layout::{Alignment, Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Paragraph, Row, Table, TableState, Wrap},
};

use spillway_proto::v1::{self, BackendState};

use super::{
    sample::{Snapshot, TrafficRate},
    screen::{HELP, Screen, Tab},
    traffic_views::drop_rates,
    views::{Tone, View, build_view, format_si},
};
use crate::output::{age, count};

#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    pub(super) colours: bool,
}

impl Palette {
    /// `NO_COLOR`, set to anything, disables colours (no-color.org).
    pub(super) fn from_environment() -> Self {
        let set = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colours: !set }
    }

    fn style(self, tone: Tone) -> Style {
        let style = Style::new();
        match (tone, self.colours) {
            (Tone::Plain, _) => style,
            (Tone::Good, true) => style.fg(Color::Green),
            (Tone::Warning, true) => style.fg(Color::Yellow),
            (Tone::Bad, true) => style.fg(Color::Red),
            (Tone::Good, false) => style,
            (Tone::Warning | Tone::Bad, false) => style.add_modifier(Modifier::BOLD),
        }
    }
}

/// Draws the screen, and records in `screen` how many rows and columns there are.
pub(super) fn draw(frame: &mut Frame, screen: &mut Screen, now: &Snapshot, palette: Palette) {
    let line = Constraint::Length(1);
    let parts = [line, line, line, line, Constraint::Min(0), Constraint::Length(2), line];
    let [daemon, totals, alarm, tabs, body, detail, keys] =
        Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(daemon_line(now)), daemon);
    frame.render_widget(Paragraph::new(totals_line(now)), totals);
    frame.render_widget(Paragraph::new(alarm_line(screen, now, palette)), alarm);
    frame.render_widget(Paragraph::new(tabs_line(screen)), tabs);
    if screen.help {
        draw_help(frame, body);
    } else {
        draw_view(frame, [body, detail], screen, now, palette);
    }
    frame.render_widget(Paragraph::new(keys_line(screen)), keys);
}

/// The filter, if there is one, or else the keys.
fn keys_line(screen: &Screen) -> String {
    match (screen.filtering, screen.filter.as_str()) {
        (true, filter) => format!("filter: {filter}_"),
        (false, "") => {
            "q quit  tab view  arrows move  s sort  r reverse  / filter  p pause  ? help".into()
        }
        (false, filter) => format!("filter: {filter}"),
    }
}

fn daemon_line(now: &Snapshot) -> Line<'static> {
    let status = &now.reading.status;
    let uptime = status.uptime.and_then(|up| std::time::Duration::try_from(up).ok());
    let up = status.backends.iter().filter(|backend| backend.state() == BackendState::Up).count();
    let region = match status.region.as_str() {
        "" => String::new(),
        region => format!("region {region}, "),
    };
    let text = format!(
        "spillwayd {}, up {}, {region}generation {}, {up} of {} backends up",
        status.version,
        age(uptime.unwrap_or_default()),
        status.generation,
        status.backends.len(),
    );
    Line::from(text).style(Style::new().add_modifier(Modifier::BOLD))
}

fn totals_line(now: &Snapshot) -> Line<'static> {
    let Some(seconds) = now.seconds else { return Line::from("no rates yet") };
    let sum = |part: fn(&TrafficRate) -> f64| now.services.values().map(part).sum::<f64>();
    let drops: f64 = drop_rates(now).sum();
    Line::from(format!(
        "{} packets/s, {} bit/s, {} connections/s, {} drops/s, over {seconds:.1} s",
        format_si(sum(|s| s.packets)),
        format_si(sum(|s| s.bytes) * 8.0),
        format_si(sum(|s| s.connections)),
        format_si(drops),
    ))
}

/// The worst of what is wrong, in one line.
fn alarm_line(screen: &Screen, now: &Snapshot, palette: Palette) -> Line<'static> {
    let status = &now.reading.status;
    let (tone, text) = if let Some(why) = &now.error {
        (Tone::Bad, format!("STALE: {why}"))
    } else if !status.behind.is_empty() {
        (
            Tone::Bad,
            format!("BEHIND: the packet path has not reached the generation: {}", status.behind),
        )
    } else if screen.paused {
        (Tone::Warning, "PAUSED: p resumes".into())
    } else if let [first, others @ ..] = &status.conditions[..] {
        let more = match others.len() as u64 {
            0 => String::new(),
            number => format!(" (and {})", count(number, "more condition")),
        };
        (Tone::Bad, format!("CONDITION: {}{more}: {}", first.subject, first.text))
    } else {
        (Tone::Plain, planned(status))
    };
    Line::styled(text, palette.style(tone))
}

/// What somebody asked for: overrides and remaps.
fn planned(status: &v1::StatusResponse) -> String {
    let overrides = match status.overrides.len() as u64 {
        0 => None,
        number => Some(count(number, "override")),
    };
    let pools: Vec<_> = status.settling.iter().map(|s| s.pool.as_str()).collect();
    let remaps = (!pools.is_empty()).then(|| format!("remapping: {}", pools.join(", ")));
    overrides.into_iter().chain(remaps).collect::<Vec<_>>().join("; ")
}

fn tabs_line(screen: &Screen) -> Line<'static> {
    let spans: Vec<_> = Tab::ALL
        .into_iter()
        .map(|tab| match tab == screen.tab {
            true => Span::styled(
                format!("[{}] ", tab.name()),
                Style::new().add_modifier(Modifier::BOLD),
            ),
            false => Span::raw(format!(" {}  ", tab.name())),
        })
        .collect();
    Line::from(spans)
}

/// The rows, and below them the full last column of the selected row.
fn draw_view(
    frame: &mut Frame,
    [area, detail]: [Rect; 2],
    screen: &mut Screen,
    now: &Snapshot,
    palette: Palette,
) {
    let state = screen.tab_state();
    let view = build_view(screen.tab, now, area.width).filtered(&screen.filter).sorted(state);
    screen.columns = view.columns.len();
    screen.rows = view.rows.len();
    // The headings take a line.
    screen.visible_rows = usize::from(area.height).saturating_sub(1);
    if view.rows.is_empty() {
        let why = if screen.filter.is_empty() { view.empty } else { "no row contains this text" };
        frame.render_widget(Paragraph::new(why), area);
        return;
    }
    screen.move_selection(0);
    let selected = screen.tab_state().row;
    if let Some(text) = view.sentence(selected) {
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), detail);
    }
    let widths = view.widths();
    let table = Table::new(rows(&view, palette), widths)
        .header(headings(&view, state.sort, state.reversed))
        .column_spacing(2)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut table_state = TableState::new().with_selected(Some(selected));
    frame.render_stateful_widget(table, area, &mut table_state);
}

fn rows<'s>(view: &'s View, palette: Palette) -> impl Iterator<Item = Row<'s>> {
    view.rows.iter().map(move |row| {
        let cells = row.cells.iter().zip(&view.columns).map(|(cell, column)| {
            let side = if column.number { Alignment::Right } else { Alignment::Left };
            Line::from(cell.text.as_str()).alignment(side)
        });
        Row::new(cells).style(palette.style(row.tone))
    })
}

/// The sort column has a mark: `v` for descending, `^` for reversed.
fn headings(view: &View, sort: Option<usize>, reversed: bool) -> Row<'static> {
    let cells = view.columns.iter().enumerate().map(|(at, column)| {
        let mark = match (sort == Some(at), reversed) {
            (false, _) => "",
            (true, false) => "v",
            (true, true) => "^",
        };
        let side = if column.number { Alignment::Right } else { Alignment::Left };
        Line::from(format!("{}{mark}", column.heading)).alignment(side)
    });
    Row::new(cells).style(Style::new().add_modifier(Modifier::BOLD))
}

fn draw_help(frame: &mut Frame, area: Rect) {
    let mut lines: Vec<_> =
        HELP.iter().map(|(keys, what)| Line::from(format!("{keys:<25}{what}"))).collect();
    lines.push(Line::from(""));
    lines.push(Line::from(format!("bars: {}", crate::commands::regions::LEGEND)));
    lines.push(Line::from(format!("used: {}", crate::commands::regions::USED)));
    lines.push(Line::from("share: share of the packets to all backends of the pool"));
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}
