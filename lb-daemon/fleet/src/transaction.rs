//! Transactions, and what they compare.

use std::{collections::BTreeMap, mem};

use etcd_client::{Client, Compare, CompareOp, KvClient, Txn, TxnOp, TxnOpResponse, TxnResponse};

use crate::{
    EtcdError, Fleet,
    client::{MAX_ANSWER, Row},
};

/// Largest value, bytes. etcd takes 1.5 MiB in one request by default, and the rest of the request needs some of that.
pub const MAX_VALUE: usize = 1 << 20;

/// Values that are read at once: of the largest pieces it takes a quarter of an answer.
pub(crate) const MOST_GETS: usize = 32;

/// Values that are written at once: etcd takes 128 operations.
const MOST_PUTS: usize = 100;

/// What a transaction did.
#[derive(Debug)]
pub(crate) struct Transacted {
    /// Whether its comparisons held.
    pub(crate) is_done: bool,
    pub(crate) revision: i64,
    /// What its `get`s found.
    pub(crate) rows: Vec<Row>,
}

impl Fleet {
    pub(crate) async fn transact(&self, transaction: Txn) -> Result<Transacted, EtcdError> {
        let commit = |mut kv: KvClient| {
            let transaction = transaction.clone();
            async move { kv.txn(transaction).await }
        };
        let answer = self.servers().ask_once(Client::kv_client, commit).await;
        self.written(answer).map(|answer| transacted(&answer))
    }

    /// The rows of keys at one revision, as far as they are there, read linearizably. Of large values at most [`MOST_GETS`].
    pub(crate) async fn get_together(&self, keys: &[String]) -> Result<Vec<Row>, EtcdError> {
        let gets: Vec<_> = keys.iter().map(|key| TxnOp::get(&**key, None)).collect();
        let read = |mut kv: KvClient| {
            let transaction = Txn::new().and_then(gets.clone());
            async move { kv.txn(transaction).await }
        };
        let kv = |client: &Client| client.kv_client().max_decoding_message_size(MAX_ANSWER);
        Ok(transacted(&self.servers().ask(kv, read).await?).rows)
    }

    /// Puts values, several in a transaction.
    pub(crate) async fn put_all(&self, values: BTreeMap<String, &[u8]>) -> Result<(), EtcdError> {
        let (mut puts, mut size) = (Vec::new(), 0);
        for (key, value) in values {
            if puts.len() == MOST_PUTS || size + value.len() > MAX_VALUE {
                let full = mem::take(&mut puts);
                self.put_together(full).await?;
                size = 0;
            }
            size += key.len() + value.len();
            puts.push(TxnOp::put(key, value, None));
        }
        if !puts.is_empty() {
            self.put_together(puts).await?;
        }
        Ok(())
    }

    /// A value may be put again: a server that is silent holds nothing up, and leaves nothing in doubt.
    async fn put_together(&self, puts: Vec<TxnOp>) -> Result<(), EtcdError> {
        let put = |mut kv: KvClient| {
            let transaction = Txn::new().and_then(puts.clone());
            async move { kv.txn(transaction).await }
        };
        self.written(self.servers().ask(Client::kv_client, put).await).map(drop)
    }

    /// Marks that a transaction changes what the revision covers.
    pub(crate) fn touch(&self) -> TxnOp {
        TxnOp::put(self.keys().changed(), "", None)
    }
}

fn transacted(answer: &TxnResponse) -> Transacted {
    let mut rows = Vec::new();
    for response in answer.op_responses() {
        if let TxnOpResponse::Get(found) = response {
            rows.extend(found.kvs().iter().map(Row::from));
        }
    }
    let revision = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
    Transacted { is_done: answer.succeeded(), revision, rows }
}

/// That a key was last written at a revision; at 0: that it is absent.
pub(crate) fn is_at(key: &str, mod_revision: i64) -> Compare {
    Compare::mod_revision(key, CompareOp::Equal, mod_revision)
}

/// That a key is there.
pub(crate) fn exists(key: &str) -> Compare {
    Compare::version(key, CompareOp::Greater, 0)
}

/// That no key with a prefix was written after a revision. One that was deleted is not noticed.
pub(crate) fn none_after(prefix: &str, mod_revision: i64) -> Compare {
    let next = mod_revision.saturating_add(1);
    Compare::mod_revision(prefix, CompareOp::Less, next).with_prefix()
}
