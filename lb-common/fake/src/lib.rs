//! The kernel's maps as plain vectors, for tests of the packet path's decision; limiters and arrivals for simulations.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

pub mod arrivals;
pub mod fixture;
pub mod limiter;

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    net::IpAddr,
};

use lb_common::{
    abi::{
        backend::{Backend, BackendStateWord},
        clock::Coarse,
        counter::{Event, GroupCounter},
        limiter::{ANSWER_WORDS, FIRST_LIMITER, LimitWord},
        member::{Accepts, FULL_RAMP, MemberWord},
        next_hop::{InterfaceWord, NextHopWord},
        pool::{Descriptor, Group, GroupHead, PoolLine, PoolWord},
        service::{
            AddressWords, IPV4, IPV6, SERVICE_FRAGMENTS, Service, ServiceKey, VipWord,
            address_words,
        },
        slot::{NO_RANK, SlotWord, StandbyWord, TableRef},
        zone::{Zone, ZoneRange},
    },
    flow_table::{
        self, Bucket, CELLS, Cell as FlowCell, FlowCells, FlowKey, Owner, Place, Segment,
    },
    path::Tables,
    word::Word,
};

/// The pool's index.
pub const POOL: u32 = 1;

/// MAC of every next hop, and of the balancer's interface 2.
pub const GATEWAY: [u8; 6] = [0x02, 0, 0, 0, 0, 0xfe];
pub const OWN: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];

#[derive(Default)]
pub struct FakeTables {
    pub services: HashMap<ServiceKey, Service>,
    pub pools: Vec<Cell<PoolLine>>,
    pub descriptors: Vec<Descriptor>,
    pub groups: Vec<Group>,
    pub tables: Vec<Vec<SlotWord>>,
    pub standbys: Vec<StandbyWord>,
    pub members: Vec<MemberWord>,
    pub backends: Vec<Backend>,
    pub next_hops: Vec<NextHopWord>,
    /// Source of all tunnels.
    pub source: AddressWords,
    pub backend_states: Vec<BackendStateWord>,
    /// By pool and backend.
    pub shared_backends: HashMap<(u32, u32), Accepts>,
    /// Limit and arrival.
    pub limiters: Vec<(Cell<LimitWord>, Cell<u64>)>,
    /// By index of the member's word.
    pub member_limiters: HashMap<u32, u32>,
    /// The flow table's words, two a cell.
    pub flows: Vec<Cell<u64>>,
    /// How often a packet of an open connection looked for its cell.
    pub looked_up: Cell<u64>,
    /// What another CPU makes of a cell between our reading and our exchange: once.
    pub taken_meanwhile: Cell<Option<(Owner, Place)>>,
    /// Arrivals of answers, by the index of their word.
    pub answers: Vec<Cell<u64>>,
    /// Whether packets for VIPs that no service takes are dropped.
    pub drops_unserved: bool,
    pub zones: RefCell<HashMap<u32, Zone>>,
    /// Cells by pool; of all pools together: the first.
    pub flow_counts: Vec<Cell<u64>>,
    pub events: RefCell<HashMap<Event, u64>>,
    pub group_counters: RefCell<HashMap<u32, GroupCounter>>,
    /// The clock, nanoseconds.
    pub now: Cell<u64>,
}

impl FakeTables {
    /// Buckets of the flow table, unless a test wants others.
    pub const BUCKETS: u32 = 1 << 10;

    /// Zones of a pool.
    pub const ZONES: u32 = 64;

    /// Makes the flow table one of so many buckets, empty.
    pub fn set_buckets(&mut self, buckets: u32) {
        self.flows = (0..2 * CELLS * buckets).map(|_| Cell::new(0)).collect();
    }

    /// The cells of the flow table.
    pub fn cells(&self) -> impl Iterator<Item = (Owner, Place)> {
        self.flows.chunks_exact(2).map(|cell| (Owner(cell[0].get()), Place(cell[1].get())))
    }
}

/// A bucket of the flow table.
#[derive(Clone, Copy)]
pub struct FakeBucket<'c> {
    words: &'c [Cell<u64>],
    taken_meanwhile: &'c Cell<Option<(Owner, Place)>>,
}

impl Bucket for FakeBucket<'_> {
    fn load(self, word: u32) -> u64 {
        self.words[word as usize].get()
    }
    fn exchange(self, word: u32, from: u64, to: u64) -> bool {
        if let Some((owner, place)) = self.taken_meanwhile.take() {
            let first = word as usize / 2 * 2;
            self.words[first].set(owner.0);
            self.words[first + 1].set(place.0);
        }
        (&self.words[word as usize]).exchange(from, to).is_ok()
    }
    fn store(self, word: u32, to: u64) {
        self.words[word as usize].set(to);
    }
}

