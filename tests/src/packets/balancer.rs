//! The loaded balancer: maps filled from a fixture, one frame at a time.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
};

use anyhow::{Context as _, Result};
use aya::{
    Ebpf,
    maps::{self, ArrayOfMaps, HashMap, MapData, xdp::DevMapHash},
    programs::{TestRun, TestRunOptions, TestRunResult},
};
use lb_common::{
    abi::{
        arrays::Array,
        backend::Backend,
        limiter::Limiter,
        next_hop::NextHopEntry,
        pod::{Pod, from_bytes},
        pool::{Descriptor, Group, PoolLine},
        service::Service,
        zone::Zone,
    },
    flow_table::{Owner, Place, Position},
};
use lb_maps::{Arrays, FlowTable, MappingMut};

use super::{
    counters::Counters,
    fixture::{CHUNK, FLOW_BUCKETS, FLOW_SECRET, INGRESS, MapFixture, STRANGER, TABLES, Table},
    layout, objects,
};

type Chunk = maps::Array<MapData, [u8; 8]>;

/// Flags of chunks, as the balancer's own: `BPF_F_MMAPABLE` (include/uapi/linux/bpf.h).
const FLAGS: u32 = 1 << 10;

/// What a program made of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The XDP action.
    pub action: u32,
    /// The frame afterwards.
    pub frame: Vec<u8>,
}

/// Runs a program of an object over a frame, once.
///
/// # Errors
/// What the kernel answers; it takes no frame of less than 14 bytes.
pub fn run(bpf: &Ebpf, program: &str, frame: &[u8]) -> Result<Ran> {
    run_program(objects::program(bpf, program)?, frame)
}

/// Runs a program over a frame, once.
pub(super) fn run_program<P>(program: &P, frame: &[u8]) -> Result<Ran>
where
    P: for<'a> TestRun<Opts<'a> = TestRunOptions<'a>, Result = TestRunResult>,
{
    let mut out = vec![0; frame.len() + HEADROOM];
    let options = TestRunOptions {
        data_in: Some(frame),
        data_out: Some(&mut out),
        ..TestRunOptions::default()
    };
    let result = program.test_run(options).context("test run")?;
    out.truncate(result.data_size_out as usize);
    Ok(Ran { action: result.return_value, frame: out })
}

/// What a test run has in front of a frame (`XDP_PACKET_HEADROOM`), and what of it is the kernel's own (`struct
/// xdp_frame`, a cache line less three words), bytes.
const HEADROOM: usize = 256;
const KERNELS: usize = 40;

/// As [`run`], with no more than `room` bytes in front of the frame, a multiple of four: metadata takes the rest.
///
/// # Errors
/// What the kernel answers; before Linux 6.8 metadata takes 32 bytes at most (`xdp_metalen_invalid`).
fn run_in(bpf: &Ebpf, program: &str, frame: &[u8], room: usize) -> Result<Ran> {
    let metadata = HEADROOM - KERNELS - room;
    let all = [&vec![0; metadata], frame].concat();
    let mut out = vec![0; all.len() + HEADROOM];
    // `struct xdp_md`: where the frame begins, and where it ends.
    let mut context = [0; 24];
    context[..4].copy_from_slice(&(metadata as u32).to_ne_bytes());
    context[4..8].copy_from_slice(&(all.len() as u32).to_ne_bytes());
    let options = TestRunOptions {
        data_in: Some(&all),
        data_out: Some(&mut out),
        ctx_in: Some(&context),
        ..TestRunOptions::default()
    };
    let result = objects::program(bpf, program)?.test_run(options).context("test run")?;
    out.truncate(result.data_size_out as usize);
    Ok(Ran { action: result.return_value, frame: out.split_off(metadata) })
}

/// The loaded balancer.
pub struct Balancer {
    bpf: Ebpf,
    arrays: Arrays<MappingMut>,
    flows: FlowTable<MappingMut>,
    chunks: BTreeMap<u32, Chunk>,
    fixture: Option<MapFixture>,
    /// Pools and zones of the fixture, as they are before each frame.
    checks: Vec<(Array, u32, Vec<u8>)>,
    /// Lines of the flow table with the cells of the fixture, and its head.
    lines: BTreeMap<u32, [u8; 64]>,
}

