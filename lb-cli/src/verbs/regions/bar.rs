//! A region as a bar of characters: what became of what it was asked for, and the room that is left.

use super::row::Region;

/// Characters of the longest bar.
const LENGTH: usize = 32;

/// What the characters mean.
pub(super) const LEGEND: &str = "# admitted  ! over the limit  > spilled out  x refused  . room";

/// What a whole bar stands for: the most that any of these regions was asked for or can take.
pub(super) fn whole(regions: &[Region]) -> f64 {
    let long = |region: &Region| room_for(region).max(region.shown().offered);
    regions.iter().map(long).fold(0.0, f64::max)
}

/// The limit, where rates are shown: totals have no room beside them.
fn room_for(region: &Region) -> f64 {
    region.per_second.and(region.limit_per_second).unwrap_or(0.0)
}

/// The bar of a region.
pub(super) fn bar(region: &Region, whole: f64) -> String {
    let shown = region.shown();
    let within = (shown.admitted - shown.overrun).max(0.0);
    let mut bar = String::with_capacity(LENGTH);
    let mut reached = 0.0;
    for (character, amount) in
        [('#', within), ('!', shown.overrun), ('>', shown.spilled_out), ('x', shown.refused)]
    {
        reached += amount.max(0.0);
        fill(&mut bar, character, amount, reached / whole);
    }
    let room = room_for(region) - reached;
    fill(&mut bar, '.', room, (reached + room) / whole);
    format!("|{bar:<LENGTH$}|")
}

/// Continues a bar to a share of the whole; what there is at all is seen, if there is room.
fn fill(bar: &mut String, character: char, amount: f64, share: f64) {
    if amount > 0.0 {
        let end = (share * LENGTH as f64).round() as usize;
        let end = end.max(bar.len() + 1).min(LENGTH);
        bar.extend(std::iter::repeat_n(character, end.saturating_sub(bar.len())));
    }
}
