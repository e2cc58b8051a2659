//! Nothing in the packet programs can panic, and they are no larger than they should be.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use aya::{Ebpf, programs::Program};
use lb_common::abi::names::BALANCER_SLOW;
use lb_tests::harness::{self, Case};
use lb_tests::packets::objects;
use lb_tests::sandbox::Sandbox;
use object::{Object as _, ObjectSymbol as _};

/// What the kernel's verifier walks at most (`BPF_COMPLEXITY_LIMIT_INSNS`, Linux 5.2).
const LIMIT: u32 = 1_000_000;

/// Programs by object, and how many steps of the verifier each may take: not much more than it does, so
/// that who makes one dearer to verify has to say so here.
const PROGRAMS: [(&str, &str, u32); 5] = [
    ("balancer", "balancer", 60_000),
    ("balancer", "balancer_slow", 240_000),
    ("receiver", "receiver", 80_000),
    ("receiver", "receiver_tc", 30_000),
    ("probe", "probe", 2_000),
];

pub(crate) const CASES: &[Case] = &[
    Case::waits("no_path_panics", no_path_panics),
    Case::waits("the_verifier_has_steps_to_spare", the_verifier_has_steps_to_spare),
];

/// What would panic calls `core::panicking`, and is linked with it.
fn no_path_panics(_: &Sandbox) -> Result<()> {
    for (object, name, _) in PROGRAMS {
        let path = objects::directory().join(format!("{object}.o"));
        let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
        let elf = object::File::parse(&*bytes).with_context(|| path.display().to_string())?;
        let symbols: Vec<_> = elf.symbols().filter_map(|symbol| symbol.name().ok()).collect();
        ensure!(symbols.contains(&name), "{name}: has no symbols");
        let panics: Vec<_> = symbols.iter().filter(|symbol| symbol.contains("panic")).collect();
        ensure!(panics.is_empty(), "{name}: {panics:?}");
    }
    Ok(())
}

fn the_verifier_has_steps_to_spare(_: &Sandbox) -> Result<()> {
    for (object, name, most) in PROGRAMS {
        // With the balancer's object comes its slow path.
        let programs = if name == BALANCER_SLOW { &[][..] } else { &[name] };
        let bpf = objects::load(object, programs)?;
        let (instructions, jitted, steps) = measure(&bpf, name)?;
        harness::note(format!(
            "{name}: {instructions} instructions, {} KiB of machine code, {steps} steps of the \
             verifier ({most} are allowed here, {LIMIT} by the kernel)",
            jitted / 1024
        ));
        ensure!(steps <= most, "{name}: {steps} steps of the verifier, {most} are allowed");
    }
    Ok(())
}

/// Instructions as the kernel runs them, bytes of machine code, and steps of the verifier.
fn measure(bpf: &Ebpf, name: &str) -> Result<(u32, u32, u32)> {
    /// Bytes of an instruction.
    const INSTRUCTION: u32 = 8;
    let info = bpf.program(name).map(Program::info).context("no program")??;
    let instructions = info.size_translated().context("no size")? / INSTRUCTION;
    let steps = info.verified_instruction_count().context("steps are told since Linux 5.16")?;
    Ok((instructions, info.size_jitted(), steps))
}