impl fmt::Debug for Balancer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Balancer").field("fixture", &self.fixture).finish_non_exhaustive()
    }
}

impl Balancer {
    /// Loads it and makes its tables.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn load() -> Result<Self> {
        let entries = [("FLOWS", 64 + FLOW_BUCKETS)];
        let mut bpf = objects::load_sized("balancer", &["balancer"], &entries)?;
        let mut chunks = BTreeMap::new();
        for table in TABLES {
            let chunk = match chunks.entry(table.reference / CHUNK) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let chunk = make_chunk(&mut bpf, *entry.key()).context("make a chunk")?;
                    entry.insert(chunk)
                }
            };
            fill_table(chunk, table).context("fill a slot table")?;
        }
        let arrays = objects::arrays(&bpf)?;
        let flows = objects::flows(&bpf, 64 + FLOW_BUCKETS)?;
        Ok(Self {
            bpf,
            arrays,
            flows,
            chunks,
            fixture: None,
            checks: Vec::new(),
            lines: BTreeMap::new(),
        })
    }

    /// Takes the previous fixture out of the maps and puts another one there.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn show(&mut self, fixture: &MapFixture) -> Result<()> {
        if let Some(old) = self.fixture.take() {
            self.write(&old, true).context("take a fixture away")?;
        }
        self.write(fixture, false).context("show a fixture")?;
        let is_check = |array| matches!(array, Array::Pools | Array::Zones);
        self.checks = fixture.elements().into_iter().filter(|it| is_check(it.0)).collect();
        self.lines = BTreeMap::from([(0, layout::flow_head(FLOW_BUCKETS, FLOW_SECRET))]);
        for (line, first, cell) in fixture.cells() {
            let line = self.lines.entry(line).or_insert([0; 64]);
            line[first..first + cell.len()].copy_from_slice(&cell);
        }
        self.fixture = Some(fixture.clone());
        Ok(())
    }

    /// Runs a frame.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run(&mut self, frame: &[u8]) -> Result<Ran> {
        self.forget()?;
        self.run_beside_others(frame)
    }

    /// Runs a frame while another CPU may run another one; what the frames before it left stays.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run_beside_others(&self, frame: &[u8]) -> Result<Ran> {
        run(&self.bpf, "balancer", frame)
    }

    /// The cells of the flow table that are in use: where, and their words.
    pub fn cells(&self) -> impl Iterator<Item = (Position, Owner, Place)> + '_ {
        self.flows.cells(0, FLOW_BUCKETS)
    }

    /// Runs a frame that has so many bytes of room in front, a multiple of four.
    ///
    /// # Errors
    /// What the kernel answers; before Linux 6.8 it refuses.
    pub fn run_in(&mut self, frame: &[u8], room: usize) -> Result<Ran> {
        self.forget()?;
        run_in(&self.bpf, "balancer", frame, room)
    }

    /// Makes the next frame the first one, with the displaced checks and the cells that the fixture has.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn forget(&mut self) -> Result<()> {
        for (array, index, value) in &self.checks {
            self.element(*array, *index, value);
        }
        let left: Vec<_> = self.cells().collect();
        for (at, owner, _) in left {
            self.flows.erase(at, owner);
        }
        let mut map: maps::Array<_, [u8; 64]> = map_mut(&mut self.bpf, "FLOWS")?;
        for (line, value) in &self.lines {
            map.set(*line, value, 0)?;
        }
        Ok(())
    }

    /// The first `limit` counters of each map.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn counters(&self, limit: u32) -> Result<Counters> {
        Counters::read(&self.bpf, limit)
    }

    /// Sets or erases all services and their index.
    fn services(&self, services: &[([u8; 20], [u8; 32])], erase: bool) {
        let keys: Vec<_> = (1..).zip(services).map(|(record, (key, _))| (*key, record)).collect();
        for (record, (_, value)) in (1..).zip(services) {
            self.element(Array::Services, record, if erase { &[0; 32] } else { value });
        }
        for (at, word) in layout::service_index(&keys) {
            self.element(Array::ServiceIndex, at, &if erase { 0 } else { word }.to_le_bytes());
        }
    }

    fn write(&mut self, fixture: &MapFixture, erase: bool) -> Result<()> {
        self.services(&fixture.service_entries(), erase);
        let mut addresses: HashMap<_, [u8; 20], u32> = map_mut(&mut self.bpf, "ADDRESSES")?;
        for (key, word) in fixture.address_entries() {
            if erase { addresses.remove(&key) } else { addresses.insert(key, word, 0) }?;
        }
        for (array, index, mut value) in fixture.elements() {
            if erase {
                value.fill(0);
            }
            self.element(array, index, &value);
        }
        for (table, slot, list) in fixture.slots() {
            let chunk = self.chunks.get_mut(&(table.reference / CHUNK));
            let chunk = chunk.context("a table that was not made")?;
            set_list(chunk, table, slot, if erase { layout::slot([STRANGER; 4]) } else { list })?;
        }
        let mut shared: HashMap<_, [u8; 8], [u8; 8]> = map_mut(&mut self.bpf, "SHARED_BACKENDS")?;
        for (key, state) in fixture.shared_entries() {
            if erase { shared.remove(&key) } else { shared.insert(key, state, 0) }?;
        }
        let mut devices: DevMapHash<_> = map_mut(&mut self.bpf, "DEVICES")?;
        for &interface in &fixture.devices {
            // The only interface that is sure to be there stands for all.
            if erase {
                devices.remove(interface)?;
            } else {
                devices.insert(interface, INGRESS.into(), None, 0)?;
            }
        }
        Ok(())
    }

    fn element(&self, array: Array, index: u32, value: &[u8]) {
        fn set<T: Pod>(arrays: &Arrays<MappingMut>, array: Array, index: u32, value: &[u8]) {
            let value = from_bytes(value).expect("an element has its length");
            arrays.view::<T>(array).set(index, &value);
        }
        let set = match array {
            Array::Services => set::<Service>,
            Array::Pools => set::<PoolLine>,
            Array::Descriptors => set::<Descriptor>,
            Array::Groups => set::<Group>,
            Array::Backends => set::<Backend>,
            Array::NextHops => set::<NextHopEntry>,
            Array::Limiters => set::<Limiter>,
            Array::Zones => set::<Zone>,
            _ => set::<u64>,
        };
        set(&self.arrays, array, index, value);
    }
}

