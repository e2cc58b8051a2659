//! Nothing in the packet programs can panic, they are no larger than they should be, and the fast path calls no function
//! in steady state.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
};

use anyhow::{Context as _, Result, ensure};
use aya::{Ebpf, programs::Program};
use lb_common::abi::{
    names::{BALANCER_SLOW, TRACEPOINTS},
    tracepoint::Tracepoint,
};
use lb_e2e::harness::{self, Case};
use lb_tests::packets::objects;
use lb_tests::sandbox::Sandbox;
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, Relocation, RelocationTarget, SectionIndex,
    SymbolKind,
};

/// What the kernel's verifier walks at most (`BPF_COMPLEXITY_LIMIT_INSNS`, Linux 5.2).
const LIMIT: u32 = 1_000_000;

/// Programs by object, and how many steps of the verifier each may take: not much more than it does, so
/// that who makes one dearer to verify has to say so here.
const PROGRAMS: [(&str, &str, u32); 6] = [
    ("balancer", "balancer", 87_000),
    ("balancer", "balancer_slow", 183_000),
    ("balancer", "balancer_clock", 100),
    ("receiver", "receiver", 90_000),
    ("receiver", "receiver_tc", 22_000),
    ("probe", "probe", 2_000),
];

pub(crate) const CASES: &[Case] = &[
    Case::waits("no_path_panics", no_path_panics),
    Case::waits("the_fast_path_calls_only_what_is_rare", the_fast_path_calls_only_what_is_rare),
    Case::waits("the_verifier_has_steps_to_spare", the_verifier_has_steps_to_spare),
];

/// What would panic calls `core::panicking`, and is linked with it.
fn no_path_panics(_: &Sandbox) -> Result<()> {
    let traced = Tracepoint::ALL.map(|it| (TRACEPOINTS, it.name()));
    for (object, name) in PROGRAMS.map(|(object, name, _)| (object, name)).into_iter().chain(traced)
    {
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

/// A call costs 5 to 9 ns where each return goes through a thunk. What the compiler does not inline shows here: closures,
/// entry points, and the functions by which it fills and copies memory.
fn the_fast_path_calls_only_what_is_rare(_: &Sandbox) -> Result<()> {
    // The packets of a capture, a service that is not at the first places of the index, a zone where flows have cells
    // (of a packet, of a datagram), what no service takes, a remap, tags of a VLAN, a marked-out member. Rust's own names begin with the
    // module.
    let rare = [
        "capture_after",
        "find_further",
        "find_nearest",
        "find_vip",
        "find_youngest",
        "leads_elsewhere",
        "put_tags",
        "stand_in",
    ];
    let called = called_by("balancer")?;
    let is_expected = called.len() == rare.len()
        && rare.iter().all(|rare| called.iter().any(|name| name.contains(rare)));
    ensure!(is_expected, "{called:?}");
    Ok(())
}

/// The functions that a program of the balancer's object calls.
fn called_by(program: &str) -> Result<BTreeSet<String>> {
    /// A call of a function of the same program: `BPF_JMP | BPF_CALL`, and source register 1 (RFC 9669, section 4.3.1).
    const CALL: [u8; 2] = [0x85, 0x10];
    let bytes = fs::read(objects::directory().join("balancer.o"))?;
    let elf = object::File::parse(&*bytes)?;
    let symbol = elf.symbol_by_name(program).context("no such program")?;
    let own = symbol.section_index().context("no section")?;
    let section = elf.section_by_index(own)?;
    let relocations: HashMap<_, _> = section.relocations().collect();
    let code = section.data_range(symbol.address(), symbol.size())?.context("no code")?;
    let mut called = BTreeSet::new();
    for (at, instruction) in (symbol.address()..).step_by(8).zip(code.as_chunks::<8>().0) {
        let [first, second, .., a, b, c, d] = *instruction;
        if [first, second] != CALL {
            continue;
        }
        // Instructions behind the next one, or, if the linker has it from the symbol of a section, behind its first.
        let ahead = (i64::from(i32::from_le_bytes([a, b, c, d])) + 1) * 8;
        let target = match relocations.get(&at).map(Relocation::target) {
            Some(RelocationTarget::Symbol(target)) => elf.symbol_by_index(target)?,
            _ => function(&elf, own, at.saturating_add_signed(ahead))?,
        };
        let target = match target.kind() {
            SymbolKind::Section => {
                let there = target.section_index().context("a section's symbol without section")?;
                function(&elf, there, ahead.cast_unsigned())?
            }
            _ => target,
        };
        called.insert(target.name()?.to_owned());
    }
    Ok(called)
}

/// The function at an address of a section.
fn function<'f>(
    elf: &'f object::File<'f>,
    section: SectionIndex,
    address: u64,
) -> Result<object::Symbol<'f, 'f>> {
    let is_it = |symbol: &object::Symbol<'_, '_>| {
        symbol.kind() == SymbolKind::Text
            && (symbol.section_index(), symbol.address()) == (Some(section), address)
    };
    elf.symbols().find(is_it).with_context(|| format!("no function at {address:#x}"))
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
