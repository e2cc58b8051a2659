//! Finding and loading the objects under test.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use aya::{
    Ebpf, EbpfLoader,
    maps::Map,
    programs::{Program, Xdp},
};
use lb_common::abi::{
    names::{ARRAYS, BALANCER, FLOWS},
    sizes::MapSizes,
};
use lb_maps::{Arrays, FlowTable, MappingMut, load_slow_path};

/// Where the objects are: `SPILLWAY_BPF_OBJECTS`, or else where `cargo xtask build` puts them.
pub fn directory() -> PathBuf {
    match std::env::var_os("SPILLWAY_BPF_OBJECTS") {
        Some(directory) => directory.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/bpf"),
    }
}

/// Loads the object `NAME.o` and in it the programs named.
///
/// # Errors
/// When the file is missing or the kernel refuses it; the error carries the verifier's log.
pub fn load(name: &str, programs: &[&str]) -> Result<Ebpf> {
    load_sized(name, programs, &[])
}

/// As [`load`], with numbers of entries for some maps.
///
/// # Errors
/// As there.
pub fn load_sized(name: &str, programs: &[&str], entries: &[(&str, u32)]) -> Result<Ebpf> {
    let path = directory().join(format!("{name}.o"));
    ensure!(path.is_file(), "{}: not there; run `cargo xtask build`", path.display());
    let mut loader = EbpfLoader::new();
    for (map, number) in entries {
        loader.map_max_entries(map, *number);
    }
    let mut bpf = loader.load_file(&path).with_context(|| path.display().to_string())?;
    for program in programs {
        let found =
            bpf.program_mut(program).with_context(|| format!("{program}: no such program"))?;
        match found {
            Program::Xdp(found) => found.load(),
            Program::SchedClassifier(found) => found.load(),
            _ => bail!("{program}: neither for XDP nor for tc"),
        }
        .with_context(|| format!("load {program}"))?;
    }
    if name == BALANCER {
        load_slow_path(&mut bpf)?;
    }
    Ok(bpf)
}

/// The balancer's arrays, to fill. Without our loader they have the default sizes.
///
/// # Errors
/// An object without arrays, or what the kernel answers.
pub fn arrays(balancer: &Ebpf) -> Result<Arrays<MappingMut>> {
    let Some(Map::Array(map)) = balancer.map(ARRAYS) else { bail!("the object has no {ARRAYS}") };
    Ok(Arrays::new(map, &MapSizes::DEFAULT)?)
}

/// The balancer's flow table of so many lines, to fill.
///
/// # Errors
/// An object without it, or what the kernel answers.
pub fn flows(balancer: &Ebpf, lines: u32) -> Result<FlowTable<MappingMut>> {
    let Some(Map::Array(map)) = balancer.map(FLOWS) else { bail!("the object has no {FLOWS}") };
    Ok(FlowTable::new(map, lines)?)
}

/// An XDP program of an object.
///
/// # Errors
/// When there is none of that name.
pub fn program<'b>(bpf: &'b Ebpf, name: &str) -> Result<&'b Xdp> {
    let program = bpf.program(name).with_context(|| format!("{name}: no such program"))?;
    program.try_into().with_context(|| format!("{name}: no XDP program"))
}

/// As [`program`], to change it.
///
/// # Errors
/// When there is none of that name.
pub fn program_mut<'b>(bpf: &'b mut Ebpf, name: &str) -> Result<&'b mut Xdp> {
    let program = bpf.program_mut(name).with_context(|| format!("{name}: no such program"))?;
    program.try_into().with_context(|| format!("{name}: no XDP program"))
}
