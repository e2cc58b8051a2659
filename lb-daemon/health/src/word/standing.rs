use super::{Said, Utilisation, Word};

/// What stands of all that a backend has said to one check.
#[derive(Clone, Debug)]
pub(in super::super) struct Standing {
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
    pub(in super::super) fn new(fall: u32) -> Self {
        let (down, drain, percent, utilisation, unheard) = (None, None, None, None, None);
        Self { fall, down, drain, percent, utilisation, missed: 0, silent: 0, unheard }
    }

    /// Has misses in a row judged by another `fall`, from the next result on.
    pub(in super::super) fn judge_by(&mut self, fall: u32) {
        self.fall = fall;
    }

    /// Takes a line.
    pub(in super::super) fn hear(&mut self, word: Word) {
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
    pub(in super::super) fn miss(&mut self, why: &str, silent: bool) {
        self.missed = self.missed.saturating_add(1);
        self.silent = if silent { self.silent.saturating_add(1) } else { 0 };
        if self.missed >= self.fall {
            let (missed, silent) = (self.missed, self.silent);
            let unheard = Some(format!("nothing heard: {why}"));
            *self = Self { missed, silent, unheard, ..Self::new(self.fall) };
        }
    }

    /// That it is down, and why.
    pub(in super::super) fn down(&self) -> Option<&str> {
        self.down.as_deref()
    }

    /// Whether nothing has come of its host for as many in a row as `fall` says.
    pub(in super::super) fn is_silent(&self) -> bool {
        self.silent >= self.fall
    }

    /// Whether a row of misses has begun that would end with nothing that stands.
    pub(in super::super) fn is_in_doubt(&self) -> bool {
        (1..self.fall).contains(&self.missed)
    }

    pub(in super::super) fn said(&self) -> Said {
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
