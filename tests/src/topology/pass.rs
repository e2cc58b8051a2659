//! The packet program that passes every packet, for ends of links that XDP transmits to.
//!
//! What a program sends back by `XDP_TX` lies in the ring of the peer until somebody rings: the kernel
//! does so only if the peer has a packet program itself (`veth_xdp_flush` in drivers/net/veth.c). GRO
//! at the peer makes the ring, but then frames wait for the next ordinary packet, and once 256 of
//! them lie there no packet comes through at all.

use std::fs;

use anyhow::{Context as _, Result};
use object::write::{Object, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SectionKind};
use object::{SymbolFlags, SymbolKind, SymbolScope};

use super::Node;

/// `r0 = XDP_PASS; exit` (Linux, instruction-set.rst; `XDP_PASS` is 2).
const PROGRAM: [u8; 16] = [0xb7, 0, 0, 0, 2, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0];

/// Attaches the program to an interface, in the driver; it goes with the interface.
pub(super) fn attach(node: &Node, interface: &str) -> Result<()> {
    let file = node.directory().join("pass.o");
    fs::write(&file, object()?).with_context(|| format!("write {}", file.display()))?;
    let file = file.display().to_string();
    node.run("ip", ["link", "set", interface, "xdpdrv", "object", &file, "section", "xdp"])?;
    Ok(())
}

/// The program as an ELF object.
fn object() -> Result<Vec<u8>> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::Bpf, Endianness::Little);
    let section = object.add_section(Vec::new(), b"xdp".to_vec(), SectionKind::Text);
    object.append_section_data(section, &PROGRAM, 8);
    object.add_symbol(Symbol {
        name: b"pass".to_vec(),
        value: 0,
        size: PROGRAM.len() as u64,
        kind: SymbolKind::Text,
        scope: SymbolScope::Dynamic,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    });
    object.write().context("make an object")
}
