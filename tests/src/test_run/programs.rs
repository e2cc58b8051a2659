//! The loaded programs: the balancer, and the wrapper, floor, sender and sink around it.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, Result};
use aya::{
    Ebpf,
    maps::{Array, ProgramArray},
    programs::{ProgramFd, TestRun as _, TestRunOptions, Xdp},
};
use lb_common::abi::names::BALANCER_SLOW;
use lb_maps::load_slow_path;

/// What the wrapper jumps into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The program that is measured.
    Balancer,
    /// The least it could do.
    Floor,
    /// The least that redirects.
    RedirectFloor,
}

impl Target {
    /// The name of its program.
    pub const fn program(self) -> &'static str {
        match self {
            Self::Balancer => "balancer",
            Self::Floor => "floor",
            Self::RedirectFloor => "redirect_floor",
        }
    }
}

/// What the wrapper is told of a case.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes the target puts in front: 0, 20, 32 or 40.
    pub grown: u64,
    /// IP version of the packets.
    pub version: u64,
    /// Flows.
    pub flows: u64,
    /// Services that packets go to, drawn at random for each, from [`super::fill::own_vip`] on; 0: the packet's own
    /// destination stays.
    pub services: u32,
    /// Which of all sequences of them, not 0.
    pub sequence: u64,
}

/// Both objects, loaded.
pub struct Programs {
    /// The object under test.
    pub balancer: Ebpf,
    /// What measures it.
    pub bench: Ebpf,
}

impl Programs {
    /// Loads `balancer.o` and `bench.o` of a folder.
    ///
    /// # Errors
    /// An object that is missing or that the kernel refuses.
    pub fn load(objects: &Path) -> Result<Self> {
        Ok(Self { balancer: load(objects, "balancer.o")?, bench: load(objects, "bench.o")? })
    }

    /// Tells the wrapper what it makes, and restarts its sequence of flows.
    ///
    /// # Errors
    /// A setting that cannot be written.
    pub fn set(&mut self, settings: Settings) -> Result<()> {
        set(&mut self.bench, settings)
    }

    /// The program of a target.
    ///
    /// # Errors
    /// An object without it.
    pub fn program(&mut self, target: Target) -> Result<&mut Xdp> {
        let object = match target {
            Target::Balancer => &mut self.balancer,
            Target::Floor | Target::RedirectFloor => &mut self.bench,
        };
        program(object, target.program())
    }

    /// Runs the wrapper around a target `repeat` times; answers the mean time of one run.
    ///
    /// # Errors
    /// A run that the kernel refuses, or that ends with another action than `action`.
    pub fn run(
        &mut self,
        target: Target,
        frame: &[u8],
        repeat: u32,
        action: u32,
    ) -> Result<Duration> {
        let jump = self.program(target)?.fd()?.try_clone()?;
        self.run_other(&jump, frame, repeat, action).with_context(|| format!("{target:?}"))
    }

    /// The same around a program of somebody else's.
    ///
    /// # Errors
    /// As there.
    pub fn run_other(
        &mut self,
        jump: &ProgramFd,
        frame: &[u8],
        repeat: u32,
        action: u32,
    ) -> Result<Duration> {
        let (answered, duration) = run(&mut self.bench, jump, frame, repeat)?;
        anyhow::ensure!(answered == action, "it answered action {answered} instead of {action}");
        Ok(duration)
    }
}

/// Loads an object of a folder and all its programs.
///
/// # Errors
/// An object that is missing or that the kernel refuses.
pub fn load(objects: &Path, name: &str) -> Result<Ebpf> {
    let path = objects.join(name);
    let mut object = Ebpf::load_file(&path).with_context(|| path.display().to_string())?;
    for (name, program) in object.programs_mut() {
        let program: &mut Xdp = program.try_into()?;
        // The balancer's slow path has its own way in.
        if name != BALANCER_SLOW {
            program.load().with_context(|| format!("load {name}"))?;
        }
    }
    if object.program(BALANCER_SLOW).is_some() {
        load_slow_path(&mut object)?;
    }
    Ok(object)
}

/// Tells a wrapper what it makes, and restarts its sequence of flows.
///
/// # Errors
/// A setting that cannot be written.
pub fn set(bench: &mut Ebpf, settings: Settings) -> Result<()> {
    let map = bench.map_mut("SETTINGS").context("bench.o has no settings")?;
    let mut map: Array<_, u64> = Array::try_from(map)?;
    let seed = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(settings.sequence);
    let packets = settings.version | u64::from(settings.services) << 8;
    for (index, value) in [settings.grown, packets, settings.flows, seed].into_iter().enumerate() {
        map.set(index as u32, value, 0)?;
    }
    Ok(())
}

/// Runs a wrapper around a program `repeat` times; answers the last action and the mean time of one
/// run.
///
/// # Errors
/// A run that the kernel refuses.
pub fn run(
    bench: &mut Ebpf,
    jump: &ProgramFd,
    frame: &[u8],
    repeat: u32,
) -> Result<(u32, Duration)> {
    let map = bench.map_mut("TARGET").context("bench.o has no target")?;
    ProgramArray::try_from(map)?.set(0, jump, 0)?;
    let mut options = TestRunOptions::new();
    options.data_in = Some(frame);
    options.repeat = repeat;
    let result = program(bench, "wrapper")?.test_run(options)?;
    Ok((result.return_value, result.duration))
}

/// A program of an object.
///
/// # Errors
/// Where the object has none of that name.
pub fn program<'e>(object: &'e mut Ebpf, name: &str) -> Result<&'e mut Xdp> {
    let program =
        object.program_mut(name).with_context(|| format!("the object has no program {name}"))?;
    Ok(program.try_into()?)
}
