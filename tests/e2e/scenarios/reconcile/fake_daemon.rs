//! A fake of the daemon: configuration, numbers, health and next hops in memory, published to real maps.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr},
    path::Path,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use lb_common::abi::member::Accepts;
use lb_maps::{Attached, Dataplane, Options, PinnedMaps, SizeSettings, XdpMode};
use lb_model::{
    Configuration, Name,
    ids::{Ids, Quarantine},
    maglev::BuiltTables,
    next_hop::NextHop,
    plan::{self, MarkedOut, Plan, PlanInputs},
    unserved::LocalHost,
};
use lb_publish::{
    publisher::PacketPath as _,
    reconcile::{
        self, ApplySummary, MemberPath as _, MemberWords, ReconcileError, Reconciler, Settings,
        TableChecksums,
    },
};
use lb_tests::sandbox::Sandbox;
use nix::net::if_::if_nametoindex;
use tokio::runtime::{Builder, Runtime};

/// The daemon's own hash key.
pub(crate) const OWN_KEY: [u64; 2] = [0x1111, 0x2222];
pub(crate) const SOURCE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 250);

pub(crate) struct FakeDaemon {
    options: Options,
    pub(crate) own: Option<Name>,
    /// What its host is to VIPs.
    pub(crate) local_host: LocalHost,
    /// What of pools is marked out.
    pub(crate) out: BTreeMap<Name, MarkedOut>,
    pub(crate) configuration: Configuration,
    pub(crate) ids: Ids,
    rests: Quarantine,
    /// Ages between applies, so that retired numbers come back.
    now: Instant,
    pub(crate) states: BTreeMap<(Name, IpAddr), Accepts>,
    pub(crate) last_resorts: BTreeSet<(Name, IpAddr)>,
    pub(crate) hops: BTreeMap<IpAddr, NextHop>,
    /// Backends that lost theirs and await another.
    pub(crate) awaited: BTreeSet<IpAddr>,
    /// Expected MTU of every backend of the configuration.
    pub(crate) mtus: BTreeMap<IpAddr, u16>,
    /// The last plan, of which the next one reuses pools.
    planned: Option<Planned>,
    /// `None` for a moment only, while the daemon is down.
    running: Option<Running>,
}

/// A plan, and what it follows from.
struct Planned {
    own: Option<Name>,
    configuration: Configuration,
    ids: Ids,
    out: BTreeMap<Name, MarkedOut>,
    plan: Plan,
}

struct Running {
    _attached: Attached,
    reconciler: Reconciler,
    words: MemberWords,
    runtime: Runtime,
}

/// Waits for a change of the reconciler. The owner of member words takes its steps meanwhile, and does `after` after each.
async fn beside<T>(
    words: &mut MemberWords,
    change: impl Future<Output = T>,
    mut after: impl FnMut(&mut MemberWords),
) -> T {
    tokio::pin!(change);
    loop {
        tokio::select! {
            changed = &mut change => return changed,
            () = words.next_step() => after(words),
        }
    }
}

impl FakeDaemon {
    pub(crate) fn new(sandbox: &Sandbox, directory: &str) -> Result<Self> {
        Self::open(&sandbox.bpffs(directory)?, SizeSettings::default())
    }

    /// A daemon whose settings size its maps.
    pub(crate) fn with_sizes(
        sandbox: &Sandbox,
        directory: &str,
        sizes: SizeSettings,
    ) -> Result<Self> {
        Self::open(&sandbox.bpffs(directory)?, sizes)
    }

    /// A daemon whose store is lost: all that it knows is in the maps.
    pub(crate) fn without_store(bpffs: &Path) -> Result<Self> {
        let mut daemon = Self::open(bpffs, SizeSettings::default())?;
        let named = daemon.reconciler().named();
        daemon.ids = Ids::reserving(&named);
        Ok(daemon)
    }

    fn open(bpffs: &Path, sizes: SizeSettings) -> Result<Self> {
        let options = Options {
            objects: lb_programs::OBJECTS,
            bpffs: bpffs.into(),
            interfaces: vec![],
            hook: XdpMode::Auto.into(),
            sizes,
        };
        let mut daemon = Self {
            options,
            own: None,
            local_host: LocalHost::default(),
            out: BTreeMap::new(),
            configuration: Configuration::default(),
            ids: Ids::default(),
            rests: Quarantine::default(),
            now: Instant::now(),
            states: BTreeMap::new(),
            last_resorts: BTreeSet::new(),
            hops: BTreeMap::new(),
            awaited: BTreeSet::new(),
            mtus: BTreeMap::new(),
            planned: None,
            running: None,
        };
        daemon.start()?;
        Ok(daemon)
    }

    fn start(&mut self) -> Result<()> {
        let Dataplane { attached, maps, member_maps } = Dataplane::open(&self.options)?;
        let (reconciler, words) = Reconciler::open(maps, member_maps, Settings::default())?;
        let runtime = Builder::new_current_thread().build()?;
        self.running = Some(Running { _attached: attached, reconciler, words, runtime });
        // As the publisher does before its first command.
        self.follow_host()
    }

