//! Admission of a new connection: region by region, within the limits.

use super::{
    known::Flow,
    parse::Kind,
    query::VersionedQuery,
    search::{self, CLOSED, LAST_RESORT, LIMITS, STAY, Search, SearchRequest},
    select::{self, Choice, Home, Observe, RegionSkip},
    tables::Tables,
};
use crate::abi::{
    clock::Nanoseconds,
    counter::Event,
    limits::MAX_REGIONS_PER_POOL,
    pool::{ISOLATED, LIMITED, PANIC},
    service::SERVICE_REJECTS,
    verdict::Verdict,
};

/// The member that gets a new connection; debits limits and counts at groups. Without room for a cell it
/// stays at home if home can take it.
///
/// # Errors
/// The verdict of a connection that no backend gets.
#[inline(never)]
pub(super) fn admit<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    home: &Home,
    flow: &Flow,
    to: &mut Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    let now = flow.time;
    // Without a cell the tables decide each datagram anew, so nothing is held.
    let has_room = flow.has_room || !query.is_tcp();
    let choice = home.choice(tables, Kind::NewConnection);
    // Without room for a cell, home gives no connection away.
    let is_kept = choice.is_none() && !has_room;
    let choice = if is_kept { home.choice_despite_ramp(tables) } else { choice };
    let descriptor = query.descriptor;
    let limited = descriptor.flags & LIMITED != 0;
    let request = SearchRequest::new(query.hash, query.version, Kind::NewConnection);
    let mut rules = if limited { LIMITS | CLOSED } else { 0 };
    if descriptor.flags & ISOLATED != 0 {
        rules |= STAY | CLOSED;
    }
    let (mut first, mut home_is_full) = (0, false);
    if let Some(choice) = choice {
        *to = choice;
        let entered =
            if limited { admit_home(tables, query, home, now) } else { HomeAdmission::Yes };
        match entered {
            HomeAdmission::Yes => {
                if is_kept {
                    tables.count(Event::HeldAtHome);
                }
                home.report_chosen(observer);
                count(tables, query, to, false);
                return Ok(());
            }
            HomeAdmission::RegionClosed => {}
            full => {
                if !has_room {
                    tables.count(Event::HeldAtHome);
                    observer.region(0, RegionSkip::Held);
                    return hold(tables, query, (full, now), to, observer);
                }
                home_is_full = true;
                // The region is not full if only its member is.
                first = u32::from(home.entry) + 1;
                if full == HomeAdmission::RegionFull {
                    observer.region(0, RegionSkip::Full);
                    if rules & STAY != 0 {
                        return admit_over_capacity(tables, query, to, observer);
                    }
                    first = Search::PER_REGION;
                } else {
                    home.report_full(observer);
                }
            }
        }
    }
    if !O::SEES_ALL && select::nobody_takes(home.member, Kind::NewConnection) {
        return Err(Verdict::NoBackend);
    }
    let ended = tables.search(request.by(rules, first, now), to, observer);
    if ended.is_found() {
        count(tables, query, to, false);
        return Ok(());
    }
    if home_is_full || ended.met_full() {
        if query.service_has(SERVICE_REJECTS) {
            return Err(refuse(tables, query));
        }
        // Every region is full: take the nearest one that could serve it.
        if tables.search(request.by(CLOSED, 0, 0), to, observer).is_found() {
            return admit_over_capacity(tables, query, to, observer);
        }
    }
    if descriptor.flags & PANIC != 0 {
        let rules = LAST_RESORT | if limited { CLOSED } else { 0 };
        if tables.search(request.by(rules, 0, 0), to, observer).is_found() {
            count(tables, query, to, false);
            return Ok(());
        }
    }
    Err(ended.verdict())
}

/// Whether home's limits admit a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HomeAdmission {
    Yes,
    RegionClosed,
    RegionFull,
    MemberFull,
}

/// Debits home's limits: checks the group, then debits the member, then the group.
#[inline(always)]
pub(super) fn admit_home<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    home: &Home,
    now: Nanoseconds,
) -> HomeAdmission {
    let group = query.descriptor.home_limiter;
    if tables.limiter(group).is_some_and(|(limit, _)| limit.is_closed()) {
        return HomeAdmission::RegionClosed;
    }
    if tables.is_full(group, now) {
        return HomeAdmission::RegionFull;
    }
    if !search::debit_member(tables, &query.descriptor.home, (home.rank, home.member), now) {
        return HomeAdmission::MemberFull;
    }
    if tables.debit(group, now) { HomeAdmission::Yes } else { HomeAdmission::RegionFull }
}

/// Home keeps a connection that has no room for a cell, also over its limits, unless the service rejects when its region is
/// full.
#[inline(always)]
pub(super) fn hold<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    (entered, now): (HomeAdmission, Nanoseconds),
    choice: &Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    // Where only the member is full, the region has room and refuses nobody.
    let has_room =
        entered == HomeAdmission::MemberFull && tables.debit(query.descriptor.home_limiter, now);
    if entered == HomeAdmission::Yes || has_room {
        count(tables, query, choice, has_room);
        return Ok(());
    }
    admit_over_capacity(tables, query, choice, observer)
}

/// A full region serves the connection over its capacity, unless the service rejects when full.
#[inline(always)]
pub(super) fn admit_over_capacity<T: Tables + ?Sized, O: Observe>(
    tables: &T,
    query: &VersionedQuery<'_>,
    choice: &Choice,
    observer: &mut O,
) -> Result<(), Verdict> {
    if query.service_has(SERVICE_REJECTS) {
        return Err(refuse(tables, query));
    }
    observer.region(choice.region, RegionSkip::OverCapacity);
    count(tables, query, choice, true);
    Ok(())
}

#[inline(always)]
fn refuse<T: Tables + ?Sized>(tables: &T, query: &VersionedQuery<'_>) -> Verdict {
    tables.count_group(query.descriptor.home_limiter, |group| {
        group.offered += 1;
        group.refused += 1;
    });
    Verdict::RegionsFull
}

/// Counts a decision at the groups that it concerns: those that were skipped, and the one that takes the connection.
#[inline(always)]
pub(super) fn count<T: Tables + ?Sized>(
    tables: &T,
    query: &VersionedQuery<'_>,
    choice: &Choice,
    over_capacity: bool,
) {
    if choice.region == 0 {
        tables.count_group(query.descriptor.home_limiter, |group| {
            group.offered += 1;
            group.admitted += 1;
            group.over_capacity += u64::from(over_capacity);
        });
        return;
    }
    tables.count_overflow(query.version, choice.region, over_capacity);
}

/// Counts a connection at the group of a further region that takes it, and at those that were skipped.
#[inline(always)]
pub fn count_overflow<T: Tables + ?Sized>(
    tables: &T,
    version: u32,
    taken_by: u32,
    over_capacity: bool,
) {
    let Some(descriptor) = tables.descriptor(version) else { return };
    for region in 0..MAX_REGIONS_PER_POOL as u32 {
        let index = descriptor.groups[region as usize % MAX_REGIONS_PER_POOL];
        let Some(limiter) = tables.group(index).map(|group| group.limiter) else { return };
        if region >= taken_by {
            tables.count_group(limiter, |group| {
                group.offered += 1;
                group.admitted += 1;
                group.overflow_in += 1;
                group.over_capacity += u64::from(over_capacity);
            });
            return;
        }
        tables.count_group(limiter, |group| {
            group.offered += 1;
            group.overflow_out += 1;
        });
    }
}