impl FlowCells for FakeTables {
    type Bucket<'c> = FakeBucket<'c>;

    fn mask(&self) -> Option<u32> {
        (self.flows.len() as u32 / (2 * CELLS)).checked_sub(1)
    }
    fn bucket(&self, number: u32) -> Option<FakeBucket<'_>> {
        let words = self.flows.chunks_exact(2 * CELLS as usize).nth(number as usize)?;
        Some(FakeBucket { words, taken_meanwhile: &self.taken_meanwhile })
    }
    fn nearest(
        &self,
        key: FlowKey,
        segment: Segment,
        now: Coarse,
        found: &mut FlowCell,
    ) -> (bool, bool) {
        self.looked_up.set(self.looked_up.get() + 1);
        flow_table::nearest(self, key, segment, now, found)
    }
}

impl Tables for FakeTables {
    type Word<'t> = &'t Cell<u64>;

    fn vip(&self, address: &AddressWords, version: u8) -> Option<VipWord> {
        let is_vip = |key: &ServiceKey| (key.address, key.version) == (*address, version);
        self.services.keys().any(is_vip).then(|| VipWord::new(self.drops_unserved))
    }
    fn answer_arrival(&self, index: u32) -> Option<Self::Word<'_>> {
        self.answers.get(index as usize)
    }
    fn now(&self) -> u64 {
        self.now.get()
    }
    fn limiter(&self, index: u32) -> Option<(LimitWord, u64)> {
        self.limiters.get(index as usize).map(|(limit, arrival)| (limit.get(), arrival.get()))
    }
    fn arrival(&self, index: u32) -> Option<Self::Word<'_>> {
        self.limiters.get(index as usize).map(|(_, arrival)| arrival)
    }
    fn member_limiter(&self, index: u32) -> Option<u32> {
        self.member_limiters.get(&index).copied()
    }
    fn backend_state(&self, backend: u32) -> Option<BackendStateWord> {
        self.backend_states.get(backend as usize).copied()
    }
    fn shared_backend(&self, pool: u32, backend: u32) -> Accepts {
        self.shared_backends.get(&(pool, backend)).copied().unwrap_or(Accepts::Nothing)
    }
    fn set_last_displaced(&self, pool: u32, now: Coarse) {
        let line = &self.pools[pool as usize];
        line.set(PoolLine { last_displaced: now.0, ..line.get() });
    }
    fn zone(&self, index: u32) -> Option<Zone> {
        Some(self.zones.borrow().get(&index).copied().unwrap_or_default())
    }
    fn set_zone_displaced(&self, index: u32, now: Coarse) {
        self.zones.borrow_mut().entry(index).or_default().last_displaced = now.0;
    }
    fn flow_count(&self, pool: u32) -> Option<&Cell<u64>> {
        self.flow_counts.get(pool as usize)
    }
    fn flow_secret(&self) -> [u64; 2] {
        [0x005e_c2e7, 0x000f_ba1a_0ce2]
    }
    fn count(&self, event: Event) {
        *self.events.borrow_mut().entry(event).or_default() += 1;
    }
    fn count_group(&self, limiter: u32, count: impl FnOnce(&mut GroupCounter)) {
        count(self.group_counters.borrow_mut().entry(limiter).or_default());
    }
    fn service(&self, key: &ServiceKey) -> Option<&Service> {
        self.services.get(key)
    }
    fn pool(&self, index: u32) -> Option<PoolLine> {
        self.pools.get(index as usize).map(Cell::get)
    }
    fn descriptor(&self, index: u32) -> Option<&Descriptor> {
        self.descriptors.get(index as usize)
    }
    fn group(&self, index: u32) -> Option<&Group> {
        self.groups.get(index as usize)
    }
    fn slot(&self, table: TableRef, slot: u32) -> Option<SlotWord> {
        self.tables.get(table.0 as usize)?.get(slot as usize).copied()
    }
    fn standby(&self, index: u32) -> Option<StandbyWord> {
        self.standbys.get(index as usize).copied()
    }
    fn member(&self, index: u32) -> Option<MemberWord> {
        self.members.get(index as usize).copied()
    }
    fn backend(&self, index: u32) -> Option<&Backend> {
        self.backends.get(index as usize)
    }
    fn next_hop(&self, index: u32) -> Option<NextHopWord> {
        self.next_hops.get(index as usize).copied()
    }
    fn tunnel_source(&self, next_hop: u32) -> Option<AddressWords> {
        self.next_hop(next_hop).map(|_| self.source)
    }
    fn interface(&self, index: u32) -> Option<InterfaceWord> {
        Some(InterfaceWord::new(if index == 2 { OWN } else { [0x02, 0, 0, 0, 1, index as u8] }))
    }
}

