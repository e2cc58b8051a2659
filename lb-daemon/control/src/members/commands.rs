use std::{collections::BTreeSet, net::IpAddr, sync::Arc};

use tokio::sync::oneshot;

use lb_base::queue::{QueueCounters, UnboundedReceiver, UnboundedSender, unbounded};
use lb_model::{
    Configuration, Name,
    overrides::{Affected, Overrides},
};

/// Most backends that one command configures; a pool is never split.
const MOST_BACKENDS: usize = 512;

/// What the state loop asks of the member loop. Each takes less than a few milliseconds, because changes of health wait
/// for it.
#[derive(Debug)]
pub(crate) enum MemberCommand {
    /// These backends are about to be of pools with direct return: those behind a gateway lose their next hop.
    DropGateways(Arc<BTreeSet<IpAddr>>, oneshot::Sender<()>),
    /// Packets see a configuration: takes over these pools of it, which are new or changed, and forgets those that it does
    /// not have.
    Configure(Arc<Configuration>, Vec<Name>, oneshot::Sender<()>),
    /// Overrides are others now: takes over what that changes of these pools.
    Override(Arc<Overrides>, Vec<Affected>, oneshot::Sender<()>),
    /// Forgets the next hops of all other backends.
    KeepNextHops(Arc<BTreeSet<IpAddr>>),
}

/// Sends commands to the member loop. If it has ended, the daemon is stopping, and they do nothing.
#[derive(Clone, Debug)]
pub(crate) struct MemberCommands(UnboundedSender<MemberCommand>);

impl MemberCommands {
    pub(crate) fn channel(counters: &QueueCounters) -> (Self, UnboundedReceiver<MemberCommand>) {
        let (sender, receiver) = unbounded(counters);
        (Self(sender), receiver)
    }

    pub(crate) async fn drop_gateways(&self, direct: Arc<BTreeSet<IpAddr>>) {
        self.ask(|reply| MemberCommand::DropGateways(direct, reply)).await;
    }

    /// Hands over pools in several commands, between which changes of health go on.
    pub(crate) async fn configure(&self, configuration: &Arc<Configuration>, pools: Vec<Name>) {
        let (mut batch, mut backends) = (Vec::new(), 0);
        for name in pools {
            let size = configuration.pools.get(&name).map_or(0, |pool| pool.backends.len());
            if !batch.is_empty() && backends + size > MOST_BACKENDS {
                self.configure_batch(configuration, std::mem::take(&mut batch)).await;
                backends = 0;
            }
            batch.push(name);
            backends += size;
        }
        self.configure_batch(configuration, batch).await;
    }

    async fn configure_batch(&self, configuration: &Arc<Configuration>, pools: Vec<Name>) {
        let configuration = Arc::clone(configuration);
        self.ask(|reply| MemberCommand::Configure(configuration, pools, reply)).await;
    }

    /// Puts overrides in force, in several commands, between which changes of health go on. Returns once packets go by them.
    pub(crate) async fn set_overrides(&self, overrides: &Arc<Overrides>, affected: Vec<Affected>) {
        let (mut batch, mut backends) = (Vec::new(), 0);
        for pool in affected {
            if !batch.is_empty() && backends + pool.backends.len() > MOST_BACKENDS {
                self.override_batch(overrides, std::mem::take(&mut batch)).await;
                backends = 0;
            }
            backends += pool.backends.len();
            batch.push(pool);
        }
        self.override_batch(overrides, batch).await;
    }

    async fn override_batch(&self, overrides: &Arc<Overrides>, affected: Vec<Affected>) {
        let overrides = Arc::clone(overrides);
        self.ask(|reply| MemberCommand::Override(overrides, affected, reply)).await;
    }

    pub(crate) fn keep_next_hops(&self, backends: Arc<BTreeSet<IpAddr>>) {
        let _ = self.0.send(MemberCommand::KeepNextHops(backends));
    }

    async fn ask(&self, command: impl FnOnce(oneshot::Sender<()>) -> MemberCommand) {
        let (reply, answer) = oneshot::channel();
        if self.0.send(command(reply)).is_ok() {
            let _ = answer.await;
        }
    }
}
