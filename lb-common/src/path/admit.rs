//! Admission of a new connection: region by region, within the limits.

use super::{
    choose::{self, Choice, Home, Left, Observe},
    parse::Kind,
    question::Ask,
    search::{self, CLOSED, LAST_RESORT, LIMITS, STAY, Search, Wanted},
    tables::Tables,
};
use crate::abi::{
    clock::Nanoseconds,
    descriptor::{ISOLATED, LIMITED, PANIC},
    event::Event,
    limits::MAX_REGIONS_PER_POOL,
    meter,
    service::SERVICE_REJECTS,
    verdict::Verdict,
};

/// What it takes to remember that a connection is not at home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Budget {
    /// An exception, of which only so many may be added in a time.
    Exceptions,
    /// Nothing: each flow is remembered wherever it is.
    None,
}

/// The member that has a new connection, with the limits debited and the groups' counters moved.
///
/// # Errors
/// The verdict of a connection that no backend gets.
#[inline(never)]
pub(super) fn admit<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: &Ask<'_>,
    by: (Budget, Nanoseconds),
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    let (budget, now) = by;
    let home = &choose::home(tables, ask.descriptor, ask.hash)?;
    let is_spent = || budget == Budget::Exceptions && is_spent(tables, ask, now);
    let choice = home.choice(tables, Kind::NewConnection);
    // Where nothing would remember it elsewhere, home gives no connection away.
    let is_kept = choice.is_none() && is_spent();
    let choice = if is_kept { home.choice_despite_ramp(tables) } else { choice };
    let descriptor = ask.descriptor;
    let limited = descriptor.flags & LIMITED != 0;
    let wanted = Wanted::new(ask.hash, ask.version(), Kind::NewConnection);
    let mut rules = if limited { LIMITS | CLOSED } else { 0 };
    if descriptor.flags & ISOLATED != 0 {
        rules |= STAY | CLOSED;
    }
    let (mut first, mut home_is_full) = (0, false);
    if let Some(choice) = choice {
        *to = choice;
        let entered = if limited { enter(tables, ask, home, now) } else { Entered::Yes };
        match entered {
            Entered::Yes => {
                if is_kept {
                    tables.count(Event::HeldAtHome);
                }
                home.tell(observer);
                count(tables, ask, to, false);
                return Ok(());
            }
            Entered::RegionClosed => {}
            full => {
                if is_spent() {
                    tables.count(Event::HeldAtHome);
                    observer.region(0, Left::Held);
                    return over_the_limit(tables, ask, to, observer);
                }
                home_is_full = true;
                // The region is not full if only its member is.
                first = home.entry + 1;
                if full == Entered::RegionFull {
                    observer.region(0, Left::Full);
                    if rules & STAY != 0 {
                        return over_the_limit(tables, ask, to, observer);
                    }
                    first = Search::PER_REGION;
                } else {
                    home.tell_full(observer);
                }
            }
        }
    }
    let ended = tables.search(wanted.by(rules, first, now), to, observer);
    let is_unremembered = !home_is_full && is_spent();
    if ended.is_found() {
        if is_unremembered {
            tables.count(Event::AwayWithoutBudget);
        }
        count(tables, ask, to, false);
        return Ok(());
    }
    if home_is_full || ended.met_full() {
        if ask.service_has(SERVICE_REJECTS) {
            return Err(refuse(tables, ask));
        }
        // Everything is full: the nearest that may have it at all.
        if tables.search(wanted.by(CLOSED, 0, 0), to, observer).is_found() {
            if is_unremembered {
                tables.count(Event::AwayWithoutBudget);
            }
            return over_the_limit(tables, ask, to, observer);
        }
    }
    if descriptor.flags & PANIC != 0 {
        let rules = LAST_RESORT | if limited { CLOSED } else { 0 };
        if tables.search(wanted.by(rules, 0, 0), to, observer).is_found() {
            count(tables, ask, to, false);
            return Ok(());
        }
    }
    Err(ended.verdict())
}

/// Whether home could be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    Yes,
    RegionClosed,
    RegionFull,
    MemberFull,
}

/// Debits home's limits: looks whether the group has room, then debits the member, the group last.
#[inline(always)]
pub(super) fn enter<T: Tables + ?Sized>(
    tables: &T,
    ask: &Ask<'_>,
    home: &Home,
    now: Nanoseconds,
) -> Entered {
    let group = ask.descriptor.home_meter;
    if tables.meter(group).is_some_and(|(limit, _)| limit.is_closed()) {
        return Entered::RegionClosed;
    }
    if tables.is_full(group, now) {
        return Entered::RegionFull;
    }
    if !search::debit_member(tables, &ask.descriptor.home, (home.rank, home.member), now) {
        return Entered::MemberFull;
    }
    if tables.debit(group, now) { Entered::Yes } else { Entered::RegionFull }
}

/// Whether no connection more can be remembered away from home for now.
#[inline(always)]
pub(super) fn is_spent<T: Tables + ?Sized>(tables: &T, ask: &Ask<'_>, now: Nanoseconds) -> bool {
    let v4 = ask.is_v4();
    let budget = if v4 { meter::EXCEPTIONS_V4 } else { meter::EXCEPTIONS_V6 };
    tables.is_full(budget, now)
}

/// A region that is full serves all the same, unless the service would rather have it dropped.
#[inline(always)]
pub(super) fn over_the_limit<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: &Ask<'_>,
    choice: &Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    if ask.service_has(SERVICE_REJECTS) {
        return Err(refuse(tables, ask));
    }
    observer.region(choice.region, Left::Overrun);
    count(tables, ask, choice, true);
    Ok(())
}

#[inline(always)]
fn refuse<T: Tables + ?Sized>(tables: &T, ask: &Ask<'_>) -> Verdict {
    tables.count_group(ask.descriptor.home_meter, |group| {
        group.offered += 1;
        group.refused += 1;
    });
    Verdict::RegionsFull
}

/// Counts a decision at the groups that had to do with it: those passed over, and the one that has it.
#[inline(always)]
pub(super) fn count<T: Tables + ?Sized>(tables: &T, ask: &Ask<'_>, choice: &Choice, overrun: bool) {
    if choice.region == 0 {
        tables.count_group(ask.descriptor.home_meter, |group| {
            group.offered += 1;
            group.admitted += 1;
            group.overrun += u64::from(overrun);
        });
        return;
    }
    tables.count_spilled(ask.version(), choice.region, overrun);
}

/// Counts a connection at the group of a further region that has it, and at those passed over.
#[inline(always)]
pub fn count_spilled<T: Tables + ?Sized>(tables: &T, version: u32, taken_by: u32, overrun: bool) {
    let Some(descriptor) = tables.descriptor(version) else { return };
    for region in 0..MAX_REGIONS_PER_POOL as u32 {
        let index = descriptor.groups[region as usize % MAX_REGIONS_PER_POOL];
        let Some(meter) = tables.group(index).map(|group| group.meter) else { return };
        if region >= taken_by {
            tables.count_group(meter, |group| {
                group.offered += 1;
                group.admitted += 1;
                group.spilled_in += 1;
                group.overrun += u64::from(overrun);
            });
            return;
        }
        tables.count_group(meter, |group| {
            group.offered += 1;
            group.spilled_out += 1;
        });
    }
}
