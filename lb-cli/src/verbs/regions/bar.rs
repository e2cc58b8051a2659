//! A region as a bar of characters: what became of what it was asked for, and the room that is left.

use super::row::Region;

/// Characters of the longest bar.
const LENGTH: usize = 32;

/// What the characters mean.
pub(crate) const LEGEND: &str = "# admitted  ! over the limit  > spilled out  x refused  . room";

/// What a bar is made of, all in one unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Parts {
    /// What it took.
    pub(crate) admitted: f64,
    /// Of that, what was beyond its limit.
    pub(crate) overrun: f64,
    /// What another region took.
    pub(crate) spilled_out: f64,
    /// What was dropped.
    pub(crate) refused: f64,
    /// What it can take; 0: not known, or without limit.
    pub(crate) limit: f64,
}

impl Parts {
    /// What it was asked for, or can take, if that is more.
    pub(crate) fn long(&self) -> f64 {
        self.limit.max(self.admitted + self.spilled_out + self.refused)
    }

    /// The bar, with its ends; `whole` is what so many characters stand for.
    pub(crate) fn bar(&self, whole: f64, length: usize) -> String {
        let within = (self.admitted - self.overrun).max(0.0);
        let mut bar = String::with_capacity(length);
        let mut reached = 0.0;
        for (character, amount) in
            [('#', within), ('!', self.overrun), ('>', self.spilled_out), ('x', self.refused)]
        {
            reached += amount.max(0.0);
            fill(&mut bar, character, amount, reached / whole, length);
        }
        let room = self.limit - reached;
        fill(&mut bar, '.', room, (reached + room) / whole, length);
        format!("|{bar:<length$}|")
    }
}

/// What a whole bar stands for: the most that any of these regions was asked for or can take.
pub(super) fn whole(regions: &[Region], rates: bool) -> f64 {
    regions.iter().map(|region| parts(region, rates).long()).fold(0.0, f64::max)
}

/// The bar of a region.
pub(super) fn bar(region: &Region, rates: bool, whole: f64) -> String {
    parts(region, rates).bar(whole, LENGTH)
}

/// The limit counts where rates are shown: totals have no room beside them.
fn parts(region: &Region, rates: bool) -> Parts {
    let limit = region.limit_per_second.filter(|_| rates).unwrap_or(0.0);
    let Some(shown) = region.shown(rates) else { return Parts { limit, ..Parts::default() } };
    Parts {
        admitted: shown.admitted,
        overrun: shown.overrun,
        spilled_out: shown.spilled_out,
        refused: shown.refused,
        limit,
    }
}

/// Continues a bar to a share of the whole; what there is at all is seen, if there is room.
fn fill(bar: &mut String, character: char, amount: f64, share: f64, length: usize) {
    if amount > 0.0 {
        let end = (share * length as f64).round() as usize;
        let end = end.max(bar.len() + 1).min(length);
        bar.extend(std::iter::repeat_n(character, end.saturating_sub(bar.len())));
    }
}
