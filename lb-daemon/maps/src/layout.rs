//! The shape that each map must have, so that a pin of another build is refused instead of misread.

use aya::maps::{MapInfo, MapType};
use lb_common::abi::{
    arrays::ArrayLayout,
    capture::{Capture, CaptureBuffer, RING_BYTES, SECTION},
    counter::{EVENT_SLOTS, GroupCounter, TrafficCounter, VerdictCounter},
    flow_map::LINE_WORDS,
    limits, names,
    service::{SourcePrefix, VipKey},
    sizes::MapSizes,
    verdict::VERDICT_SLOTS,
};

use super::Component;

/// `BPF_F_MMAPABLE`, include/uapi/linux/bpf.h: the daemon maps the array's memory.
pub(super) const MMAPABLE: u32 = 1 << 10;

/// The shape of a map.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Name under the pins.
    pub(super) name: &'static str,
    /// Name in the object: the same, but for sections.
    pub(super) in_object: &'static str,
    map_type: MapType,
    key_size: usize,
    value: Value,
    /// `None`: what the sizes in force say, or any number.
    entries: Option<u32>,
}

/// What a value is.
#[derive(Clone, Copy, Debug)]
enum Value {
    Bytes(usize),
    /// All arrays, for the sizes in force.
    Arrays,
    /// The loader chose it by the kernel's abilities.
    Any,
}

impl Value {
    /// Its bytes, if they are known.
    fn bytes(self, sizes: &MapSizes) -> Option<usize> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Arrays => Some(ArrayLayout::new(sizes).bytes() as usize),
            Self::Any => None,
        }
    }
}

impl Shape {
    const fn new(name: &'static str, map_type: MapType, key_size: usize, value: usize) -> Self {
        Self::of_value(name, map_type, key_size, Value::Bytes(value))
    }

    const fn of_value(
        name: &'static str,
        map_type: MapType,
        key_size: usize,
        value: Value,
    ) -> Self {
        Self { name, in_object: name, map_type, key_size, value, entries: None }
    }

    /// The same with a number of entries that no setting changes.
    const fn of(self, entries: u32) -> Self {
        Self { entries: Some(entries), ..self }
    }

    const fn per_cpu<T>(name: &'static str) -> Self {
        Self::new(name, MapType::PerCpuArray, 4, size_of::<T>())
    }

    /// How a map differs from this shape, or `None`. Maps that a setting sizes have to fit each other.
    pub(super) fn difference(&self, map: &MapInfo, sizes: &MapSizes) -> Option<String> {
        let found = map.map_type().ok();
        if found != Some(self.map_type) {
            return Some(format!("type {found:?}, expected {:?}", self.map_type));
        }
        let (key_size, value_size) = (map.key_size() as usize, map.value_size() as usize);
        let expected = self.value.bytes(sizes).unwrap_or(value_size);
        if (self.key_size, expected) != (key_size, value_size) {
            return Some(format!(
                "key and value of {key_size} and {value_size} bytes, expected {} and {expected}",
                self.key_size
            ));
        }
        let expected = self.entries.or_else(|| sizes.entries(self.name));
        let entries = expected.filter(|entries| *entries != map.max_entries())?;
        Some(format!("{} entries, expected {entries}", map.max_entries()))
    }
}

const BALANCER: [Shape; 14] = [
    Shape::of_value(names::ARRAYS, MapType::Array, 4, Value::Arrays).of(1),
    Shape::new(names::ADDRESSES, MapType::Hash, size_of::<VipKey>(), 4),
    Shape::new(names::SHARED_BACKENDS, MapType::Hash, size_of::<u64>(), size_of::<u64>()),
    Shape::new(names::FLOWS, MapType::Array, 4, LINE_WORDS * size_of::<u64>()),
    Shape::new(names::TABLES, MapType::ArrayOfMaps, 4, 4).of(limits::MAX_CHUNKS),
    Shape::of_value(names::DEVICES, MapType::DevMapHash, 4, Value::Any),
    Shape::per_cpu::<VerdictCounter>(names::VERDICT_COUNTERS).of(VERDICT_SLOTS),
    Shape::per_cpu::<TrafficCounter>(names::SERVICE_COUNTERS),
    Shape::per_cpu::<TrafficCounter>(names::BACKEND_COUNTERS),
    Shape::per_cpu::<GroupCounter>(names::GROUP_COUNTERS),
    Shape::per_cpu::<u64>(names::EVENT_COUNTERS).of(EVENT_SLOTS),
    Shape {
        entries: Some(1),
        in_object: SECTION,
        ..Shape::new(names::CAPTURE, MapType::Array, 4, size_of::<Capture>())
    },
    Shape::per_cpu::<CaptureBuffer>(names::CAPTURE_BUFFER).of(1),
    Shape::new(names::SAMPLES, MapType::RingBuf, 0, 0).of(RING_BYTES),
];

const RECEIVER: [Shape; 5] = [
    Shape::new(names::SOURCES, MapType::LpmTrie, size_of::<SourcePrefix>(), 4),
    Shape::new(names::VIPS, MapType::Hash, size_of::<VipKey>(), 4),
    Shape::new(names::ENDPOINTS, MapType::Hash, size_of::<VipKey>(), 4).of(limits::MAX_ENDPOINTS),
    Shape::new(names::GUE_PORT, MapType::Array, 4, size_of::<u64>()).of(1),
    Shape::per_cpu::<VerdictCounter>(names::VERDICT_COUNTERS).of(VERDICT_SLOTS),
];

/// The maps of a component.
pub(super) const fn shapes(component: Component) -> &'static [Shape] {
    match component {
        Component::Balancer => &BALANCER,
        Component::Receiver => &RECEIVER,
    }
}
