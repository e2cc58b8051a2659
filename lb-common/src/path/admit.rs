//! Admission of a new connection: region by region, within the limits.

use super::{
    Ask,
    choose::{Choice, Home, Left, Observe},
    parse::Kind,
    search::{self, CLOSED, LAST_RESORT, LIMITS, STAY, Search},
    tables::Tables,
};
use crate::{
    abi::{
        clock::Nanoseconds,
        descriptor::{ISOLATED, LIMITED, PANIC},
        event::Event,
        limits::MAX_REGIONS_PER_POOL,
        meter,
        service::SERVICE_REJECTS,
        verdict::Verdict,
    },
    admission,
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
#[inline(always)]
pub(super) fn admit<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: &Ask<'_>,
    (home, budget): (&Home, Budget),
    now: Nanoseconds,
    observer: &mut O,
) -> Result<Choice, Verdict> {
    let descriptor = ask.descriptor;
    let limited = descriptor.flags & LIMITED != 0;
    let mut search = Search::new(ask.hash, ask.version(), Kind::NewConnection);
    search.now = now;
    if limited {
        search.rules = LIMITS | CLOSED;
    }
    if descriptor.flags & ISOLATED != 0 {
        search.rules |= STAY | CLOSED;
    }
    let home_choice = home.choice(tables, Kind::NewConnection);
    if let Some(choice) = home_choice {
        if !limited {
            home.tell(observer);
            count(tables, ask, &choice, false);
            return Ok(choice);
        }
        match enter(tables, ask, home, now) {
            Entered::Yes => {
                home.tell(observer);
                count(tables, ask, &choice, false);
                return Ok(choice);
            }
            Entered::RegionClosed => {}
            full => {
                if budget == Budget::Exceptions && is_spent(tables, ask, now) {
                    tables.count(Event::HeldAtHome);
                    observer.region(0, Left::Held);
                    return over_the_limit(tables, ask, choice, observer);
                }
                search.met_full = true;
                // The region is not full if only its member is.
                search.at = u32::from(matches!(full, Entered::MemberFull));
                if search.at == 0 {
                    observer.region(0, Left::Full);
                    if search.rules & STAY != 0 {
                        return over_the_limit(tables, ask, choice, observer);
                    }
                    search.at = Search::PER_REGION;
                }
            }
        }
    }
    tables.search(&mut search, observer);
    if let Some(choice) = search.choice {
        count(tables, ask, &choice, false);
        return Ok(choice);
    }
    if search.met_full {
        if ask.service_has(SERVICE_REJECTS) {
            return Err(refuse(tables, ask));
        }
        // Everything is full: the nearest that may have it at all.
        let mut again = Search::new(ask.hash, ask.version(), Kind::NewConnection);
        again.rules = CLOSED;
        tables.search(&mut again, observer);
        if let Some(choice) = again.choice {
            return over_the_limit(tables, ask, choice, observer);
        }
    }
    if descriptor.flags & PANIC != 0 {
        let mut last = Search::new(ask.hash, ask.version(), Kind::NewConnection);
        last.rules = LAST_RESORT | if limited { CLOSED } else { 0 };
        tables.search(&mut last, observer);
        if let Some(choice) = last.choice {
            count(tables, ask, &choice, false);
            return Ok(choice);
        }
    }
    Err(search.verdict())
}

/// Whether home could be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entered {
    Yes,
    RegionClosed,
    RegionFull,
    MemberFull,
}

/// Debits home's limits: looks whether the group has room, then debits the member, the group last.
#[inline(always)]
fn enter<T: Tables + ?Sized>(
    tables: &T,
    ask: &Ask<'_>,
    home: &Home,
    now: Nanoseconds,
) -> Entered {
    let group = ask.descriptor.home_meter;
    if let Some((limit, arrival)) = tables.meter(group) {
        if limit.is_closed() {
            return Entered::RegionClosed;
        }
        if admission::is_full(limit, arrival, now) {
            return Entered::RegionFull;
        }
    }
    if !search::debit_member(tables, &ask.descriptor.home, (home.rank, home.member), now) {
        return Entered::MemberFull;
    }
    if search::debit_meter(tables, group, now) { Entered::Yes } else { Entered::RegionFull }
}

/// Whether no connection more can be remembered away from home for now.
#[inline(always)]
fn is_spent<T: Tables + ?Sized>(tables: &T, ask: &Ask<'_>, now: Nanoseconds) -> bool {
    let v4 = ask.is_v4();
    let budget = if v4 { meter::EXCEPTIONS_V4 } else { meter::EXCEPTIONS_V6 };
    let spent = |(limit, arrival)| admission::is_full(limit, arrival, now);
    tables.meter(budget).is_some_and(spent)
}

/// A region that is full serves all the same, unless the service would rather have it dropped.
#[inline(always)]
fn over_the_limit<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    ask: &Ask<'_>,
    choice: Choice,
    observer: &mut O,
) -> Result<Choice, Verdict> {
    if ask.service_has(SERVICE_REJECTS) {
        return Err(refuse(tables, ask));
    }
    observer.region(choice.region, Left::Overrun);
    count(tables, ask, &choice, true);
    Ok(choice)
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
pub(super) fn count<T: Tables + ?Sized>(
    tables: &T,
    ask: &Ask<'_>,
    choice: &Choice,
    overrun: bool,
) {
    if choice.region == 0 {
        tables.count_group(ask.descriptor.home_meter, |group| {
            group.offered += 1;
            group.admitted += 1;
            group.overrun += u64::from(overrun);
        });
        return;
    }
    for region in 0..MAX_REGIONS_PER_POOL as u32 {
        let index = ask.descriptor.groups[region as usize % MAX_REGIONS_PER_POOL];
        let Some(meter) = tables.group(index).map(|group| group.meter) else { return };
        if region >= choice.region {
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
