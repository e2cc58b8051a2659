//! Which balancers belong to a fleet: `members/<name>` stays until it is removed.
//!
//! An epoch asks all members what they own, so a member comes or goes only while what it saw of the epochs is still so.

use etcd_client::{Txn, TxnOp};
use lb_model::Name;

use crate::{
    Document, DocumentError, EtcdError, Fleet,
    documents::FleetMember,
    reader::Snapshot,
    transaction::{exists, is_at, none_after},
};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    #[error("member {0} was changed by another balancer meanwhile")]
    Conflict(Name),
    #[error("{0} is not a member of the fleet")]
    NotAMember(Name),
    #[error("balancer {0} is still alive: stop it, or let it leave by itself")]
    StillAlive(Name),
    #[error("another balancer joined, or an epoch was opened or changed, meanwhile: try again")]
    EpochChanged,
    #[error("epoch {0} is open: wait until it is closed")]
    EpochOpen(u64),
    #[error(
        "the configuration was changed meanwhile, and may have groups that this balancer owns a part of"
    )]
    ConfigurationChanged,
    /// It may have been changed, or may yet be.
    #[error("it is unknown whether member {name} was changed: {cause}")]
    Unknown { name: Name, cause: EtcdError },
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Etcd(EtcdError),
}

impl Fleet {
    /// Makes this balancer a member, or one anew, if nothing changed in the epochs since `seen`: the epoch in `member` has to
    /// be the last closed one. Of several that saw no members one succeeds. Returns the `mod_revision` of its key.
    ///
    /// # Errors
    /// [`MemberError`]
    pub async fn join(
        &self,
        member: &Document<FleetMember>,
        seen: &Snapshot,
    ) -> Result<i64, MemberError> {
        let expected = seen.members.get(self.name()).map_or(0, |it| it.mod_revision);
        self.put_member(member, expected, Some(seen)).await
    }

    /// Writes this balancer's member key. `expected` is the `mod_revision` of what it replaces. Returns the new one.
    ///
    /// # Errors
    /// [`MemberError`]
    pub async fn write_member(
        &self,
        member: &Document<FleetMember>,
        expected: i64,
    ) -> Result<i64, MemberError> {
        self.put_member(member, expected, None).await
    }

    async fn put_member(
        &self,
        member: &Document<FleetMember>,
        expected: i64,
        seen: Option<&Snapshot>,
    ) -> Result<i64, MemberError> {
        let name = self.name();
        let key = self.keys().member(name);
        let mut compares = vec![is_at(&key, expected)];
        compares.extend(seen.map(|seen| none_after(&self.keys().shares(), seen.shares_revision)));
        // The first one of a fleet owns the whole of each capacity.
        let first = seen.filter(|seen| seen.has_no_members());
        compares
            .extend(first.map(|seen| none_after(&self.keys().members(), seen.members_revision)));
        let put = TxnOp::put(&*key, member.write(&key)?, None);
        let get = TxnOp::get(&*key, None);
        let transaction = Txn::new().when(compares).and_then([put]).or_else([get]);
        let done = self.transact(transaction).await.map_err(|cause| failed(name, cause))?;
        if done.is_done {
            return Ok(done.revision);
        }
        match done.rows.first().map_or(0, |row| row.mod_revision) == expected {
            true => Err(MemberError::EpochChanged),
            false => Err(MemberError::Conflict(name.clone())),
        }
    }

    /// Removes another balancer that is not alive. `expected` is the `mod_revision` of its key that was seen. What it owns
    /// is lost until the next epoch, so it should be forgotten before.
    ///
    /// # Errors
    /// [`MemberError`]
    pub async fn remove_member(&self, name: &Name, expected: i64) -> Result<(), MemberError> {
        let (key, alive) = (self.keys().member(name), self.keys().alive(name));
        let compares = [exists(&key), is_at(&key, expected), is_at(&alive, 0)];
        let delete = [TxnOp::delete(&*key, None), self.touch_members()];
        let get = TxnOp::get(&*key, None);
        let transaction = Txn::new().when(compares).and_then(delete).or_else([get]);
        let done = self.transact(transaction).await.map_err(|cause| failed(name, cause))?;
        if done.is_done {
            return Ok(());
        }
        Err(match done.rows.first().map(|row| row.mod_revision) {
            None => MemberError::NotAMember(name.clone()),
            Some(at) if at != expected => MemberError::Conflict(name.clone()),
            Some(_) => MemberError::StillAlive(name.clone()),
        })
    }

    /// Removes this balancer from the members, and that it is alive, if nothing changed since `seen` by which it could own
    /// something: neither the configuration nor the epochs. `seen` has to have the generation of its ledger
    /// ([`Sharing::has_left`](lb_sharing::Sharing::has_left)).
    ///
    /// # Errors
    /// [`MemberError`]
    pub async fn leave(&self, seen: &Snapshot) -> Result<(), MemberError> {
        let (keys, name) = (self.keys(), self.name());
        let not_a_member = || MemberError::NotAMember(name.clone());
        let member = seen.members.get(name).ok_or_else(not_a_member)?;
        if let Some(epoch) = seen.epoch.as_ref().filter(|epoch| !epoch.closed) {
            return Err(MemberError::EpochOpen(epoch.number));
        }
        if seen.configuration_error.is_some() {
            return Err(MemberError::ConfigurationChanged);
        }
        let current = keys.current();
        let configuration = seen.configuration.as_ref();
        let configuration_at = configuration.map_or(0, |it| it.committed.mod_revision);
        let key = keys.member(name);
        let compares = [
            is_at(&key, member.mod_revision),
            is_at(&current, configuration_at),
            none_after(&keys.shares(), seen.shares_revision),
        ];
        let deletes = [&key, &keys.alive(name)].map(|key| TxnOp::delete(&**key, None));
        let gets = [&key, &current].map(|key| TxnOp::get(&**key, None));
        let operations: Vec<_> = deletes.into_iter().chain([self.touch_members()]).collect();
        let transaction = Txn::new().when(compares).and_then(operations).or_else(gets);
        let done = self.transact(transaction).await.map_err(|cause| failed(name, cause))?;
        if done.is_done {
            return Ok(());
        }
        let at = |key: &str| {
            let row = done.rows.iter().find(|row| row.key == key.as_bytes());
            row.map_or(0, |row| row.mod_revision)
        };
        Err(match at(&key) {
            0 => not_a_member(),
            found if found != member.mod_revision => MemberError::Conflict(name.clone()),
            _ if at(&current) != configuration_at => MemberError::ConfigurationChanged,
            _ => MemberError::EpochChanged,
        })
    }

    /// Marks that a member is removed.
    fn touch_members(&self) -> TxnOp {
        TxnOp::put(self.keys().member_removed(), "", None)
    }
}

fn failed(name: &Name, cause: EtcdError) -> MemberError {
    match cause.is_indefinite() {
        true => MemberError::Unknown { name: name.clone(), cause },
        false => MemberError::Etcd(cause),
    }
}
