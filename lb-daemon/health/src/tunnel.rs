//! Checks through the tunnel: to a VIP, in the pool's encapsulation, as clients' packets.
//!
//! The check's socket connects to the VIP with a mark. Marked packets are routed to a separate link
//! (`lb_net::ProbeLink`), where a packet program encapsulates them ([`TunnelProgram`]). The backend answers
//! directly, as it answers clients. Link and program are created when the first such check is due.

use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
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

use super::connect::{SocketOptions, is_shortage};
use lb_base::error_chain;
use lb_model::{Encapsulation, next_hop::NoNextHop};
use lb_net::{
    LinkRoute, PROBE_LINK, ProbeLink, STRICT_FILTER, SourceRules, Unresolved, has_strict_filter,
};

/// How long a route look-up stays valid, and how long a failure is not retried.
const FRESH: Duration = Duration::from_secs(1);
/// Time before a link is created again that was removed, or whose rules were.
const REST: Duration = Duration::from_secs(5);

/// An error of a [`TunnelProgram`].
pub type ProgramError = Box<dyn std::error::Error + Send + Sync>;

/// The packet program that encapsulates packets of checks. The daemon provides it.
pub trait TunnelProgram: std::fmt::Debug + Send {
    /// Sets the path of packets with a number.
    ///
    /// # Errors
    /// The program's map refused it.
    fn enter(&mut self, number: u32, way: &ProbeRoute) -> Result<(), ProgramError>;

    /// Removes a number, if it is set.
    ///
    /// # Errors
    /// The program's map refused it.
    fn remove(&mut self, number: u32) -> Result<(), ProgramError>;

    /// Redirects packets from a VIP that arrive by an interface to the link.
    ///
    /// # Errors
    /// The interface is gone, or the program's map refused it.
    fn redirect_answers(&mut self, vip: IpAddr, interface: u32) -> Result<(), ProgramError>;

    /// Redirects packets from a VIP no longer.
    ///
    /// # Errors
    /// The program's map refused it.
    fn stop_redirecting(&mut self, vip: IpAddr) -> Result<(), ProgramError>;
}

/// Loads the program and attaches it to the egress of a link in this thread's network namespace.
pub type AttachProgram = fn(link: &str) -> Result<Box<dyn TunnelProgram>, ProgramError>;

/// The tunnel of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VipTunnel {
    /// The destination of clients' packets.
    pub vip: IpAddr,
    /// How clients' packets get to the backend.
    pub encapsulation: Encapsulation,
}

/// Why a tunnel cannot be used.
#[derive(Debug)]
pub enum TunnelError {
    /// This host lacks a resource, which says nothing about the backend.
    Shortage(io::Error),
    /// No route to the backend.
    NoRoute(Unresolved),
    /// Another reason, as a text for operators.
    Unusable(String),
}

impl TunnelError {
    fn without_program() -> Self {
        Self::Unusable(format!("{PROBE_LINK} is being created again"))
    }

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
        Self::Unusable(error_chain::message(error))
    }
}

/// The tunnels of checks and VIP probes. Clones share them.
#[derive(Clone, Debug)]
pub struct Tunnels(Arc<TunnelsInner>);

#[derive(Debug)]
struct TunnelsInner {
    sources: SourceRules,
    attach: AttachProgram,
    state: Mutex<LinkState>,
    numbers: Arc<PathNumbers>,
}

#[derive(Debug, Default)]
struct LinkState {
    link: Option<Arc<ProbeLink>>,
    /// Whether something may have to be removed.
    is_made: bool,
    /// Why the link could not be created, and until when that is not retried.
    failed: Option<(Instant, String)>,
    /// Whether the prober has ended.
    is_closed: bool,
}

/// The program, and the numbers in use.
#[derive(Debug, Default)]
struct PathNumbers(Shared<PathTable>);

#[derive(Debug, Default)]
struct PathTable {
    program: Option<Box<dyn TunnelProgram>>,
    /// The path that is set for each number.
    ways: HashMap<u32, Option<ProbeRoute>>,
    /// The VIPs whose answers are handed to the link, by interface.
    answers: BTreeSet<(IpAddr, u32)>,
    last: u32,
}

impl Tunnels {
    /// Creates nothing yet; `sources` are the rules that tunnels of clients' packets have their sources by.
    pub fn new(sources: SourceRules, attach: AttachProgram) -> Self {
        let numbers = Arc::default();
        Self(Arc::new(TunnelsInner { sources, attach, state: Mutex::default(), numbers }))
    }

    /// The rules that this host's packets have their sources by.
    pub fn sources(&self) -> &SourceRules {
        &self.0.sources
    }

    /// Removes everything that was created, for good.
    pub(super) async fn close(&self) {
        let mut state = self.0.state.lock().await;
        self.0.numbers.put(None);
        state.link = None;
        state.is_closed = true;
        if state.is_made
            && let Err(error) = ProbeLink::remove().await
        {
            warn!("health: {PROBE_LINK} is not removed: {}", error_chain::message(&error));
        }
    }

