//! What a backend says of itself, in the line of an agent or in a header of an HTTP answer. Pure.
//!
//! One line is words of HAProxy's agent protocol and metrics of ORCA as text (`parse`). What a line
//! leaves out stands as it was said before (`standing`).

mod parse;

pub(super) use parse::Unreadable;

/// Longest line that is read, bytes.
pub(super) const MOST: usize = 1024;

/// Longest reason that is kept of one, characters.
const REASON: usize = 80;

/// How much of what it can do a backend does: 1000 for all of it, and more where work waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Utilisation(u32);

impl Utilisation {
    /// More than this is as much as this.
    const MOST: f64 = 1000.0;

    /// A share of what it can do, 1 for all; `None`: negative, or no number.
    pub fn new(share: f64) -> Option<Self> {
        // The conversion cannot be beyond its type.
        (share >= 0.0).then(|| Self((share.min(Self::MOST) * 1000.0).round() as u32))
    }

    /// The share, 1 for all of it.
    pub fn share(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// Whether another is far enough from it to be told.
    fn is_news(self, other: Self) -> bool {
        self.0.abs_diff(other.0) >= 10
    }
}

/// What a backend's checks heard it say of itself, and what of it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// It wants no new connections, and how it said so.
    pub drain: Option<String>,
    /// Share of its weight that it wants, percent, 1 to 100; `None`: it does not say.
    pub percent: Option<u8>,
    /// `None`: it does not say.
    pub utilisation: Option<Utilisation>,
    /// Why what it says cannot be had any more, so that nothing of it stands.
    pub unheard: Option<String>,
}

impl Said {
    /// Whether there is nothing in it that counts.
    pub fn is_nothing(&self) -> bool {
        self.drain.is_none() && self.percent.is_none() && self.utilisation.is_none()
    }

    /// Whether `other` is far enough from it to be told.
    pub(super) fn is_news(&self, other: &Self) -> bool {
        let utilisation = match (self.utilisation, other.utilisation) {
            (Some(one), Some(other)) => one.is_news(other),
            (one, other) => one != other,
        };
        utilisation
            || (&self.drain, self.percent, &self.unheard)
                != (&other.drain, other.percent, &other.unheard)
    }

    /// Takes in what another check of the same backend heard.
    pub(super) fn join(&mut self, check: &str, other: &Self) {
        let named = |why: &String| format!("check {check}: {why}");
        let Self { drain, percent, utilisation, unheard } = self;
        *drain = drain.take().or_else(|| other.drain.as_ref().map(named));
        *percent = [*percent, other.percent].into_iter().flatten().min();
        *utilisation = (*utilisation).max(other.utilisation);
        *unheard = unheard.take().or_else(|| other.unheard.as_ref().map(named));
    }
}

/// What one line says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// `up` or `ready`: nothing of what it said against itself stands any more.
    ready: bool,
    /// `down` and the like, and why.
    down: Option<String>,
    /// `drain` and the like, and why.
    drain: Option<String>,
    /// 0 to 100.
    percent: Option<u8>,
    utilisation: Option<Utilisation>,
}

/// What stands of all that a backend has said to one check.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    /// Misses in a row after which nothing stands any more.
    fall: u32,
    down: Option<String>,
    drain: Option<String>,
    percent: Option<u8>,
    utilisation: Option<Utilisation>,
    /// Misses in a row, up to now.
    missed: u32,
    /// Misses in a row without a sign of the host, up to now.
    silent: u32,
    /// Why nothing stands.
    unheard: Option<String>,
}

impl Standing {
    pub(super) fn new(fall: u32) -> Self {
        let (down, drain, percent, utilisation, unheard) = (None, None, None, None, None);
        Self { fall, down, drain, percent, utilisation, missed: 0, silent: 0, unheard }
    }

    /// Has misses in a row judged by another `fall`, from the next result on.
    pub(super) fn judge_by(&mut self, fall: u32) {
        self.fall = fall;
    }

    /// Takes a line.
    pub(super) fn hear(&mut self, word: Word) {
        (self.missed, self.silent, self.unheard) = (0, 0, None);
        if word.ready {
            (self.down, self.drain) = (None, None);
        }
        self.down = word.down.or_else(|| self.down.take());
        self.drain = word.drain.or_else(|| self.drain.take());
        self.percent = word.percent.or(self.percent);
        self.utilisation = word.utilisation.or(self.utilisation);
    }

    /// There was none, or none that can be read; `silent`: nor any sign of the host.
    pub(super) fn miss(&mut self, why: &str, silent: bool) {
        self.missed = self.missed.saturating_add(1);
        self.silent = if silent { self.silent.saturating_add(1) } else { 0 };
        if self.missed >= self.fall {
            let (missed, silent) = (self.missed, self.silent);
            let unheard = Some(format!("nothing heard: {why}"));
            *self = Self { missed, silent, unheard, ..Self::new(self.fall) };
        }
    }

    /// That it is down, and why.
    pub(super) fn down(&self) -> Option<&str> {
        self.down.as_deref()
    }

    /// Whether nothing has come of its host for as many in a row as `fall` says.
    pub(super) fn is_silent(&self) -> bool {
        self.silent >= self.fall
    }

    /// Whether a row of misses has begun that would end with nothing that stands.
    pub(super) fn is_in_doubt(&self) -> bool {
        (1..self.fall).contains(&self.missed)
    }

    pub(super) fn said(&self) -> Said {
        let says = |what: &str| format!("the backend says {what}");
        let none = (self.percent == Some(0)).then(|| says("0%"));
        Said {
            drain: self.drain.as_deref().map(says).or(none),
            percent: self.percent.filter(|percent| *percent > 0),
            utilisation: self.utilisation,
            unheard: self.unheard.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
