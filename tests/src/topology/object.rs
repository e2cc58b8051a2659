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
