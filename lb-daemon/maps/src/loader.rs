//! Loading a component's object: its maps are the pinned ones where there are any.

use std::{io, path::Path};

use aya::{
    Ebpf, EbpfError, EbpfLoader,
    maps::{MapData, MapInfo},
    programs::{ProgramError, TestRun as _, TestRunOptions, Xdp},
};
use lb_common::abi::{
    arrays::{ArrayLayout, LAYOUT},
    clock::{Coarse, TICK, TICKS_AT_START, ticks_at_start},
    names::{self, BALANCER_CLOCK},
    sizes::MapSizes,
};
use xxhash_rust::xxh64::xxh64;

use super::{
    Arrays, Component, FlowMaps, FlowTable, Hook, MapsError, Pins, SizeSettings, arrays,
    attach::{Program, SlowPathError, load_slow_path},
    clock, layout,
    maps::array,
    pins::RECEIVER_TC,
    raw::MappingMut,
    sizes,
};

/// Lines of the verifier's log that an error shows; the reason stands at the end.
const LOG_LINES: usize = 24;

/// Why an object could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The build has no packet programs.
    #[error(transparent)]
    Stub(#[from] StubObject),
    /// A pinned map is not what the object wants.
    #[error(transparent)]
    Maps(#[from] MapsError),
    /// The object or its maps were refused.
    #[error("{component} object")]
    Object { component: Component, source: EbpfError },
    /// The kernel refused the program.
    #[error(
        "{component} program: refused; the verifier's log ends\n{log}\nand the kernel answered"
    )]
    Verifier {
        component: Component,
        source: io::Error,
        /// The last lines of the verifier's log.
        log: String,
    },
    /// The program is not in the object, or is one for another hook.
    #[error("{component} program")]
    Program { component: Component, source: ProgramError },
    /// The balancer's slow path cannot be reached.
    #[error("slow path")]
    SlowPath(#[source] SlowPathError),
    /// The length of the kernel's tick is not known, from which the programs tell the time.
    #[error("cannot read the length of the kernel's tick")]
    Tick { source: io::Error },
    /// The object holds no program for the hook.
    #[error("{0} object: holds no program for this hook")]
    NoProgram(Component),
}

/// Loads a component's object over its pinned maps, with the program for a hook, and pins those that are not.
///
/// # Errors
/// [`LoadError`]; nothing that runs has changed then.
pub(super) fn load(
    objects: &Objects,
    component: Component,
    hook: Hook,
    pins: &Pins,
    settings: &SizeSettings,
) -> Result<Ebpf, LoadError> {
    let object = objects.component(component)?;
    let mut loader = EbpfLoader::new();
    // The programs read nothing of the kernel's own types.
    loader.btf(None);
    let (mut are_arrays_new, sizes) = match sizes::of_pinned(pins, component) {
        Err(MapsError::Missing { path }) => (true, pin_arrays(&path, settings, pins)?),
        pinned => (false, pinned?),
    };
    are_arrays_new &= component == Component::Balancer;
    for shape in layout::shapes(component) {
        let pin = pins.map(shape.name);
        let pinned = MapInfo::from_pin(&pin).ok();
        if let Some(difference) = pinned.as_ref().and_then(|map| shape.difference(map, &sizes)) {
            return Err(MapsError::Layout { path: pin, difference }.into());
        }
        if let Some(entries) = sizes.entries(shape.name) {
            loader.map_max_entries(shape.name, entries);
        }
        loader.map_pin_path(shape.in_object, pin);
    }
    let (tick, start, layout);
    if component == Component::Balancer {
        tick = clock::tick().map_err(|source| LoadError::Tick { source })?;
        start = ticks_at_start(tick);
        layout = ArrayLayout::new(&sizes).numbers();
        loader
            .override_global(TICK, &tick, true)
            .override_global(TICKS_AT_START, &start, true)
            .override_global(LAYOUT, &layout[..], true);
    }
    let mut loaded =
        loader.load(object).map_err(|source| LoadError::Object { component, source })?;
    program(&mut loaded, component, hook)?.load().map_err(|source| refused(component, source))?;
    if component == Component::Balancer {
        load_slow_path(&mut loaded).map_err(|error| match error {
            SlowPathError::Program(source) => refused(component, source),
            source => LoadError::SlowPath(source),
        })?;
        set_clock(&mut loaded, pins);
        let is_table_new = set_up_flows(pins, &sizes)?;
        if are_arrays_new && !is_table_new {
            keep_checks_on(pins, &sizes)?;
        }
    }
    Ok(loaded)
}