    /// A path for the packets of one probe.
    pub(super) fn path(&self, backend: IpAddr, target: VipTunnel) -> TunnelPath {
        TunnelPath {
            tunnels: self.clone(),
            backend,
            target,
            repairs: true,
            number: None,
            seen: None,
        }
    }

    /// The same for a VIP probe, which does not replace the link if it finds it broken: checks would fail
    /// meanwhile.
    pub fn path_without_repair(&self, backend: IpAddr, target: VipTunnel) -> TunnelPath {
        TunnelPath { repairs: false, ..self.path(backend, target) }
    }

    async fn link(&self) -> Result<Arc<ProbeLink>, TunnelError> {
        // A task of its own, so that a check that times out does not cancel what other checks wait for.
        let tunnels = self.clone();
        let opening = tokio::spawn(async move { tunnels.linked().await });
        opening.await.unwrap_or_else(|error| Err(TunnelError::Unusable(error.to_string())))
    }

    async fn linked(&self) -> Result<Arc<ProbeLink>, TunnelError> {
        let mut state = self.0.state.lock().await;
        if let Some(link) = &state.link {
            return Ok(link.clone());
        }
        if let Some((until, why)) = &state.failed
            && Instant::now() < *until
        {
            return Err(TunnelError::Unusable(why.clone()));
        }
        if state.is_closed {
            return Err(TunnelError::Unusable("the daemon is stopping".into()));
        }
        state.is_made = true;
        match self.open().await {
            Ok(link) => Ok(state.link.insert(Arc::new(link)).clone()),
            Err(error) => {
                if let TunnelError::Unusable(why) = &error {
                    state.failed = Some((Instant::now() + FRESH, why.clone()));
                }
                Err(error)
            }
        }
    }

    /// Drops the link, so that it is created again after a while: its rules or the link itself were removed.
    async fn reopen(&self, why: &str) {
        let mut state = self.0.state.lock().await;
        if state.link.take().is_some() {
            warn!("health: {PROBE_LINK}: {why}; it will be created again");
            state.failed = Some((Instant::now() + REST, why.to_owned()));
            self.0.numbers.put(None);
        }
    }

    async fn open(&self) -> Result<ProbeLink, TunnelError> {
        let mut link = ProbeLink::create().await.map_err(|error| TunnelError::of(&error))?;
        let program = (self.0.attach)(PROBE_LINK).map_err(|error| TunnelError::of(&*error))?;
        self.0.numbers.put(Some(program));
        // Last, so that no packet gets to the link before the program is attached.
        link.route_marked_packets().await.map_err(|error| TunnelError::of(&error))?;
        info!("health: checks through tunnels use {PROBE_LINK}");
        Ok(link)
    }
}

impl PathNumbers {
    fn taken(&self) -> MutexGuard<'_, PathTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the program; the new one knows no paths.
    fn put(&self, program: Option<Box<dyn TunnelProgram>>) {
        let mut taken = self.taken();
        taken.program = program;
        taken.answers.clear();
        taken.ways.values_mut().for_each(|entered| *entered = None);
    }

    /// Where the answers from a VIP go: to the link, if it is an address of this host, or to the host.
    fn set_answers(&self, vip: IpAddr, interface: u32, is_own: bool) -> Result<(), TunnelError> {
        let mut taken = self.taken();
        let PathTable { program, answers, .. } = &mut *taken;
        let program = program.as_mut().ok_or_else(TunnelError::without_program)?;
        let of_vip = (vip, 0)..=(vip, u32::MAX);
        let set = match is_own {
            true if answers.contains(&(vip, interface)) => Ok(()),
            true => program.redirect_answers(vip, interface),
            false if answers.range(of_vip.clone()).next().is_none() => Ok(()),
            false => program.stop_redirecting(vip),
        };
        set.map_err(|error| TunnelError::of(&*error))?;
        match is_own {
            true => drop(answers.insert((vip, interface))),
            false => answers.retain(|(it, _)| *it != vip),
        }
        Ok(())
    }

    /// The free number that has been unused for longest.
    fn take(self: &Arc<Self>) -> Option<PathNumber> {
        let mut taken = self.taken();
        if taken.ways.len() >= MAX_PROBE_ROUTES {
            return None;
        }
        loop {
            taken.last = taken.last.wrapping_add(1) & !PROBE_MARK_MASK;
            let number = taken.last;
            if let Entry::Vacant(free) = taken.ways.entry(number) {
                free.insert(None);
                return Some(PathNumber { numbers: self.clone(), number });
            }
        }
    }
}

/// A number in use, until it is dropped.
#[derive(Debug)]
struct PathNumber {
    numbers: Arc<PathNumbers>,
    number: u32,
}

