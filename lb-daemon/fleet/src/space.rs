//! How much room etcd's database has left.

use etcd_client::Client;

use crate::{EtcdError, Fleet, client::timed};

/// The quota of an etcd that is set to none. One before 3.6 does not say which it has.
pub const DEFAULT_QUOTA: u64 = 2 << 30;

/// The database of the server of etcd that has the least room left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtcdSpace {
    /// Bytes of the file. Above the quota etcd takes no changes.
    pub size: u64,
    /// Bytes of it that are in use. The rest is used again; a defragmentation gives it back.
    pub in_use: u64,
    /// Bytes; [`DEFAULT_QUOTA`] if etcd does not say it.
    pub quota: u64,
}

impl EtcdSpace {
    /// Whether more than four fifths of the quota are taken.
    pub const fn is_short(&self) -> bool {
        self.size > self.quota / 5 * 4
    }
}

impl Fleet {
    /// Asks each server, because each has a database of its own, and the first that is full stops all changes.
    ///
    /// # Errors
    /// No server answers.
    pub async fn space(&self) -> Result<EtcdSpace, EtcdError> {
        let mut least: Option<EtcdSpace> = None;
        let mut unanswered = EtcdError::NoAnswer;
        for client in self.servers().each() {
            match space_of(client).await {
                Ok(space) => {
                    let room = |space: &EtcdSpace| space.quota.saturating_sub(space.size);
                    least =
                        Some(least.filter(|least| room(least) <= room(&space)).unwrap_or(space));
                }
                Err(error) => unanswered = error,
            }
        }
        least.ok_or(unanswered)
    }
}

async fn space_of(client: &Client) -> Result<EtcdSpace, EtcdError> {
    let status = timed(client.maintenance_client().status()).await?;
    let quota = Some(status.db_size_quota()).filter(|quota| *quota > 0);
    Ok(EtcdSpace {
        size: status.db_size().unsigned_abs(),
        in_use: status.raft_used_db_size().unsigned_abs(),
        quota: quota.map_or(DEFAULT_QUOTA, i64::unsigned_abs),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn above_four_fifths_of_the_quota_it_is_short() {
        let space = |size, quota| EtcdSpace { size, in_use: 0, quota };
        assert!(!space(800, 1_000).is_short());
        assert!(space(801, 1_000).is_short());
        assert!(!space(1_700_000_000, DEFAULT_QUOTA).is_short());
        assert!(space(1_720_000_000, DEFAULT_QUOTA).is_short());
    }
}