/// Writes the difference between the packet path's clock and `CLOCK_MONOTONIC_COARSE` into the arrays: 0 if it cannot be
/// measured, because limits that err are better than no balancer.
fn set_clock(loaded: &mut Ebpf, pins: &Pins) {
    let ahead = measure_clock(loaded).unwrap_or_else(|error| {
        warn_of_clock(&error);
        0
    });
    let map = MapData::from_pin(pins.map(names::ARRAYS)).map_err(io::Error::other);
    if let Err(error) = map.and_then(|map| arrays::set_clock_ahead(&map, ahead)) {
        warn_of_clock(&error);
    }
}

/// Gives a flow table that was just made its secret; returns whether it was.
fn set_up_flows(pins: &Pins, sizes: &MapSizes) -> Result<bool, MapsError> {
    let path = pins.map(names::FLOWS);
    let unreadable = |source| MapsError::Memory { path: path.clone(), source };
    let map = MapData::from_pin(&path).map_err(|error| unreadable(io::Error::other(error)))?;
    let table = FlowTable::<MappingMut>::new(&map, sizes.flow_lines()).map_err(unreadable)?;
    let is_new = !table.is_set_up();
    if is_new {
        let mut secret = [0; 16];
        getrandom::fill(&mut secret).map_err(|error| unreadable(error.into()))?;
        let (low, high) = secret.split_at(8);
        let word = |bytes: &[u8]| u64::from_ne_bytes(array(bytes));
        table.set_up([word(low), word(high)]);
    }
    Ok(is_new)
}

/// The flow table is of an earlier layout, whose pools had other zones: flows are looked up until its cells are over.
fn keep_checks_on(pins: &Pins, sizes: &MapSizes) -> Result<(), MapsError> {
    let path = pins.map(names::ARRAYS);
    let unreadable = |source| MapsError::Memory { path: path.clone(), source };
    let map = MapData::from_pin(&path).map_err(|error| unreadable(io::Error::other(error)))?;
    let arrays = Arrays::new(&map, sizes).map_err(unreadable)?;
    let now = Coarse::from_nanoseconds(clock::now().map_err(unreadable)?);
    FlowMaps::turn_all_on(&arrays, now);
    Ok(())
}

fn warn_of_clock(error: &io::Error) {
    tracing::warn!(
        error = lb_base::error_chain::message(error),
        "the packet path's clock cannot be measured: limits that change may forgive or keep up to a second's debt"
    );
}

fn measure_clock(loaded: &mut Ebpf) -> io::Result<i64> {
    let component = Component::Balancer;
    let program = loaded.program_mut(BALANCER_CLOCK);
    let program = program.ok_or_else(|| io::Error::other(LoadError::NoProgram(component)))?;
    let program: &mut Xdp = program.try_into().map_err(io::Error::other)?;
    program.load().map_err(|source| io::Error::other(refused(component, source)))?;
    clock::measure_ahead(|| {
        // The kernel asks for an Ethernet header at least.
        let options = TestRunOptions { data_in: Some(&[0; 64]), ..TestRunOptions::new() };
        program.test_run(options).map(|run| run.return_value).map_err(io::Error::other)
    })
}

