//! Checks that go to a backend as clients' packets do: to a VIP, in the pool's tunnel.
//!
//! Such a check is a socket of this host's that connects to the VIP, with a mark. What has the mark is
//! led to a link of its own (`net::ProbeLink`), where a packet program puts it into the tunnel
//! ([`TunnelProgram`]). The answer comes as it does to clients, straight from the backend. Link
//! and program are made when the first such check is due.

use std::{
    collections::{HashMap, hash_map::Entry},
    io,
    net::IpAddr,
    sync::{Arc, Mutex as Shared, MutexGuard, PoisonError},
    time::Duration,
};

use lb_common::abi::{
    form::{MAX_PROBE_ROUTES, PROBE_MARK, PROBE_MARK_MASK, ProbeRoute},
    service::{IPV4, IPV6, address_words},
};
use tokio::{sync::Mutex, time::Instant};
use tracing::{info, warn};

use super::check::is_shortage;
use lb_base::error_chain;
use lb_model::{Encapsulation, plan::Sources};
use lb_net::{PROBE_LINK, ProbeLink, Unresolved};

/// How long a way is believed, and how long nothing is tried again that failed.
const FRESH: Duration = Duration::from_secs(1);
/// How long a link is let be that was taken away, or that others lead around.
const REST: Duration = Duration::from_secs(5);

/// An error of a [`TunnelProgram`].
pub type ProgramError = Box<dyn std::error::Error + Send + Sync>;

/// The packet program that puts packets of checks into tunnels. The daemon hands it in.
pub trait TunnelProgram: std::fmt::Debug + Send {
    /// Sets where packets with a number go.
    ///
    /// # Errors
    /// The program's map refused it.
    fn enter(&mut self, number: u32, way: &ProbeRoute) -> Result<(), ProgramError>;

    /// Removes a number. It is no error if it is not there.
    ///
    /// # Errors
    /// The program's map refused it.
    fn remove(&mut self, number: u32) -> Result<(), ProgramError>;
}

/// Loads the program and attaches it where packets leave by a link of this thread's network namespace.
pub type AttachProgram = fn(link: &str) -> Result<Box<dyn TunnelProgram>, ProgramError>;

/// What a check goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Through {
    /// Whom clients ask for.
    pub vip: IpAddr,
    /// How their packets get to the backend.
    pub encapsulation: Encapsulation,
}

/// What a socket needs so that its packets go through a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entrance {
    /// Its mark.
    pub mark: u32,
    /// The address of this host that it has; `None`: one that the kernel chooses.
    pub source: Option<IpAddr>,
}

/// Why a check does not come to a tunnel.
#[derive(Debug)]
pub enum NoEntrance {
    /// This host has no room: that says nothing about the backend.
    Shortage(io::Error),
    /// There is no way to the backend's host.
    Unreachable(Unresolved),
    /// Another reason of this host's, for users.
    Barred(String),
}

impl NoEntrance {
    fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(io) = error.downcast_ref::<io::Error>()
                && is_shortage(io)
                && let Some(code) = io.raw_os_error()
            {
                return Self::Shortage(io::Error::from_raw_os_error(code));
            }
            cause = error.source();
        }
        Self::Barred(error_chain::message(error))
    }
}

/// The tunnels of checks, and of what is tried when somebody asks. Clones are of the same.
#[derive(Clone, Debug)]
pub struct Tunnels(Arc<Opener>);

#[derive(Debug)]
struct Opener {
    sources: Sources,
    attach: AttachProgram,
    opened: Mutex<Opened>,
    numbers: Arc<Numbers>,
}

#[derive(Debug, Default)]
struct Opened {
    link: Option<Arc<ProbeLink>>,
    /// Whether there may be something to take away.
    is_made: bool,
    /// Why it is not opened, and up to when.
    failed: Option<(Instant, String)>,
    /// Whether it is not to be opened any more.
    is_closed: bool,
}

/// The program, and the numbers of ways that are taken.
#[derive(Debug, Default)]
struct Numbers(Shared<Taken>);

#[derive(Debug, Default)]
struct Taken {
    program: Option<Box<dyn TunnelProgram>>,
    /// What was entered for each.
    ways: HashMap<u32, Option<ProbeRoute>>,
    last: u32,
}

impl Tunnels {
    /// None yet; `sources` are this host's addresses on tunnels.
    pub fn new(sources: Sources, attach: AttachProgram) -> Self {
        let numbers = Arc::default();
        Self(Arc::new(Opener { sources, attach, opened: Mutex::default(), numbers }))
    }

