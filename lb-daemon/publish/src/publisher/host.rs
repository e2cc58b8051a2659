use std::sync::Arc;

use tokio::sync::watch;

use lb_model::unserved::LocalHost;

/// What this host is to VIPs, as it is now. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct FollowedHost(watch::Sender<Arc<LocalHost>>);

impl FollowedHost {
    /// Tells those that follow it if it changed.
    pub fn set(&self, host: LocalHost) {
        self.0.send_if_modified(|now| {
            let differs = **now != host;
            if differs {
                *now = Arc::new(host);
            }
            differs
        });
    }

    pub fn now(&self) -> Arc<LocalHost> {
        Arc::clone(&self.0.borrow())
    }

    pub fn changes(&self) -> watch::Receiver<Arc<LocalHost>> {
        self.0.subscribe()
    }
}
