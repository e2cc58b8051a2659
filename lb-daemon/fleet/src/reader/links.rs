//! The links of the generations between what is in force at a balancer and what etcd has.

use std::collections::BTreeMap;

use super::{
    Connection, LossCause, Reader,
    snapshot::{Draft, KnownLink},
};

impl Reader {
    /// Reads the links that a lineage needs, at the revision of a draft. Those that were read before are read again only if
    /// the connection was lost meanwhile: etcd may have been restored, and it gives revisions again then.
    pub(super) async fn read_links(&self, draft: &mut Draft) -> Result<(), LossCause> {
        let Some(first) = (self.traced_from)() else { return Ok(()) };
        let there = self.fleet.list_history(Some(draft.snapshot.etcd_revision)).await?;
        let there: BTreeMap<u64, i64> = there.into_iter().filter(|(it, _)| *it >= first).collect();
        let mut known = self.known_links(draft);
        known.retain(|number, link| there.get(number) == Some(&link.mod_revision));
        let missing: Vec<u64> =
            there.keys().filter(|it| !known.contains_key(it)).copied().collect();
        draft.snapshot.links = known;
        let keys = self.fleet.keys();
        let visit = |number, read: Result<_, _>| {
            if let Some(error) = draft.snapshot.put_link(number, there[&number], read.as_ref()) {
                draft.snapshot.unreadable.insert(keys.history(number), error);
            }
        };
        Ok(self.fleet.visit_generations(missing, visit).await?)
    }

    /// What the last snapshot has, if it is certainly of the same etcd.
    fn known_links(&self, draft: &Draft) -> BTreeMap<u64, KnownLink> {
        let view = self.view_tx.borrow();
        let is_lost = matches!(view.connection, Connection::Lost { .. });
        let known = view.snapshot.as_ref().filter(|_| !is_lost).map(|it| &it.links);
        let Some((known, Some(Ok(current)))) = known.zip(Some(&draft.current)) else {
            return BTreeMap::new();
        };
        let there = known.get(&current.document.body.number);
        match there.is_none_or(|there| there.link.digest == current.digest) {
            true => known.clone(),
            false => BTreeMap::new(),
        }
    }
}
