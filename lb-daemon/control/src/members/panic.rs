//! Panic mode: if too few backends of a pool are healthy, those whose checks fail become its last resort.

use std::net::IpAddr;

use super::{
    member::{Counts, DecidedBy},
    table::Members,
};
use lb_model::{MemberState, Name, Pool};
use lb_publish::reconcile::MemberPath;

impl Members {
    /// Writes the last resorts of a pool after `changed` changed: of these members, or of all where the pool begins or ends to
    /// panic. Undecided members stay as they are: a new backend gets nothing until its first success, and a restart of the
    /// daemon changes nothing.
    pub(super) fn write_last_resorts(
        &mut self,
        name: &Name,
        pool: &Pool,
        changed: &[IpAddr],
        path: &mut impl MemberPath,
    ) {
        let Some(members) = self.pool_mut(name) else { return };
        let panics = is_in_panic(members.counts(), pool);
        if members.panics.replace(panics) == Some(panics) {
            for address in changed {
                self.write_last_resort(name, *address, panics, path);
            }
        } else {
            for address in pool.backends.keys() {
                self.write_last_resort(name, *address, panics, path);
            }
        }
    }

    fn write_last_resort(
        &mut self,
        name: &Name,
        address: IpAddr,
        panics: bool,
        path: &mut impl MemberPath,
    ) {
        let Some(members) = self.pool_mut(name) else { return };
        let Some(member) = members.get(&address) else { return };
        let eligible =
            member.decided_by == DecidedBy::Checks && !member.is_withdrawn() && member.weighted;
        let last_resort = panics && eligible && member.state != MemberState::Up;
        let open = last_resort && !member.is_decided;
        if !open
            && member.last_resort != Some(last_resort)
            && path.set_last_resort(name, address, last_resort)
        {
            members.change(&address, |member| member.last_resort = Some(last_resort));
        }
    }
}

/// Whether the healthy share of the backends that should take connections is below the pool's threshold.
fn is_in_panic(Counts { active, healthy, .. }: Counts, pool: &Pool) -> bool {
    (healthy as u64) * 100 < u64::from(pool.panic_threshold_percent) * active as u64
}
