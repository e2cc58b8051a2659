//! What the author of a change should know of it, and may not have meant.

use std::collections::BTreeSet;

use super::{PacketPath, State};
use crate::{
    access::Actor,
    model::{Configuration, Name, Scaler, WantedState},
};

impl<P: PacketPath> State<P> {
    /// Pools that had somebody for new connections, or whose services had, and would have nobody with
    /// `next`, by what is known of their backends now.
    pub(super) fn emptied(&self, next: &Configuration) -> Vec<String> {
        let now = self.configuration();
        let serves = |configuration, pool| self.somebody_serves(configuration, pool);
        let own = next.pools.keys().filter(|name| serves(now, name));
        // A service that is pointed elsewhere takes its clients there.
        let pointed = next.services.iter().filter_map(|(name, service)| {
            let before = now.services.get(name)?;
            serves(now, &before.pool).then_some(&service.pool)
        });
        let emptied: BTreeSet<_> = own.chain(pointed).filter(|pool| !serves(next, pool)).collect();
        let sentence = |pool| format!("pool {pool} has nobody left for new connections");
        emptied.into_iter().map(sentence).collect()
    }

    /// Whether a pool has somebody for new connections under a configuration. Who is not known yet may
    /// become one.
    fn somebody_serves(&self, configuration: &Configuration, name: &Name) -> bool {
        let Some(pool) = configuration.pools.get(name) else { return false };
        pool.backends.iter().any(|(address, backend)| {
            let wanted = backend.wanted == WantedState::Active
                && backend.weight > 0
                && pool.group(&backend.region).in_use() != Scaler::NONE;
            let member = self.members.get(&(name.clone(), *address));
            // In a panic those whose checks fail have them too.
            wanted
                && (pool.panic_threshold_percent > 0
                    || member.is_none_or(|member| member.may_serve()))
        })
    }

    /// That a file says otherwise which the daemon reads again.
    pub(super) fn taken_back(&self, next: &Configuration, actor: &Actor) -> Option<String> {
        if matches!(actor, Actor::File(_)) {
            return None;
        }
        let (path, said) = self.settings.followed.read()?;
        let agrees = said.is_some_and(|mut said| {
            self.leave_out_own_key(&mut said);
            said == *next
        });
        let path = path.display();
        (!agrees).then(|| {
            format!(
                "the daemon reads {path} at its next start or reload, which takes this back: change \
                 it there too"
            )
        })
    }
}