    /// Makes the maps follow the host as it is now.
    pub(crate) fn follow_host(&mut self) -> Result<()> {
        let host = Arc::new(self.local_host.clone());
        Ok(self.reconciler().follow_host(host)?)
    }

    pub(crate) fn bpffs(&self) -> &Path {
        &self.options.bpffs
    }

    pub(crate) fn reconciler(&mut self) -> &mut Reconciler {
        &mut self.running.as_mut().unwrap().reconciler
    }

    pub(crate) fn words(&mut self) -> &mut MemberWords {
        &mut self.running.as_mut().unwrap().words
    }

    /// Brings the maps to a plan, while the owner of member words takes its steps.
    pub(crate) fn publish(&mut self, plan: &Plan) -> Result<ApplySummary, ReconcileError> {
        self.publish_beside(plan, |_| ())
    }

    /// The same with something else that the owner of member words does after each of its steps.
    pub(crate) fn publish_beside(
        &mut self,
        plan: &Plan,
        after: impl FnMut(&mut MemberWords),
    ) -> Result<ApplySummary, ReconcileError> {
        let Running { reconciler, words, runtime, .. } = self.running.as_mut().unwrap();
        runtime.block_on(beside(words, reconciler.publish(plan, &BuiltTables::default()), after))
    }

    /// Digest over what packets decide by, read back from the maps.
    pub(crate) fn checksum(&mut self) -> Result<u64> {
        let checksum =
            reconcile::checksum(self.reconciler().maps(), &mut TableChecksums::default());
        Ok(checksum?)
    }

    pub(crate) fn forget_previous(&mut self, pools: &BTreeSet<u32>) -> Result<(), ReconcileError> {
        let Running { reconciler, words, runtime, .. } = self.running.as_mut().unwrap();
        runtime.block_on(beside(words, reconciler.forget_previous(pools), |_| ()))
    }

    pub(crate) fn read(&self) -> Result<PinnedMaps> {
        Ok(PinnedMaps::open(&self.options.bpffs)?)
    }

    /// The plan of the configuration, with numbers as the daemon gives them.
    pub(crate) fn plan(&mut self) -> Result<Plan> {
        self.now += Duration::from_secs(60);
        let sizes = self.reconciler().maps().sizes();
        let ids = self.ids.next(None, &self.configuration, &sizes, &self.rests, self.now)?;
        self.rests.adopt(&ids);
        self.ids = ids;
        let inputs = PlanInputs {
            configuration: &self.configuration,
            own: self.own.as_ref(),
            ids: &self.ids,
            hash_key: OWN_KEY,
            source_prefix: None,
            out: &self.out,
        };
        let plan = match &self.planned {
            None => plan::build(&inputs, None)?,
            Some(Planned { own, configuration, ids, out, plan }) => {
                let earlier = PlanInputs { configuration, own: own.as_ref(), ids, out, ..inputs };
                plan::build(&inputs, Some((&earlier, plan)))?
            }
        };
        self.planned = Some(Planned {
            own: self.own.clone(),
            configuration: self.configuration.clone(),
            ids: self.ids.clone(),
            out: self.out.clone(),
            plan: plan.clone(),
        });
        Ok(plan)
    }

    /// Applies the configuration, and forgets what home meant before.
    pub(crate) fn apply(&mut self) -> Result<ApplySummary> {
        let applied = self.change()?;
        self.forget()?;
        Ok(applied)
    }

    /// Forgets what home meant before, in all pools.
    pub(crate) fn forget(&mut self) -> Result<()> {
        let homes = self.reconciler().homes();
        let pools = homes.iter().filter(|(_, homes)| homes.has_previous).map(|(pool, _)| *pool);
        let pools = pools.collect();
        self.forget_previous(&pools)?;
        let named = self.reconciler().named();
        self.rests.settle(&self.ids, &named, self.now);
        Ok(())
    }

    /// Applies the configuration; open connections go by what home meant before.
    pub(crate) fn change(&mut self) -> Result<ApplySummary> {
        let plan = self.plan()?;
        let applied = self.publish(&plan)?;
        let named = self.reconciler().named();
        self.rests.settle(&self.ids, &named, self.now);
        self.expect();
        Ok(applied)
    }

    /// What an apply does to health, next hops and MTUs: what stays keeps its own, what is new is
    /// dead and nowhere.
    fn expect(&mut self) {
        let pools = &self.configuration.pools;
        let members: BTreeMap<_, _> = pools
            .iter()
            .flat_map(|(name, pool)| {
                pool.backends.iter().map(move |(a, b)| ((name.clone(), *a), b))
            })
            .collect();
        self.states.retain(|member, _| members.contains_key(member));
        self.last_resorts.retain(|member| members.contains_key(member));
        for member in members.keys() {
            self.states.entry(member.clone()).or_insert(Accepts::Nothing);
        }
        let mtus: BTreeMap<IpAddr, Option<u16>> =
            members.iter().map(|((_, address), backend)| (*address, backend.mtu)).collect();
        self.hops.retain(|address, _| mtus.contains_key(address));
        self.awaited.retain(|address| mtus.contains_key(address));
        self.mtus.retain(|address, _| mtus.contains_key(address));
        for (address, configured) in mtus {
            let mtu = match (self.hops.get(&address), configured) {
                (Some(hop), Some(configured)) => hop.mtu.min(configured),
                (Some(hop), None) => hop.mtu,
                (None, Some(configured)) => configured,
                (None, None) => 1500,
            };
            // A route that is gone leaves the last MTU standing.
            self.mtus.entry(address).and_modify(|known| *known = mtu.min(*known)).or_insert(mtu);
        }
    }