fn backend(address: IpAddr) -> Backend {
    Backend {
        address: address_words(address),
        version: if address.is_ipv4() { IPV4 } else { IPV6 },
        incarnation: 5,
        mtu: 1500,
        on_link: 1,
        reserved: [0; 5],
    }
}

/// The source of tunnels of an IP version.
fn source(version: u8) -> IpAddr {
    if version == IPV4 { [10, 0, 0, 1].into() } else { [0xfd00, 0, 0, 0, 0, 0, 0, 1].into() }
}

/// Backend addresses of tests: `10.0.REGION.N` or `fd00:REGION::N`.
pub fn backend_address(region: u8, n: u8, version: u8) -> IpAddr {
    if version == IPV4 {
        IpAddr::from([10, 0, region, n])
    } else {
        IpAddr::from([0xfd00, u16::from(region), 0, 0, 0, 0, 0, u16::from(n)])
    }
}

impl FakeTables {
    /// One pool with a group per entry of `regions`: the slot lists, and how many members.
    /// Members are up behind next hop 1, on interface 2. Backend 0 and descriptor 0 stay unused.
    pub fn new(regions: &[(Vec<[u16; 4]>, u8)], version: u8) -> Self {
        let mut fake = Self {
            next_hops: vec![NextHopWord::UNRESOLVED, NextHopWord::new(GATEWAY, 2)],
            source: address_words(source(version)),
            backends: vec![backend(IpAddr::from([0, 0, 0, 0]))],
            backend_states: vec![BackendStateWord::GONE],
            limiters: (0..FIRST_LIMITER)
                .map(|_| (Cell::new(LimitWord::UNLIMITED), Cell::new(0)))
                .collect(),
            answers: (0..ANSWER_WORDS).map(|_| Cell::new(0)).collect(),
            drops_unserved: false,
            pools: vec![Cell::default()],
            flow_counts: vec![Cell::default()],
            // An hour after the kernel's start.
            now: Cell::new(3_600_000_000_000),
            ..Self::default()
        };
        fake.set_buckets(Self::BUCKETS);
        assert_eq!(fake.add_pool(regions, version), POOL);
        fake.descriptors.insert(0, fake.descriptors[0]);
        fake
    }

    /// Adds a pool, with zones of its own; its regions' indices follow those that there are. Returns its index.
    pub fn add_pool(&mut self, regions: &[(Vec<[u16; 4]>, u8)], version: u8) -> u32 {
        let (pool, first) = (self.pools.len() as u32, self.groups.len());
        let mut order = [0; 8];
        for (place, (lists, members)) in regions.iter().enumerate() {
            let region = self.groups.len() as u32;
            order[place] = region;
            let head = GroupHead {
                table: self.tables.len() as u32,
                slots: lists.len() as u32,
                members: self.members.len() as u32,
                member_count: u32::from(*members),
            };
            let limiter = self.limiters.len() as u32;
            self.limiters.push((Cell::new(LimitWord::UNLIMITED), Cell::new(0)));
            self.groups.push(Group { head, region, limiter, reserved: [0; 2] });
            self.tables.push(lists.iter().map(|&ranks| SlotWord::new(ranks)).collect());
            self.standbys.extend([StandbyWord::new(None); 8]);
            for n in 0..*members {
                let index = self.backends.len() as u32;
                self.backends.push(backend(backend_address(region as u8, n, version)));
                self.members.push(MemberWord::new(index, 5, Accepts::All, FULL_RAMP, 1));
                self.backend_states.push(BackendStateWord::new(5, Accepts::All, 1, pool));
            }
        }
        let none = GroupHead { table: 0, slots: 0, members: 0, member_count: 0 };
        let at = self.descriptors.len().max(1) as u32;
        self.descriptors.push(Descriptor {
            hash_key: [3, 4],
            home: self.groups.get(first).map_or(none, |group| group.head),
            source_v4: 0,
            source_hosts_v4: 0,
            flags: 0,
            home_limiter: self.groups.get(first).map_or(0, |group| group.limiter),
            groups: order,
            group_count: regions.len() as u32,
            spare: [0; 11],
        });
        let zones = ZoneRange::new(100 * pool, Self::ZONES);
        let line = PoolLine { word: PoolWord::new(at, 0).0, zones: zones.0, ..PoolLine::default() };
        self.pools.push(Cell::new(line));
        self.flow_counts.push(Cell::default());
        pool
    }

