//! Panic mode: if too few backends of a pool are healthy, those whose checks fail become its last resort.

use super::{
    PacketPath,
    members::{DecidedBy, Key, Members},
};
use lb_model::{Configuration, MemberState, Name, Pool};

impl Members {
    /// Writes changes of all pools to the packet path.
    pub(super) fn write_all_last_resorts(
        &mut self,
        configuration: &Configuration,
        path: &mut impl PacketPath,
    ) {
        for (name, pool) in &configuration.pools {
            self.write_last_resorts(name, pool, path);
        }
    }

    /// The same for one pool. Undecided members stay as they are: a new backend gets nothing until its first
    /// success, and a restart of the daemon changes nothing.
    pub(super) fn write_last_resorts(
        &mut self,
        name: &Name,
        pool: &Pool,
        path: &mut impl PacketPath,
    ) {
        let panics = self.is_in_panic(name, pool);
        for (address, backend) in &pool.backends {
            let Some(member) = self.get_mut(&(name.clone(), *address)) else { continue };
            let eligible = member.decided_by == DecidedBy::Checks
                && !member.is_drained()
                && backend.weight > 0;
            let last_resort = panics && eligible && member.state != MemberState::Up;
            let open = last_resort && !member.is_decided;
            if !open
                && member.last_resort != Some(last_resort)
                && path.set_last_resort(name, *address, last_resort)
            {
                member.last_resort = Some(last_resort);
            }
        }
    }

    /// Whether the healthy share of the backends that should take connections is below the pool's threshold.
    fn is_in_panic(&self, name: &Name, pool: &Pool) -> bool {
        let active = pool.backends.iter().filter(|(_, backend)| backend.weight > 0);
        let key = |address| -> Key { (name.clone(), address) };
        let (mut all, mut healthy) = (0_u64, 0_u64);
        for member in active.filter_map(|(address, _)| self.get(&key(*address))) {
            if member.decided_by != DecidedBy::Operator && !member.is_drained() {
                all += 1;
                healthy += u64::from(member.state == MemberState::Up);
            }
        }
        healthy * 100 < u64::from(pool.panic_threshold_percent) * all
    }
}