    pub(crate) fn set_state(&mut self, pool: &Name, address: IpAddr, state: Accepts) {
        let known = self.states.contains_key(&(pool.clone(), address));
        self.words().set_states(pool, &[(address, state)]);
        if known {
            self.states.insert((pool.clone(), address), state);
        }
    }

    pub(crate) fn set_last_resort(&mut self, pool: &Name, address: IpAddr, last_resort: bool) {
        let member = (pool.clone(), address);
        let known = self.states.contains_key(&member);
        assert_eq!(self.words().set_last_resort(pool, address, last_resort), known);
        if known && last_resort {
            self.last_resorts.insert(member);
        } else {
            self.last_resorts.remove(&member);
        }
    }

    /// What connections of a pool that are remembered at a host go by: its state there. Those that a last resort was
    /// given stay with it.
    pub(crate) fn host(&self, pool: &Name, address: IpAddr) -> Accepts {
        let member = (pool.clone(), address);
        match self.states.get(&member) {
            Some(Accepts::Nothing) if self.last_resorts.contains(&member) => Accepts::OpenOnly,
            state => state.copied().unwrap_or(Accepts::Nothing),
        }
    }

    /// Only backends of the configuration have next hops.
    pub(crate) fn set_next_hop(&mut self, address: IpAddr, hop: Option<NextHop>) -> Result<()> {
        self.words().set_next_hop(address, hop)?;
        self.awaited.remove(&address);
        match hop {
            None => {
                self.hops.remove(&address);
            }
            Some(hop) => {
                self.hops.insert(address, hop);
                let mut pools = self.configuration.pools.values();
                let configured = pools.find_map(|pool| pool.backends.get(&address)).unwrap().mtu;
                self.mtus.insert(address, configured.map_or(hop.mtu, |mtu| mtu.min(hop.mtu)));
            }
        }
        Ok(())
    }

    /// A backend loses its next hop, if it has one, and awaits another.
    pub(crate) fn lose_next_hop(&mut self, address: IpAddr) -> Result<()> {
        if self.hops.remove(&address).is_some() {
            self.awaited.insert(address);
        }
        let is_awaited = self.words().await_next_hop(address);
        ensure!(is_awaited == self.awaited.contains(&address), "{address} awaits: {is_awaited}");
        Ok(())
    }

    /// The daemon dies, with everything that it knows of the maps, and comes back. Of members without
    /// a word it then knows what is said of their host in that pool.
    pub(crate) fn restart(&mut self) -> Result<()> {
        let pools = self.plan()?.pools.into_values();
        let idle: Vec<_> = pools.map(|pool| (pool.name.clone(), pool.idle.clone())).collect();
        for member in idle
            .into_iter()
            .flat_map(|(pool, idle)| idle.into_iter().map(move |a| (pool.clone(), a)))
        {
            self.states.insert(member.clone(), self.host(&member.0, member.1));
            self.last_resorts.remove(&member);
        }
        // Words say of no last resort that it is dead.
        for member in &self.last_resorts {
            let state = self.states.get_mut(member).unwrap();
            if *state == Accepts::Nothing {
                *state = Accepts::OpenOnly;
            }
        }
        self.running = None;
        self.start()?;
        let applied = self.change()?;
        ensure!(
            applied == ApplySummary::default(),
            "the same plan after a restart wrote {applied:?}"
        );
        Ok(())
    }
}

/// Makes two interfaces that frames can be sent out of; their indices.
pub(crate) fn interfaces(prefix: &str) -> Result<[u32; 2]> {
    let names = [format!("{prefix}0"), format!("{prefix}1")];
    let pair = ["link", "add", &names[0], "type", "veth", "peer", "name", &names[1]];
    ensure!(Command::new("ip").args(pair).status()?.success(), "ip {pair:?}");
    Ok([if_nametoindex(names[0].as_str())?, if_nametoindex(names[1].as_str())?])
}

/// A gateway's next hop: five gateways on each interface, each with a MAC of a generation.
pub(crate) fn hop(interface: u32, gateway: u8, generation: u8) -> NextHop {
    NextHop {
        gateway: [192, 0, 2, gateway].into(),
        mac: [2, 0, 0, generation, 0, gateway],
        interface,
        vlan: None,
        interface_mac: [2, 0, 0, 0, 1, interface as u8],
        mtu: 1300 + 100 * u16::from(gateway),
        source: Some(SOURCE.into()),
    }
}
