//! Watches how much room etcd's database has left: without any, no change of the fleet is possible.

use std::{sync::Arc, time::Duration};

use lb_base::conditions::{ConditionReason, Subject};
use lb_fleet::space::EtcdSpace;
use tokio::{sync::watch, time::sleep};

use super::Member;

/// Subject of the condition that etcd's database is nearly full.
pub(super) const ETCD_SPACE: Subject = Subject::new(ConditionReason::Etcd, "etcd space");

/// How often etcd is asked.
const INTERVAL: Duration = Duration::from_secs(60);

/// Goes on for ever.
pub(super) async fn watch_space(member: Arc<Member>, space_tx: watch::Sender<Option<EtcdSpace>>) {
    let mut fleet = member.etcd().fleet.clone();
    loop {
        // Once its certificate files could be read.
        let Ok(fleet) = fleet.wait_for(Option::is_some).await.map(|fleet| fleet.clone()) else {
            return;
        };
        let Some(fleet) = fleet else { continue };
        match fleet.space().await {
            Ok(space) => {
                space_tx.send_replace(Some(space));
                match space.is_short() {
                    true => member.conditions().begin(&ETCD_SPACE, &sentence(&space)),
                    false => member.conditions().end(&ETCD_SPACE),
                }
            }
            // What it was stays shown; that etcd does not answer is a condition of its own.
            Err(error) => tracing::debug!("the size of etcd's database is not known: {error}"),
        }
        sleep(INTERVAL).await;
    }
}

fn sentence(space: &EtcdSpace) -> String {
    let megabytes = |bytes: u64| bytes / 1_000_000;
    format!(
        "the database of etcd has {} MB, of which {} MB are in use, and takes no changes above {} MB: compact and \
         defragment it",
        megabytes(space.size),
        megabytes(space.in_use),
        megabytes(space.quota)
    )
}

#[cfg(test)]
mod tests {
    use lb_fleet::space::DEFAULT_QUOTA;

    use super::*;

    #[test]
    fn the_condition_says_how_full_it_is_and_what_to_do() {
        let (size, in_use) = (1_900_000_000, 12_345_678);
        let space = EtcdSpace { size, in_use, quota: DEFAULT_QUOTA };
        assert_eq!(
            sentence(&space),
            "the database of etcd has 1900 MB, of which 12 MB are in use, and takes no changes above 2147 MB: compact and \
             defragment it"
        );
    }
}
