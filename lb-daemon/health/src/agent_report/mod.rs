//! What a backend reports of itself, in the line of an agent or in a header of an HTTP answer. No I/O.
//!
//! A line has keywords of HAProxy's agent protocol and ORCA metrics as text (`parse`). What a line does not mention
//! stays as it was ([`ReportState`]).

mod parse;

pub(super) use parse::LineError;

/// Longest line that is read, bytes.
pub(super) const MOST: usize = 1024;

/// Longest reason that is kept, characters.
const REASON: usize = 80;

/// Utilisation in thousandths: 1000 is full use, more means that work is queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Utilisation(u32);

impl Utilisation {
    /// Upper bound; larger values are cut to it.
    const MOST: f64 = 1000.0;

    /// From a share, 1 for full use; `None`: negative or not a number.
    pub fn new(share: f64) -> Option<Self> {
        // The value is within the range of `u32`.
        (share >= 0.0).then(|| Self((share.min(Self::MOST) * 1000.0).round() as u32))
    }

    /// The share, 1 for full use.
    pub fn share(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// Whether another value differs enough to be reported.
    fn is_news(self, other: Self) -> bool {
        self.0.abs_diff(other.0) >= 10
    }
}

/// What the agent reports of a backend's checks add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentReport {
    /// Why it wants no new connections.
    pub drain: Option<String>,
    /// Share of its weight that it asks for, percent, 1 to 100; `None`: not reported.
    pub percent: Option<u8>,
    /// `None`: not reported.
    pub utilisation: Option<Utilisation>,
    /// Why the report cannot be read, so that none applies.
    pub report_error: Option<String>,
}

impl AgentReport {
    /// Whether nothing in it has an effect.
    pub fn is_nothing(&self) -> bool {
        self.drain.is_none() && self.percent.is_none() && self.utilisation.is_none()
    }

    /// Whether `other` differs enough to be reported.
    pub(super) fn is_news(&self, other: &Self) -> bool {
        let utilisation = match (self.utilisation, other.utilisation) {
            (Some(one), Some(other)) => one.is_news(other),
            (one, other) => one != other,
        };
        utilisation
            || (&self.drain, self.percent, &self.report_error)
                != (&other.drain, other.percent, &other.report_error)
    }

    /// Merges the report of another check of the same backend.
    pub(super) fn join(&mut self, check: &str, other: &Self) {
        let named = |why: &String| format!("check {check}: {why}");
        let Self { drain, percent, utilisation, report_error } = self;
        *drain = drain.take().or_else(|| other.drain.as_ref().map(named));
        *percent = [*percent, other.percent].into_iter().flatten().min();
        *utilisation = (*utilisation).max(other.utilisation);
        *report_error = report_error.take().or_else(|| other.report_error.as_ref().map(named));
    }
}

/// The content of one line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportLine {
    /// `up` or `ready`: cancels `down` and `drain`.
    ready: bool,
    /// `down`, `failed` or `stopped`, with the reason.
    down: Option<String>,
    /// `drain` or `maint`, with the reason.
    drain: Option<String>,
    /// 0 to 100.
    percent: Option<u8>,
    utilisation: Option<Utilisation>,
}

/// The state that follows from all lines of one check.
#[derive(Clone, Debug)]
pub(super) struct ReportState {
    /// Consecutive misses after which the report does not apply any more.
    fall: u32,
    down: Option<String>,
    drain: Option<String>,
    percent: Option<u8>,
    utilisation: Option<Utilisation>,
    /// Consecutive misses.
    missed: u32,
    /// Consecutive misses without a sign of the host.
    silent: u32,
    /// Why no report applies.
    report_error: Option<String>,
}

impl ReportState {
    pub(super) fn new(fall: u32) -> Self {
        let (down, drain, percent, utilisation, report_error) = (None, None, None, None, None);
        Self { fall, down, drain, percent, utilisation, missed: 0, silent: 0, report_error }
    }

    /// Sets another `fall`, from the next result on.
    pub(super) fn judge_by(&mut self, fall: u32) {
        self.fall = fall;
    }

    /// Applies a line.
    pub(super) fn update(&mut self, line: ReportLine) {
        (self.missed, self.silent, self.report_error) = (0, 0, None);
        if line.ready {
            (self.down, self.drain) = (None, None);
        }
        self.down = line.down.or_else(|| self.down.take());
        self.drain = line.drain.or_else(|| self.drain.take());
        self.percent = line.percent.or(self.percent);
        self.utilisation = line.utilisation.or(self.utilisation);
    }

    /// Counts a missing or unreadable line; `silent`: the host gave no sign either.
    pub(super) fn miss(&mut self, why: &str, silent: bool) {
        self.missed = self.missed.saturating_add(1);
        self.silent = if silent { self.silent.saturating_add(1) } else { 0 };
        if self.missed >= self.fall {
            let (missed, silent) = (self.missed, self.silent);
            let report_error = Some(format!("no report: {why}"));
            *self = Self { missed, silent, report_error, ..Self::new(self.fall) };
        }
    }

    /// Why the backend is down.
    pub(super) fn down(&self) -> Option<&str> {
        self.down.as_deref()
    }

    /// Whether the host has given no sign for `fall` misses.
    pub(super) fn is_silent(&self) -> bool {
        self.silent >= self.fall
    }

    /// Whether misses have begun that could end the report.
    pub(super) fn is_in_doubt(&self) -> bool {
        (1..self.fall).contains(&self.missed)
    }

    pub(super) fn report(&self) -> AgentReport {
        let says = |what: &str| format!("the backend says {what}");
        let none = (self.percent == Some(0)).then(|| says("0%"));
        AgentReport {
            drain: self.drain.as_deref().map(says).or(none),
            percent: self.percent.filter(|percent| *percent > 0),
            utilisation: self.utilisation,
            report_error: self.report_error.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
