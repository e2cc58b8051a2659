//! The screen: 80 columns and 24 lines are enough, and nothing is told by colour alone.

use ratatui::{
    Frame,
    layout::{Alignment, Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Paragraph, Row, Table, TableState, Wrap},
};

use super::{
    keys::HELP,
    rates::Now,
    screen::{Screen, Tab},
    sheets::{self, Sheet, Tone, si},
};
use crate::output::age;

/// Whether there are colours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    pub(super) colours: bool,
}

impl Palette {
    /// As the environment wants it: `NO_COLOR`, set to anything, means none.
    pub(super) fn of_environment() -> Self {
        let set = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { colours: !set }
    }

    fn of(self, tone: Tone) -> Style {
        let style = Style::new();
        match (tone, self.colours) {
            (Tone::Plain, _) => style,
            (Tone::Good, true) => style.fg(Color::Green),
            (Tone::Doubtful, true) => style.fg(Color::Yellow),
            (Tone::Bad, true) => style.fg(Color::Red),
            (Tone::Good, false) => style,
            (Tone::Doubtful | Tone::Bad, false) => style.add_modifier(Modifier::BOLD),
        }
    }
}

/// Draws all of it, and writes down how much there was room for.
pub(super) fn draw(frame: &mut Frame, screen: &mut Screen, now: &Now, palette: Palette) {
    let line = Constraint::Length(1);
    let parts = [line, line, line, line, Constraint::Min(0), Constraint::Length(2), line];
    let [daemon, totals, alarm, tabs, body, detail, keys] =
        Layout::vertical(parts).areas(frame.area());
    frame.render_widget(Paragraph::new(daemon_line(now)), daemon);
    frame.render_widget(Paragraph::new(totals_line(now)), totals);
    frame.render_widget(Paragraph::new(alarm_line(screen, now, palette)), alarm);
    frame.render_widget(Paragraph::new(tabs_line(screen)), tabs);
    if screen.help {
        help(frame, body);
    } else {
        view(frame, [body, detail], screen, now, palette);
    }
    let hint = "q end  tab view  arrows move  s sort  r reverse  / filter  p hold  ? help";
    frame.render_widget(Paragraph::new(hint), keys);
}

fn daemon_line(now: &Now) -> Line<'static> {
    let status = &now.reading.status;
    let uptime = status.uptime.and_then(|up| std::time::Duration::try_from(up).ok());
    let up = status.backends.iter().filter(|backend| backend.state == "up").count();
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

fn totals_line(now: &Now) -> Line<'static> {
    let Some(seconds) = now.seconds else { return Line::from("no rates yet") };
    let sum = |part: fn(&super::rates::Speed) -> f64| now.services.values().map(part).sum::<f64>();
    let drops: f64 = sheets::drops::rates(now).sum();
    Line::from(format!(
        "{} packets/s, {} bit/s, {} connections/s, {} drops/s, over {seconds:.1} s",
        si(sum(|s| s.packets)),
        si(sum(|s| s.bytes) * 8.0),
        si(sum(|s| s.connections)),
        si(drops),
    ))
}

/// What is not as it should be, in one line; the worst first.
fn alarm_line(screen: &Screen, now: &Now, palette: Palette) -> Line<'static> {
    let status = &now.reading.status;
    let (tone, text) = if let Some(why) = &now.silent {
        (Tone::Bad, format!("STALE: {why}"))
    } else if !status.behind.is_empty() {
        (Tone::Bad, format!("BEHIND: the packet path is not at the generation: {}", status.behind))
    } else if screen.paused {
        (Tone::Doubtful, "HELD: p lets it go on".into())
    } else if !status.settling.is_empty() {
        let pools: Vec<_> = status.settling.iter().map(|s| s.pool.as_str()).collect();
        (Tone::Plain, format!("in a change of home: {}", pools.join(", ")))
    } else {
        (Tone::Plain, String::new())
    };
    Line::styled(text, palette.of(tone))
}

fn tabs_line(screen: &Screen) -> Line<'static> {
    let mut spans: Vec<_> = Tab::ALL
        .into_iter()
        .map(|tab| match tab == screen.tab {
            true => Span::styled(
                format!("[{}] ", tab.name()),
                Style::new().add_modifier(Modifier::BOLD),
            ),
            false => Span::raw(format!(" {}  ", tab.name())),
        })
        .collect();
    if screen.filtering {
        spans.push(Span::raw(format!("  filter: {}_", screen.filter)));
    } else if !screen.filter.is_empty() {
        spans.push(Span::raw(format!("  filter: {}", screen.filter)));
    }
    Line::from(spans)
}

/// The rows, and below them the last column of the marked one, in full.
fn view(
    frame: &mut Frame,
    [area, detail]: [Rect; 2],
    screen: &mut Screen,
    now: &Now,
    palette: Palette,
) {
    let look = screen.look();
    let sheet = sheets::sheet(screen.tab, now, area.width).filtered(&screen.filter).sorted(look);
    screen.columns = sheet.columns.len();
    screen.rows = sheet.rows.len();
    // The headings take a line.
    screen.room = usize::from(area.height).saturating_sub(1);
    if sheet.rows.is_empty() {
        let why = if screen.filter.is_empty() { sheet.empty } else { "nothing has that in it" };
        frame.render_widget(Paragraph::new(why), area);
        return;
    }
    screen.step(0);
    let marked = screen.look().row;
    if let Some(text) = sheet.sentence(marked) {
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), detail);
    }
    let widths = sheet.widths();
    let table = Table::new(rows(&sheet, palette), widths)
        .header(headings(&sheet, look.sort, look.reversed))
        .column_spacing(2)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::new().with_selected(Some(marked));
    frame.render_stateful_widget(table, area, &mut state);
}

fn rows<'s>(sheet: &'s Sheet, palette: Palette) -> impl Iterator<Item = Row<'s>> {
    sheet.rows.iter().map(move |row| {
        let cells = row.cells.iter().zip(&sheet.columns).map(|(cell, column)| {
            let side = if column.number { Alignment::Right } else { Alignment::Left };
            Line::from(cell.text.as_str()).alignment(side)
        });
        Row::new(cells).style(palette.of(row.tone))
    })
}

/// The column that is sorted by has a mark: `v` from the top down, `^` from the bottom up.
fn headings(sheet: &Sheet, sort: Option<usize>, reversed: bool) -> Row<'static> {
    let cells = sheet.columns.iter().enumerate().map(|(at, column)| {
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

fn help(frame: &mut Frame, area: Rect) {
    let mut lines: Vec<_> =
        HELP.iter().map(|(keys, what)| Line::from(format!("{keys:<25}{what}"))).collect();
    lines.push(Line::from(""));
    lines.push(Line::from(format!("bars: {}", crate::verbs::regions::LEGEND)));
    lines.push(Line::from("share: of the packets to all backends of the pool"));
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), area);
}
