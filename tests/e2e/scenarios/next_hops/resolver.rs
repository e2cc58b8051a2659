//! The daemon's resolver, run in a node.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use lb_base::queue::{QueueCounters, Receiver, bounded};
use lb_model::next_hop::{GivenSources, NextHop};
use lb_net::{Bonds, NetChange, NetError, NextHopChange, NextHops, SourceRules};
use lb_tests::{
    process::{PATIENCE, until},
    topology::Node,
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
    task::JoinHandle,
    time::timeout,
};

/// Longest wait for what must come.
pub(super) const LIMIT: Duration = PATIENCE;

type Wanted = Arc<BTreeSet<IpAddr>>;

/// What was told of one address: the hop, or the reason in words.
type Told = Result<NextHop, String>;

/// A resolver that runs in a node.
pub(super) struct Resolving {
    wanted: watch::Sender<Wanted>,
    services: watch::Sender<Arc<BTreeSet<IpAddr>>>,
    changes: Receiver<NetChange>,
    room: usize,
    task: JoinHandle<Result<(), NetError>>,
    /// Told of other addresses than the one that was waited for.
    others: BTreeMap<IpAddr, VecDeque<Told>>,
    runtime: Runtime,
}

impl Resolving {
    pub(super) fn start(node: &Node, wanted: &[&str]) -> Result<Self> {
        Self::with_room_for(node, wanted, 4096)
    }

    /// With room for so many changes that have not been read.
    pub(super) fn with_room_for(node: &Node, wanted: &[&str], room: usize) -> Result<Self> {
        let addresses: BTreeSet<IpAddr> =
            wanted.iter().map(|address| address.parse()).collect::<Result<_, _>>()?;
        let (wanted, watched) = watch::channel(Arc::new(addresses));
        let services = watch::Sender::default();
        let sources = SourceRules::new(GivenSources::default(), services.subscribe());
        let (told, mut changes) = bounded(room, &QueueCounters::default());
        let (runtime, task) = node.enter(|| -> Result<_> {
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
            let entered = runtime.enter();
            let task =
                NextHops::spawn(watched, sources, told, watch::Sender::default().subscribe())?;
            drop(entered);
            Ok((runtime, task))
        })??;
        let first = runtime.block_on(async { timeout(LIMIT, changes.recv()).await })?;
        ensure!(first == Some(NetChange::Bonds(Bonds::new())), "told first: {first:?}");
        Ok(Self { wanted, services, changes, room, task, others: BTreeMap::new(), runtime })
    }

    /// The next thing told of `address` is this.
    pub(super) fn expect(&mut self, address: &str, expected: Result<NextHop, &str>) -> Result<()> {
        let got = self.next(address.parse()?)?;
        ensure!(
            got == expected.map_err(str::to_owned),
            "{address}: told {got:?}, not {expected:?}"
        );
        Ok(())
    }

    /// The last of what is told of `address`, if not the next, is this.
    pub(super) fn expect_finally(
        &mut self,
        address: &str,
        expected: Result<NextHop, &str>,
    ) -> Result<()> {
        let expected = expected.map_err(str::to_owned);
        while self.next(address.parse()?)? != expected {}
        self.expect_nothing_more()
    }

    /// Gives services these addresses.
    pub(super) fn set_services(&self, addresses: &[&str]) -> Result<()> {
        let addresses: Result<BTreeSet<IpAddr>, _> =
            addresses.iter().map(|it| it.parse()).collect();
        self.services.send_replace(Arc::new(addresses?));
        Ok(())
    }

    /// All that was told has been expected.
    pub(super) fn expect_nothing_more(&mut self) -> Result<()> {
        self.others.retain(|_, told| !told.is_empty());
        ensure!(self.others.is_empty(), "told too: {:?}", self.others);
        match self.changes.try_recv() {
            Some(change) => bail!("told too: {change:?}"),
            None => Ok(()),
        }
    }

    /// Waits until there is no room for a change.
    pub(super) fn wait_until_full(&self) -> Result<()> {
        let full = || Ok((self.changes.len() == self.room).then_some(()));
        until("changes that wait to be read", LIMIT, full)
    }

    fn next(&mut self, address: IpAddr) -> Result<Told> {
        loop {
            if let Some(told) = self.others.get_mut(&address).and_then(VecDeque::pop_front) {
                return Ok(told);
            }
            self.receive().with_context(|| format!("nothing was told of {address}"))?;
        }
    }

    /// Takes the next change. Returns of how many addresses it tells.
    fn receive(&mut self) -> Result<usize> {
        let change = self.runtime.block_on(async { timeout(LIMIT, self.changes.recv()).await })?;
        let NetChange::NextHops(changes) = change.context("the resolver has ended")? else {
            bail!("told of bonds, where none is");
        };
        let count = changes.len();
        for NextHopChange { address, hop } in changes {
            let told = hop.map_err(|unresolved| unresolved.to_string());
            self.others.entry(address).or_default().push_back(told);
        }
        Ok(count)
    }

    /// The next change tells of so many addresses at once.
    pub(super) fn expect_at_once(&mut self, addresses: usize) -> Result<()> {
        self.others.retain(|_, told| !told.is_empty());
        ensure!(self.others.is_empty(), "told before: {:?}", self.others);
        let count = self.receive()?;
        ensure!(count == addresses, "told of {count}, not of {addresses}");
        Ok(())
    }

    /// It ends when nobody can want anything of it any more.
    pub(super) fn stop_wanting(self) -> Result<()> {
        drop(self.wanted);
        Ok(self.runtime.block_on(async { timeout(LIMIT, self.task).await })???)
    }

    /// It ends when nobody listens.
    pub(super) fn stop_listening(self) -> Result<()> {
        drop(self.changes);
        Ok(self.runtime.block_on(async { timeout(LIMIT, self.task).await })???)
    }
}

/// Runs a future in the node.
pub(super) fn in_runtime<F: Future<Output: Send>>(
    node: &Node,
    future: impl FnOnce() -> F + Send,
) -> Result<F::Output> {
    node.enter(|| -> Result<_> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(runtime.block_on(future()))
    })?
}