/// An empty chunk, at its place.
fn make_chunk(bpf: &mut Ebpf, index: u32) -> Result<Chunk> {
    let chunk = Chunk::create(CHUNK, FLAGS)?;
    let mut chunks: ArrayOfMaps<_, Chunk> = map_mut(bpf, "TABLES")?;
    chunks.set(index, &chunk, 0)?;
    Ok(chunk)
}

/// Makes all slots of a table lead to strangers.
fn fill_table(chunk: &mut Chunk, table: Table) -> Result<()> {
    let first = table.reference % CHUNK;
    for word in 0..table.slots {
        chunk.set(first + word, layout::slot([STRANGER; 4]), 0)?;
    }
    let owners = (0..64 / table.rank_bits)
        .fold(0, |owners: u64, _| owners << table.rank_bits | u64::from(STRANGER));
    for word in 0..(table.slots * table.rank_bits).div_ceil(64) {
        chunk.set(first + table.slots + word, owners.to_le_bytes(), 0)?;
    }
    Ok(())
}

/// Writes a slot's list, and its owner behind the lists.
fn set_list(chunk: &mut Chunk, table: Table, slot: u32, list: [u8; 8]) -> Result<()> {
    let first = table.reference % CHUNK;
    chunk.set(first + slot, list, 0)?;
    let (bit, mask) = (slot * table.rank_bits, (1 << table.rank_bits) - 1);
    let (word, place) = (first + table.slots + bit / 64, bit % 64);
    let owner = u64::from(u16::from_le_bytes([list[0], list[1]])) & mask;
    let others = u64::from_le_bytes(chunk.get(&word, 0)?) & !(mask << place);
    Ok(chunk.set(word, (others | owner << place).to_le_bytes(), 0)?)
}

/// A map of an object, as a type.
pub(super) fn map_mut<'b, M>(bpf: &'b mut Ebpf, name: &str) -> Result<M>
where
    M: TryFrom<&'b mut maps::Map, Error = maps::MapError>,
{
    let map = bpf.map_mut(name).with_context(|| format!("{name}: no such map"))?;
    M::try_from(map).with_context(|| name.to_owned())
}
