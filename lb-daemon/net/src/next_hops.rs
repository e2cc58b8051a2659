use std::{collections::BTreeSet, net::IpAddr, sync::Arc, time::Duration};

use rtnetlink::Handle;
use tokio::{
    sync::{mpsc, watch},
    task::{JoinHandle, JoinSet},
    time::{Instant, MissedTickBehavior, interval_at, sleep_until},
};
use tracing::warn;

use super::{
    NetChange, NetError, connect,
    events::{Event, Events, OF_NEXT_HOPS},
    hops::Hops,
    link::interfaces,
    neighbour::{self, NeighbourKey, neighbours},
    route::{self, Routes},
};

/// Shortest time between two rounds of route look-ups: a router that takes in a whole table tells of
/// each of its routes.
const LOOK_UP_GAP: Duration = Duration::from_millis(10);

/// Time from a change of a link to a look-up: the kernel tells of it first and changes its routes then, and
/// those of IPv4 without a word.
const LINK_SETTLES: Duration = Duration::from_millis(20);

/// Time to one more look-up, for a kernel that took longer.
const LINK_SETTLED: Duration = Duration::from_millis(500);

/// Time to the next look-up after one that the kernel did not answer.
const LOOK_UP_AGAIN: Duration = Duration::from_secs(1);

/// Time between look-ups without any event: the kernel reports none when it learns a path MTU from its own packets,
/// and an answer has it as the route's MTU.
const REFRESH: Duration = Duration::from_secs(30);

/// Keeps the next hops of wanted addresses, and the ports of bonds.
pub struct NextHops {
    handle: Handle,
    connection: JoinHandle<()>,
    hops: Hops,
    changes: mpsc::Sender<NetChange>,
    work: JoinSet<Done>,
    /// Addresses to look up.
    stale: BTreeSet<IpAddr>,
    looking_up: bool,
    /// A link changed meanwhile: what comes of it may be of before.
    outdated: bool,
    look_up_from: Instant,
    /// When all are to be looked up, since a link has changed.
    look_up_all: Option<Instant>,
    lost: bool,
}

/// Work that has come to its end.
enum Done {
    LookedUp(Routes),
    Asked(NeighbourKey, Option<String>),
}

/// Why it ends.
enum End {
    /// Nobody wants to know any more.
    Unheard,
    Failed(NetError),
}

impl From<NetError> for End {
    fn from(error: NetError) -> Self {
        Self::Failed(error)
    }
}

impl NextHops {
    /// Resolves `wanted` as it is and as it becomes, and tells `changes`; `attached` are the interfaces that
    /// have the packet program. In the network namespace of the calling thread.
    ///
    /// Ends well when the sender of `wanted` or the receiver of `changes` is gone, else when netlink
    /// fails for good.
    ///
    /// # Errors
    /// No netlink socket.
    pub fn spawn(
        wanted: watch::Receiver<Arc<BTreeSet<IpAddr>>>,
        changes: mpsc::Sender<NetChange>,
        attached: BTreeSet<u32>,
    ) -> Result<JoinHandle<Result<(), NetError>>, NetError> {
        // Heard from before anything is read: nothing falls between.
        let events = Events::open(OF_NEXT_HOPS)?;
        let (handle, connection) = connect()?;
        let next_hops = Self {
            handle,
            connection,
            hops: Hops::new(attached),
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
                End::Unheard => Ok(()),
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
            if let Err(end) = self.carry_out().await {
                return end;
            }
            let wake = self.wake();
            let heard = tokio::select! {
                heard = events.next() => heard,
                Some(done) = self.work.join_next() => match done {
                    Ok(done) => {
                        self.done(done);
                        continue;
                    }
                    // Nothing cancels it.
                    Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
                },
                changed = wanted.changed() => match changed {
                    Ok(()) => {
                        let addresses = wanted.borrow_and_update().clone();
                        self.stale.extend(self.hops.want(&addresses));
                        continue;
                    }
                    Err(_) => return End::Unheard,
                },
                () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => continue,
                _ = refresh.tick() => Ok(vec![Event::Routing]),
                _ = &mut self.connection => return NetError::Closed.into(),
                () = self.changes.closed() => return End::Unheard,
            };
            match heard {
                Ok(events) => events.into_iter().for_each(|event| self.hear(event)),
                Err(error) => return End::Failed(error),
            }
        }
    }

    fn hear(&mut self, event: Event) {
        match &event {
            Event::Neighbour(_) | Event::NeighbourGone(_) => {}
            Event::Link(_) | Event::LinkGone(_) => {
                let now = Instant::now();
                self.stale = self.hops.wanted();
                self.outdated = self.looking_up;
                // Links that change all the time put no look-up off for longer.
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

    fn done(&mut self, done: Done) {
        match done {
            Done::LookedUp(routes) => {
                self.looking_up = false;
                if std::mem::take(&mut self.outdated) {
                    // All are to be looked up again already.
                    return;
                }
                for (address, route) in routes {
                    match route {
                        Some(route) => self.hops.routed(address, route),
                        None => {
                            self.stale.insert(address);
                            self.look_up_from = Instant::now() + LOOK_UP_AGAIN;
                        }
                    }
                }
            }
            Done::Asked(key, refused) => self.hops.asked(key, refused),
        }
    }

    /// Does what is to be done now: reads all anew, tells, asks, looks up.
    async fn carry_out(&mut self) -> Result<(), End> {
        if self.lost {
            self.read_all().await?;
        }
        let bonds = self.hops.settle_bonds().map(NetChange::Bonds);
        let hops = self.hops.settle(Instant::now()).into_iter().map(NetChange::NextHop);
        for change in bonds.into_iter().chain(hops) {
            self.changes.send(change).await.map_err(|_| End::Unheard)?;
        }
        for key in self.hops.take_asks(Instant::now()) {
            let handle = self.handle.clone();
            self.work.spawn(async move {
                let refused = neighbour::ask(handle, key).await.err();
                Done::Asked(key, refused.map(|error| in_words(&error)))
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
            self.work.spawn(async { Done::LookedUp(route::routes(handle, stale).await) });
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

    /// When there is something to do though nothing happens.
    fn wake(&self) -> Option<Instant> {
        let look_up = self.may_look_up().then_some(self.look_up_from);
        self.hops.next_due().into_iter().chain(look_up).chain(self.look_up_all).min()
    }
}

/// What the kernel said of asking for a neighbour.
fn in_words(error: &rtnetlink::Error) -> String {
    warn!("net: asking for a neighbour: {error}");
    match error {
        rtnetlink::Error::NetlinkError(message) => {
            nix::errno::Errno::from_raw(-message.raw_code()).desc().to_lowercase()
        }
        other => other.to_string(),
    }
}