    /// Takes it all away that was made for checks, for good. What is not there needs not be.
    pub(super) async fn close(&self) {
        let mut opened = self.0.opened.lock().await;
        self.0.numbers.put(None);
        opened.link = None;
        opened.is_closed = true;
        if opened.is_made
            && let Err(error) = ProbeLink::remove().await
        {
            warn!("health: {PROBE_LINK} stays: {}", error_chain::message(&error));
        }
    }

    /// A way for the packets of one probe.
    pub(super) fn lane(&self, backend: IpAddr, through: Through) -> Lane {
        Lane { tunnels: self.clone(), backend, through, mends: true, number: None, seen: None }
    }

    /// The same for somebody who only asks: what he finds wrong is left as it is, since checks would fail while
    /// the link is made anew.
    pub fn visit(&self, backend: IpAddr, through: Through) -> Lane {
        Lane { mends: false, ..self.lane(backend, through) }
    }

    async fn link(&self) -> Result<Arc<ProbeLink>, NoEntrance> {
        // A check that waits no longer must not end what all wait for.
        let tunnels = self.clone();
        let opening = tokio::spawn(async move { tunnels.linked().await });
        opening.await.unwrap_or_else(|error| Err(NoEntrance::Barred(error.to_string())))
    }

    async fn linked(&self) -> Result<Arc<ProbeLink>, NoEntrance> {
        let mut opened = self.0.opened.lock().await;
        if let Some(link) = &opened.link {
            return Ok(link.clone());
        }
        if let Some((until, why)) = &opened.failed
            && Instant::now() < *until
        {
            return Err(NoEntrance::Barred(why.clone()));
        }
        if opened.is_closed {
            return Err(NoEntrance::Barred("the daemon is stopping".into()));
        }
        opened.is_made = true;
        match self.open().await {
            Ok(link) => Ok(opened.link.insert(Arc::new(link)).clone()),
            Err(error) => {
                if let NoEntrance::Barred(why) = &error {
                    opened.failed = Some((Instant::now() + FRESH, why.clone()));
                }
                Err(error)
            }
        }
    }

    /// Has the link made anew, after a while: somebody took it, or what leads there.
    async fn reopen(&self, why: &str) {
        let mut opened = self.0.opened.lock().await;
        if opened.link.take().is_some() {
            warn!("health: {PROBE_LINK}: {why}; it is made anew");
            opened.failed = Some((Instant::now() + REST, why.to_owned()));
            self.0.numbers.put(None);
        }
    }

    async fn open(&self) -> Result<ProbeLink, NoEntrance> {
        let mut link = ProbeLink::create().await.map_err(|error| NoEntrance::of(&error))?;
        let program = (self.0.attach)(PROBE_LINK).map_err(|error| NoEntrance::of(&*error))?;
        self.0.numbers.put(Some(program));
        // Only now, so that nothing gets there that no program takes up.
        link.route_marked_packets().await.map_err(|error| NoEntrance::of(&error))?;
        info!("health: checks go through tunnels by {PROBE_LINK}");
        Ok(link)
    }
}

impl Numbers {
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a program in place of another, of whose ways it knows none.
    fn put(&self, program: Option<Box<dyn TunnelProgram>>) {
        let mut taken = self.taken();
        taken.program = program;
        taken.ways.values_mut().for_each(|entered| *entered = None);
    }

    /// A number that nobody has, the one that is longest unused.
    fn take(self: &Arc<Self>) -> Option<Number> {
        let mut taken = self.taken();
        if taken.ways.len() >= MAX_PROBE_ROUTES {
            return None;
        }
        loop {
            taken.last = taken.last.wrapping_add(1) & !PROBE_MARK_MASK;
            let number = taken.last;
            if let Entry::Vacant(free) = taken.ways.entry(number) {
                free.insert(None);
                return Some(Number { numbers: self.clone(), number });
            }
        }
    }
}

/// A number, until it is dropped.
#[derive(Debug)]
struct Number {
    numbers: Arc<Numbers>,
    number: u32,
}

impl Number {
    fn enter(&self, way: ProbeRoute) -> Result<(), NoEntrance> {
        let mut taken = self.numbers.taken();
        let Taken { program, ways, .. } = &mut *taken;
        let Some(program) = program.as_mut() else {
            return Err(NoEntrance::Barred(format!("{PROBE_LINK} is being made anew")));
        };
        let entered = ways.entry(self.number).or_default();
        if *entered != Some(way) {
            program.enter(self.number, &way).map_err(|error| NoEntrance::of(&*error))?;
            *entered = Some(way);
        }
        Ok(())
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        let mut taken = self.numbers.taken();
        taken.ways.remove(&self.number);
        if let Some(program) = &mut taken.program
            && let Err(error) = program.remove(self.number)
        {
            warn!(
                "health: way {} of a check stays: {}",
                self.number,
                error_chain::message(&*error)
            );
        }
    }
}

