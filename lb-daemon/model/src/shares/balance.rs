//! Shares that follow utilisation: a member with a higher utilisation than its group takes fewer new connections.
//!
//! An integral controller in the logarithms of shares. Of a backend that serves what it gets, the
//! utilisation is in proportion to its share, so the difference of logarithms from the mean shrinks
//! like exp(-t / [`TIME`]); with a loop of that kind, reports may lag by half that time before shares
//! begin to swing for longer than one turn. What the mean is makes no difference to what shares come
//! to, since only their relation counts; it keeps steps small.

use std::time::Duration;

use super::{Sharer, factor};

/// Time in which a difference shrinks to a third.
const TIME: f64 = 10.0;
/// Lower utilisations count as this, so that an idle group moves nothing.
const IDLE: f64 = 0.1;
/// Largest change of a share's logarithm in a second.
pub(super) const STEP: f64 = 0.2;
/// Longest time that one step makes up for, seconds.
pub(super) const LONGEST: f64 = 2.0;
/// The least share, of the largest.
const LEAST: f64 = 0.05;

/// A member that can take new connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balanced {
    /// Its weight, above 0.
    pub weight: u32,
    /// Share that it has for other reasons, above 0 and at most 1.
    pub own: f64,
    /// Share that follows from utilisation; `None`: no member of its group reports it.
    pub share: Option<f64>,
    /// As reported, 1 at full load, over the share of its weight that overrides leave it: one that is to have half as much
    /// is even with the others at half of their utilisation.
    pub utilisation: Option<f64>,
}

/// Updates the shares of a group's members after `elapsed`. Members that report no utilisation get the mean share of
/// those that do. If none reports it, there are no shares.
pub fn balance(members: &mut [Balanced], elapsed: Duration) {
    let start = mean(members, |member| member.share).unwrap_or(1.0);
    for member in members.iter_mut() {
        let share = member.share.unwrap_or(start);
        member.share = member.utilisation.map(|_| share);
    }
    let taken = |member: &Balanced| Some(member.share? * member.own);
    let Some(utilised) = mean_by(members, taken, |m| m.utilisation.map(|u| u.max(IDLE))) else {
        return;
    };
    let seconds = elapsed.as_secs_f64().min(LONGEST);
    for member in members.iter_mut() {
        let Some((share, utilisation)) = member.share.zip(member.utilisation) else { continue };
        let step = (utilised / utilisation.max(IDLE)).ln() * seconds / TIME;
        let most = STEP * seconds;
        member.share = Some(share * step.clamp(-most, most).exp());
    }
    let others = mean(members, |member| member.share);
    let shares = members.iter().filter_map(|m| Some((m.weight, m.share.or(others)?)));
    let sharers: Vec<_> =
        shares.map(|(weight, share)| Sharer { weight, share, asked: 1.0 }).collect();
    // Clamp to what has an effect, so that no share drifts away.
    let factor = factor(&sharers);
    for (member, sharer) in members.iter_mut().zip(sharers) {
        member.share = Some((sharer.share * factor).clamp(LEAST, 1.0));
    }
}

/// The mean by weight of what some members have.
fn mean(members: &[Balanced], of: impl Fn(&Balanced) -> Option<f64>) -> Option<f64> {
    mean_by(members, |_| Some(1.0), of)
}

/// The same, by weight times `part`.
fn mean_by(
    members: &[Balanced],
    part: impl Fn(&Balanced) -> Option<f64>,
    of: impl Fn(&Balanced) -> Option<f64>,
) -> Option<f64> {
    let (mut sum, mut whole) = (0.0, 0.0);
    for (part, value) in
        members.iter().filter_map(|m| Some((f64::from(m.weight) * part(m)?, of(m)?)))
    {
        sum += part * value;
        whole += part;
    }
    (whole > 0.0).then(|| sum / whole)
}
