use std::{collections::BTreeSet, net::IpAddr, sync::Arc, time::Duration};

use rtnetlink::Handle;
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::{Instant, MissedTickBehavior, interval_at, sleep_until},
};
use tracing::warn;

use super::{
    ConfiguredInterfaces, NetChange, NetError, SourceRules, connect,
    events::{Event, Events, OF_NEXT_HOPS},
    hops::{Hops, Request},
    link::interfaces,
    neighbour::{self, NeighbourKey, neighbours},
    route::{self, Routes},
    sources::changed,
};
use lb_base::queue::Sender;

/// Shortest time between two rounds of route look-ups: a routing daemon that loads a full table causes an event for
/// each route.
const LOOK_UP_GAP: Duration = Duration::from_millis(10);

/// Time from a link's or an address's event to the look-up: the kernel sends the event before it changes its routes, and
/// sends none for IPv4 routes.
const LINK_SETTLES: Duration = Duration::from_millis(20);

/// Time to a second look-up, if the kernel took longer.
const LINK_SETTLED: Duration = Duration::from_millis(500);

/// Time from a look-up without an answer to the next one.
const LOOK_UP_AGAIN: Duration = Duration::from_secs(1);

/// Most next hops in one change: results of checks wait while these are written.
const MOST_AT_ONCE: usize = 1000;

/// Time between look-ups without any event: the kernel reports none when it learns a path MTU from its own packets,
/// and an answer has it as the route's MTU.
const REFRESH: Duration = Duration::from_secs(30);

/// Keeps the next hops of wanted addresses and the ports of bonds up to date.
pub struct NextHops {
    handle: Handle,
    connection: JoinHandle<()>,
    hops: Hops,
    sources: SourceRules,
    configured: watch::Receiver<Arc<ConfiguredInterfaces>>,
    changes: Sender<NetChange>,
    work: JoinSet<Completed>,
    /// Addresses to look up.
    stale: BTreeSet<IpAddr>,
    looking_up: bool,
    /// A link changed during the look-up, so its result may be outdated.
    outdated: bool,
    look_up_from: Instant,
    /// When to look up all addresses after a link's change.
    look_up_all: Option<Instant>,
    lost: bool,
}

/// A finished task.
enum Completed {
    LookUp(Routes),
    Request(NeighbourKey, Option<String>),
}

/// Why the task ends.
enum End {
    /// The sender of addresses or the receiver of changes is gone.
    ChannelClosed,
    Failed(NetError),
}

impl From<NetError> for End {
    fn from(error: NetError) -> Self {
        Self::Failed(error)
    }
}

impl NextHops {
    /// Resolves the `wanted` addresses, with the `sources` of tunnels to them, and sends `changes`; `configured` are
    /// the interfaces of the settings. Runs in the network namespace of the calling thread.
    ///
    /// Ends without error when the sender of `wanted` or the receiver of `changes` is gone.
    ///
    /// # Errors
    /// No netlink socket.
    pub fn spawn(
        wanted: watch::Receiver<Arc<BTreeSet<IpAddr>>>,
        sources: SourceRules,
        changes: Sender<NetChange>,
        configured: watch::Receiver<Arc<ConfiguredInterfaces>>,
    ) -> Result<JoinHandle<Result<(), NetError>>, NetError> {
        // Subscribe before the first reading, so that no change is missed.
        let events = Events::open(OF_NEXT_HOPS)?;
        let (handle, connection) = connect()?;
        let attached = configured.borrow().attached.clone();
        let next_hops = Self {
            handle,
            connection,
            hops: Hops::new(attached),
            configured,
            sources,
            changes,
            work: JoinSet::new(),
            stale: BTreeSet::new(),
            looking_up: false,
            outdated: false,
            look_up_from: Instant::now(),
            look_up_all: None,
            lost: true,
        };
        Ok(tokio::spawn(async move {
            match next_hops.run(wanted, events).await {
                End::ChannelClosed => Ok(()),
                End::Failed(error) => Err(error),
            }
        }))
    }