    /// Three members in the first region and one in the next, one slot each: every flow is in slot 0.
    /// A service at 192.0.2.1:80.
    pub fn one_slot() -> Self {
        let regions = [(vec![[0, 1, 2, NO_RANK]], 3), (vec![[0, NO_RANK, NO_RANK, NO_RANK]], 1)];
        Self::new(&regions, 4).with_service("192.0.2.1", 80, 6, 0)
    }

    /// Adds a service on the pool.
    pub fn with_service(mut self, vip: &str, port: u16, protocol: u8, flags: u32) -> Self {
        self.add_service(vip, (port, protocol), flags, POOL);
        self
    }

    /// Adds a service on a pool.
    pub fn add_service(&mut self, vip: &str, port: (u16, u8), flags: u32, pool: u32) {
        let key = ServiceKey::new(vip.parse().unwrap(), port.0, port.1);
        self.services.insert(key, Service { key, index: pool, pool, flags });
        if flags & SERVICE_FRAGMENTS != 0 {
            let key = key.fragments();
            self.services.insert(key, Service { key, index: pool, pool, flags });
        }
    }

    /// Adds a version of the pool: its regions in an order, without the members (region, rank) in home
    /// that are out of it. Returns its descriptor's index.
    pub fn add_version(&mut self, order: &[usize], out: &[(usize, u32)]) -> u32 {
        let mut version = self.descriptors[1];
        for (place, &region) in order.iter().enumerate() {
            let mut group = self.groups[region];
            let ranks: Vec<_> = out.iter().filter(|it| it.0 == region).map(|it| it.1).collect();
            version.groups[place] = region as u32;
            if !ranks.is_empty() {
                let block = group.head.members..group.head.members + group.head.member_count;
                group.head.members = self.members.len() as u32;
                for (rank, at) in block.enumerate() {
                    let out = ranks.contains(&(rank as u32));
                    self.members.push(self.members[at as usize].with_marked_out(out));
                }
                version.groups[place] = self.groups.len() as u32;
                self.groups.push(group);
                self.standbys.extend([StandbyWord::new(None); 8]);
            }
        }
        let first = self.groups[version.groups[0] as usize];
        (version.home, version.home_limiter) = (first.head, first.limiter);
        self.descriptors.push(version);
        self.descriptors.len() as u32 - 1
    }

    /// Sets which versions the pool has.
    pub fn set_versions(&self, word: PoolWord) {
        let line = &self.pools[POOL as usize];
        line.set(PoolLine { word: word.0, ..line.get() });
    }

    /// Changes one member's state, in all versions.
    pub fn set(&mut self, region: usize, rank: u32, state: Accepts) {
        self.change(region, rank, |member| member.with_accepts(state));
        self.follow(region, rank, state);
        // As the daemon does it.
        let offers = |member: &MemberWord| {
            if member.is_last_resort() { Accepts::All } else { member.accepts() }
        };
        let most = self.members.iter().map(offers).max_by_key(|offers| *offers as u8);
        let most = most.unwrap_or(Accepts::All);
        for member in &mut self.members {
            *member = member.with_pool_accepts(most);
        }
    }

    /// Changes one member's next hop.
    pub fn set_next_hop(&mut self, region: usize, rank: u32, next_hop: u16) {
        self.change(region, rank, |member| member.with_next_hop(next_hop));
        let member = self.members[(self.groups[region].head.members + rank) as usize];
        let state = self.backend_states[member.backend() as usize].accepts_in(POOL);
        self.follow(region, rank, state);
    }

    /// The state of a member's backend follows it.
    fn follow(&mut self, region: usize, rank: u32, state: Accepts) {
        let member = self.members[(self.groups[region].head.members + rank) as usize];
        let host = BackendStateWord::new(member.incarnation(), state, member.next_hop(), POOL);
        self.backend_states[member.backend() as usize] = host;
    }

    fn change(&mut self, region: usize, rank: u32, to: impl Fn(MemberWord) -> MemberWord) {
        for group in self.groups.iter().filter(|group| group.region == region as u32) {
            let at = (group.head.members + rank) as usize;
            self.members[at] = to(self.members[at]);
        }
    }
}
