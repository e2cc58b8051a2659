//! Small BPF programs as ELF objects, which `ip` and `tc` load.

use std::fs;

use anyhow::{Context as _, Result};
use object::write::{Object, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SectionKind};
use object::{SymbolFlags, SymbolKind, SymbolScope};

use super::Node;

/// An instruction (Linux, instruction-set.rst): opcode, destination and source register, offset, number.
pub(super) const fn instruction(
    opcode: u8,
    (to, from): (u8, u8),
    offset: i16,
    number: u32,
) -> [u8; 8] {
    let ([o, p], [a, b, c, d]) = (offset.to_le_bytes(), number.to_le_bytes());
    [opcode, from << 4 | to, o, p, a, b, c, d]
}

/// Writes a program into a section of a file in the node's directory, whose path it answers.
pub(super) fn write(node: &Node, name: &str, section: &str, program: &[[u8; 8]]) -> Result<String> {
    let mut object = Object::new(BinaryFormat::Elf, Architecture::Bpf, Endianness::Little);
    let text = object.add_section(Vec::new(), section.into(), SectionKind::Text);
    object.append_section_data(text, program.as_flattened(), 8);
    object.add_symbol(Symbol {
        name: name.into(),
        value: 0,
        size: program.as_flattened().len() as u64,
        kind: SymbolKind::Text,
        scope: SymbolScope::Dynamic,
        weak: false,
        section: SymbolSection::Section(text),
        flags: SymbolFlags::None,
    });
    let file = node.directory().join(format!("{name}.o"));
    fs::write(&file, object.write().context("make an object")?)
        .with_context(|| format!("write {}", file.display()))?;
    Ok(file.display().to_string())
}

/// `r0 = XDP_PASS; exit` (`XDP_PASS` is 2).
const PASS: [[u8; 8]; 2] = [instruction(0xb7, (0, 0), 0, 2), instruction(0x95, (0, 0), 0, 0)];

/// Attaches the program that passes every packet to an interface that XDP transmits to, in the driver. It goes with the
/// interface.
///
/// What a program sends back by `XDP_TX` lies in the ring of the peer until the kernel is told of it, which happens only
/// if the peer has a packet program itself (`veth_xdp_flush` in drivers/net/veth.c). GRO at the peer makes the ring, but
/// then frames wait for the next ordinary packet, and once 256 of them lie there no packet comes through at all.
pub(super) fn attach_pass(node: &Node, interface: &str) -> Result<()> {
    let file = write(node, "pass", "xdp", &PASS)?;
    node.run("ip", ["link", "set", interface, "xdpdrv", "object", &file, "section", "xdp"])?;
    Ok(())
}

/// `r0 = TC_ACT_SHOT; exit` (`TC_ACT_SHOT` is 2).
const DROP: [[u8; 8]; 2] = PASS;

/// Attaches programs that drop every packet to both hooks of tc of an interface.
pub(super) fn attach_drop(node: &Node, interface: &str) -> Result<()> {
    let file = write(node, "drop", "tc", &DROP)?;
    node.run("tc", ["qdisc", "add", "dev", interface, "clsact"])?;
    for hook in ["egress", "ingress"] {
        let filter = ["filter", "add", "dev", interface, hook, "bpf", "direct-action"];
        node.run("tc", [&filter[..], &["object-file", &file, "section", "tc"]].concat())?;
    }
    Ok(())
}