/// Creates and pins the arrays, and returns their sizes.
fn pin_arrays(path: &Path, settings: &SizeSettings, pins: &Pins) -> Result<MapSizes, MapsError> {
    // A flow table of an earlier layout stays, and its size with it.
    let lines = MapInfo::from_pin(pins.map(names::FLOWS)).ok().map(|map| map.max_entries());
    let sizes =
        lines.map_or_else(|| settings.sizes(), |lines| settings.sizes().with_flow_lines(lines));
    let map = arrays::create(&sizes);
    let map = map.map_err(|source| MapsError::Map { map: names::ARRAYS, source })?;
    let pin = |error| MapsError::Pin { path: path.into(), source: io::Error::other(error) };
    map.pin(path).map_err(pin)?;
    Ok(sizes)
}

/// The program of a loaded object for a hook; a balancer has one for XDP only.
///
/// # Errors
/// [`LoadError`]: the object holds no such program.
pub(super) fn program(
    loaded: &mut Ebpf,
    component: Component,
    hook: Hook,
) -> Result<Program<'_>, LoadError> {
    let name = match (component, hook) {
        (_, Hook::Xdp(_)) => component.name(),
        (Component::Receiver, Hook::Tc) => RECEIVER_TC,
        (Component::Balancer, Hook::Tc) => return Err(LoadError::NoProgram(component)),
    };
    let program = loaded.program_mut(name).ok_or(LoadError::NoProgram(component))?;
    match hook {
        Hook::Xdp(_) => program.try_into().map(Program::Xdp),
        Hook::Tc => program.try_into().map(Program::Tc),
    }
    .map_err(|source| LoadError::Program { component, source })
}

fn refused(component: Component, error: ProgramError) -> LoadError {
    match error {
        ProgramError::LoadError { io_error, verifier_log } => {
            let log = tail(&verifier_log.to_string());
            LoadError::Verifier { component, source: io_error, log }
        }
        source => LoadError::Program { component, source },
    }
}

/// The last lines of a log.
fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}

/// ELF objects of the packet programs. An empty one stands for a build without a BPF compiler.
#[derive(Clone, Copy)]
pub struct Objects {
    /// The balancer's program.
    pub balancer: &'static [u8],
    /// The program that puts packets of health checks into tunnels.
    pub probe: &'static [u8],
    /// The receiver's programs.
    pub receiver: &'static [u8],
    /// The programs on tracepoints.
    pub tracepoints: &'static [u8],
}

/// This build has no packet programs in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} object: missing in this build: build with `cargo xtask build`, which compiles the packet \
     programs first"
)]
pub struct StubObject(&'static str);

impl Objects {
    /// The object of a component.
    ///
    /// # Errors
    /// [`StubObject`]: the build had no BPF compiler.
    pub fn component(&self, component: Component) -> Result<&'static [u8], StubObject> {
        match component {
            Component::Balancer => whole(self.balancer, component.name()),
            Component::Receiver => whole(self.receiver, component.name()),
        }
    }

    /// The object of health checks.
    ///
    /// # Errors
    /// [`StubObject`]: the build had no BPF compiler.
    pub(super) fn probe(&self) -> Result<&'static [u8], StubObject> {
        whole(self.probe, names::PROBE)
    }

    /// The object of tracepoints.
    ///
    /// # Errors
    /// [`StubObject`]: the build had no BPF compiler.
    pub(super) fn tracepoints(&self) -> Result<&'static [u8], StubObject> {
        whole(self.tracepoints, names::TRACEPOINTS)
    }

    /// A digest of a component's object, to tell builds apart; `None` for a stub.
    pub fn digest(&self, component: Component) -> Option<u64> {
        self.component(component).ok().map(|object| xxh64(object, 0))
    }
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects").finish_non_exhaustive()
    }
}

fn whole(object: &'static [u8], name: &'static str) -> Result<&'static [u8], StubObject> {
    if object.is_empty() { Err(StubObject(name)) } else { Ok(object) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_shows_the_end_of_the_log() {
        let log: Vec<String> = (0..100).map(|line| format!("line {line}")).collect();
        let log = tail(&log.join("\n"));
        assert_eq!(log.lines().next(), Some("line 76"));
        assert_eq!(log.lines().last(), Some("line 99"));
        assert_eq!(tail("one"), "one");
    }
}