    async fn run(
        mut self,
        mut wanted: watch::Receiver<Arc<BTreeSet<IpAddr>>>,
        mut events: Events,
    ) -> End {
        wanted.mark_changed();
        let mut refresh = interval_at(Instant::now() + REFRESH, REFRESH);
        refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if let Err(end) = self.do_due_work().await {
                return end;
            }
            let wake = self.wake();
            let received = tokio::select! {
                received = events.next() => received,
                Some(completed) = self.work.join_next() => match completed {
                    Ok(completed) => {
                        self.complete(completed);
                        continue;
                    }
                    // Tasks are never cancelled.
                    Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
                },
                changed = wanted.changed() => match changed {
                    Ok(()) => {
                        let addresses = wanted.borrow_and_update().clone();
                        self.stale.extend(self.hops.want(&addresses));
                        continue;
                    }
                    Err(_) => return End::ChannelClosed,
                },
                () = changed(&mut self.configured) => {
                    let configured = self.configured.borrow_and_update().clone();
                    self.hops.set_attached(configured.attached.clone());
                    // Before the next hops that follow from it.
                    if self.changes.send(NetChange::Interfaces(configured)).await.is_err() {
                        return End::ChannelClosed;
                    }
                    continue;
                }
                () = self.sources.changed() => Ok(vec![Event::Routing]),
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => continue,
                _ = refresh.tick() => Ok(vec![Event::Routing]),
                _ = &mut self.connection => return NetError::Closed.into(),
                () = self.changes.closed() => return End::ChannelClosed,
            };
            match received {
                Ok(events) => events.into_iter().for_each(|event| self.handle_event(event)),
                Err(error) => return End::Failed(error),
            }
        }
    }

    fn handle_event(&mut self, event: Event) {
        match &event {
            Event::Neighbour(_) | Event::NeighbourGone(_) => {}
            Event::Link(_) | Event::LinkGone(_) | Event::Address => {
                let now = Instant::now();
                self.stale = self.hops.wanted();
                self.outdated = self.looking_up;
                // A link that changes constantly must not postpone the look-up forever.
                if self.look_up_from <= now {
                    self.look_up_from = now + LINK_SETTLES;
                }
                self.look_up_all.get_or_insert(now + LINK_SETTLED);
            }
            Event::Routing => self.stale = self.hops.wanted(),
            Event::Lost => self.lost = true,
        }
        self.hops.observe(event, Instant::now());
    }

    fn complete(&mut self, completed: Completed) {
        match completed {
            Completed::LookUp(routes) => {
                self.looking_up = false;
                if std::mem::take(&mut self.outdated) {
                    // All addresses are stale already.
                    return;
                }
                for (address, route) in routes {
                    match route {
                        Some(route) => self.hops.set_route(address, route),
                        None => {
                            self.stale.insert(address);
                            self.look_up_from = Instant::now() + LOOK_UP_AGAIN;
                        }
                    }
                }
            }
            Completed::Request(key, refused) => self.hops.set_refused(key, refused),
        }
    }

    /// Does what is due: reads everything after lost events, sends changes, asks neighbours, looks up routes.
    async fn do_due_work(&mut self) -> Result<(), End> {
        if self.lost {
            self.read_all().await?;
        }
        let bonds = self.hops.settle_bonds().map(NetChange::Bonds);
        let hops = self.hops.settle(Instant::now());
        let hops = hops.chunks(MOST_AT_ONCE).map(|hops| NetChange::NextHops(hops.to_vec()));
        for change in bonds.into_iter().chain(hops) {
            self.changes.send(change).await.map_err(|_| End::ChannelClosed)?;
        }
        self.stale.extend(self.hops.take_cut_off());
        for request in self.hops.take_requests(Instant::now()) {
            let handle = self.handle.clone();
            self.work.spawn(async move {
                match request {
                    Request::Resolve(key) => {
                        let refused = neighbour::request(handle, key).await.err();
                        Completed::Request(key, refused.map(|error| refusal(&error)))
                    }
                    // Refused only where the entry has changed meanwhile, which is an event.
                    Request::Probe(key) => {
                        let _changed = neighbour::probe(handle, key).await;
                        Completed::Request(key, None)
                    }
                }
            });
        }
        if self.look_up_all.is_some_and(|from| from <= Instant::now()) {
            self.look_up_all = None;
            self.stale = self.hops.wanted();
        }
        if self.may_look_up() && self.look_up_from <= Instant::now() {
            let (handle, stale) = (self.handle.clone(), std::mem::take(&mut self.stale));
            self.looking_up = true;
            self.look_up_from = Instant::now() + LOOK_UP_GAP;
            let sources = self.sources.clone();
            self.work.spawn(async {
                Completed::LookUp(route::tunnel_routes(handle, stale, sources).await)
            });
        }
        Ok(())
    }

    async fn read_all(&mut self) -> Result<(), NetError> {
        let interfaces = interfaces(&self.handle).await?;
        let neighbours = neighbours(&self.handle).await?;
        self.hops.replace(interfaces, neighbours);
        self.stale = self.hops.wanted();
        self.lost = false;
        Ok(())
    }

    fn may_look_up(&self) -> bool {
        !self.looking_up && !self.stale.is_empty()
    }

    /// When there is something to do without any event.
    fn wake(&self) -> Option<Instant> {
        let look_up = self.may_look_up().then_some(self.look_up_from);
        self.hops.next_due().into_iter().chain(look_up).chain(self.look_up_all).min()
    }
}

/// Why the kernel refused to resolve a neighbour.
fn refusal(error: &rtnetlink::Error) -> String {
    warn!("net: cannot ask the kernel to resolve a neighbour: {error}");
    match error {
        rtnetlink::Error::NetlinkError(message) => {
            nix::errno::Errno::from_raw(-message.raw_code()).desc().to_lowercase()
        }
        other => other.to_string(),
    }
}