/// A way for the packets of one probe.
#[derive(Debug)]
pub struct Lane {
    tunnels: Tunnels,
    backend: IpAddr,
    through: Through,
    /// Whether the link is made anew where packets do not get there.
    mends: bool,
    number: Option<Number>,
    /// When it was looked at, and what it is.
    seen: Option<(Instant, Entrance)>,
}

impl Lane {
    /// The VIP.
    pub const fn vip(&self) -> IpAddr {
        self.through.vip
    }

    /// The entrance, as of a moment ago at most.
    ///
    /// # Errors
    /// [`NoEntrance`].
    pub async fn entrance(&mut self) -> Result<Entrance, NoEntrance> {
        if let Some((when, entrance)) = self.seen
            && when.elapsed() < FRESH
        {
            return Ok(entrance);
        }
        self.seen = None;
        let entrance = self.look().await?;
        self.seen = Some((Instant::now(), entrance));
        Ok(entrance)
    }

    async fn look(&mut self) -> Result<Entrance, NoEntrance> {
        let (backend, vip) = (self.backend, self.through.vip);
        let barred = |why: String| Err(NoEntrance::Barred(why));
        let link = self.tunnels.link().await?;
        if let Some(why) = link.unusable_for(vip) {
            return barred(format!("packets to {vip} cannot be led there: {why}"));
        }
        match link.receives(vip).await.map_err(|error| NoEntrance::of(&error))? {
            Ok(true) => {}
            Ok(false) => {
                let why = "what is sent by checks is led elsewhere";
                if self.mends {
                    self.tunnels.reopen(why).await;
                }
                return barred(why.to_owned());
            }
            // What this host has itself never leaves it, and what comes from there is not taken either.
            Err(own) => return barred(format!("{own}, so it cannot ask others for it")),
        }
        let way = link.route_to(backend).await.map_err(|error| NoEntrance::of(&error))?;
        let (interface, on_link) = way.map_err(NoEntrance::Unreachable)?;
        let form = self.through.encapsulation.form();
        if form.is_direct() && !on_link {
            return barred(format!("direct return: {backend} is not on the link"));
        }
        if form.is_direct() && vip.is_ipv6() && backend.is_ipv4() {
            // To the kernel an IPv6 packet has an IPv6 neighbour.
            return barred(format!(
                "direct return: IPv6 goes by a backend's IPv6 address, not by {backend}"
            ));
        }
        let source = match self.source_towards(backend) {
            Some(source) => address_words(source),
            None if form.is_direct() => [0; 4],
            None => return barred(format!("no source address of tunnels to {backend}")),
        };
        let version = if backend.is_ipv4() { IPV4 } else { IPV6 };
        let way = ProbeRoute {
            backend: address_words(backend),
            source,
            version: version.into(),
            form: form.flags(),
            interface,
            reserved: 0,
        };
        if self.number.is_none() {
            self.number = self.tunnels.0.numbers.take();
        }
        let Some(number) = &self.number else {
            return barred(format!("more than {MAX_PROBE_ROUTES} checks go through tunnels"));
        };
        number.enter(way)?;
        Ok(Entrance { mark: PROBE_MARK | number.number, source: self.source_towards(vip) })
    }

    /// This host's address of the version of another.
    fn source_towards(&self, other: IpAddr) -> Option<IpAddr> {
        let Sources { v4, v6 } = self.tunnels.0.sources;
        match other {
            IpAddr::V4(_) => v4.map(IpAddr::V4),
            IpAddr::V6(_) => v6.map(IpAddr::V6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_not_used_again_soon() {
        let numbers = Arc::new(Numbers::default());
        let first = numbers.take().unwrap();
        let second = numbers.take().unwrap();
        assert_eq!([first.number, second.number], [1, 2]);
        drop(first);
        let third = numbers.take().unwrap();
        assert_eq!(third.number, 3);
        numbers.taken().last = PROBE_MARK_MASK.wrapping_neg() - 2;
        let around: Vec<_> = (0..4).map(|_| numbers.take().unwrap()).collect();
        let numbers: Vec<_> = around.iter().map(|it| it.number).collect();
        assert_eq!(numbers, [0x00ff_ffff, 0, 1, 4], "2 and 3 are taken");
    }

    #[test]
    fn there_are_no_more_numbers_than_the_map_has_room() {
        let numbers = Arc::new(Numbers::default());
        let mut all: Vec<_> = (0..MAX_PROBE_ROUTES).map(|_| numbers.take().unwrap()).collect();
        assert!(numbers.take().is_none());
        all.pop();
        assert!(numbers.take().is_some());
    }
}