impl PathNumber {
    fn enter(&self, way: ProbeRoute) -> Result<(), TunnelError> {
        let mut taken = self.numbers.taken();
        let PathTable { program, ways, .. } = &mut *taken;
        let program = program.as_mut().ok_or_else(TunnelError::without_program)?;
        let entered = ways.entry(self.number).or_default();
        if *entered != Some(way) {
            program.enter(self.number, &way).map_err(|error| TunnelError::of(&*error))?;
            *entered = Some(way);
        }
        Ok(())
    }
}

impl Drop for PathNumber {
    fn drop(&mut self) {
        let mut taken = self.numbers.taken();
        taken.ways.remove(&self.number);
        if let Some(program) = &mut taken.program
            && let Err(error) = program.remove(self.number)
        {
            warn!(
                "health: path {} of a check is not removed: {}",
                self.number,
                error_chain::message(&*error)
            );
        }
    }
}

/// A path for the packets of one probe.
#[derive(Debug)]
pub struct TunnelPath {
    tunnels: Tunnels,
    backend: IpAddr,
    target: VipTunnel,
    /// Whether to create the link again if packets do not get to it.
    repairs: bool,
    number: Option<PathNumber>,
    /// The last look-up and its result.
    seen: Option<(Instant, SocketOptions)>,
}

impl TunnelPath {
    pub const fn vip(&self) -> IpAddr {
        self.target.vip
    }

    /// The options of a socket, looked up at most `FRESH` ago.
    ///
    /// # Errors
    /// [`TunnelError`].
    pub async fn socket_options(&mut self) -> Result<SocketOptions, TunnelError> {
        if let Some((when, options)) = self.seen
            && when.elapsed() < FRESH
        {
            return Ok(options);
        }
        self.seen = None;
        let options = self.look().await?;
        self.seen = Some((Instant::now(), options));
        Ok(options)
    }

    async fn look(&mut self) -> Result<SocketOptions, TunnelError> {
        let (backend, vip) = (self.backend, self.target.vip);
        let unusable = |why: String| Err(TunnelError::Unusable(why));
        let link = self.tunnels.link().await?;
        if let Some(why) = link.unusable_for(vip) {
            return unusable(format!("packets to {vip} cannot be routed to {PROBE_LINK}: {why}"));
        }
        let is_own = match link.receives(vip).await.map_err(|error| TunnelError::of(&error))? {
            LinkRoute::Marked => false,
            LinkRoute::Bound if vip.is_ipv4() && has_strict_filter() => {
                return unusable(format!(
                    "{vip} is an address of this host, and {STRICT_FILTER}=1 drops answers from it"
                ));
            }
            LinkRoute::Bound => true,
            LinkRoute::None => {
                let why = "packets of checks are routed elsewhere";
                if self.repairs {
                    self.tunnels.reopen(why).await;
                }
                return unusable(why.to_owned());
            }
        };
        let sources = &self.tunnels.0.sources;
        let route = link.route_to(backend, vip, sources).await;
        let route = route.map_err(|error| TunnelError::of(&error))?;
        let route = route.map_err(TunnelError::NoRoute)?;
        let form = self.target.encapsulation.form();
        if form.is_direct() && !route.on_link {
            return unusable(format!("direct return: {backend} is not on the link"));
        }
        if form.is_direct() && vip.is_ipv6() && backend.is_ipv4() {
            // The kernel sends IPv6 packets only to IPv6 neighbours.
            return unusable(format!(
                "direct return: IPv6 packets need a backend's IPv6 address, not {backend}"
            ));
        }
        // Receivers may allow only the prefix that packets of clients come from, so it is an address of that: one for all
        // checks, because their packets need no spreading.
        let source = match route.outer_source {
            Some(source) => address_words(source),
            None if form.is_direct() => [0; 4],
            None => return unusable(error_chain::message(&NoNextHop::NoSource(backend))),
        };
        let version = if backend.is_ipv4() { IPV4 } else { IPV6 };
        let way = ProbeRoute {
            backend: address_words(backend),
            source,
            version: version.into(),
            form: form.flags(),
            interface: route.interface,
            reserved: 0,
        };
        if self.number.is_none() {
            self.number = self.tunnels.0.numbers.take();
        }
        let Some(number) = &self.number else {
            return unusable(format!("more than {MAX_PROBE_ROUTES} checks go through tunnels"));
        };
        number.enter(way)?;
        self.tunnels.0.numbers.set_answers(vip, route.interface, is_own)?;
        let mark = Some(PROBE_MARK | number.number);
        let link = is_own.then_some(PROBE_LINK);
        Ok(SocketOptions { mark, source: route.inner_source, link })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_not_used_again_soon() {
        let numbers = Arc::new(PathNumbers::default());
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
        let numbers = Arc::new(PathNumbers::default());
        let mut all: Vec<_> = (0..MAX_PROBE_ROUTES).map(|_| numbers.take().unwrap()).collect();
        assert!(numbers.take().is_none());
        all.pop();
        assert!(numbers.take().is_some());
    }
}
