//! Which C library the programs need, from the versions of the symbols that they ask for.

use std::fs;

use anyhow::{Context, Result};

use super::programs::Programs;

/// Stands before the number of a version among an ELF file's strings.
const PREFIX: &[u8] = b"GLIBC_";

/// The least version of libc6, as `2.34`.
pub(super) fn libc(programs: &Programs) -> Result<String> {
    let mut least = None;
    for program in programs.all() {
        let bytes = fs::read(program).with_context(|| program.display().to_string())?;
        least = least.max(highest(&bytes));
    }
    let (major, minor) = least.context("the programs ask for no version of the C library")?;
    Ok(format!("{major}.{minor}"))
}

/// The highest version in an ELF file.
fn highest(elf: &[u8]) -> Option<(u32, u32)> {
    let places = elf.windows(PREFIX.len()).enumerate().filter(|(_, bytes)| *bytes == PREFIX);
    places.filter_map(|(at, _)| version(&elf[at + PREFIX.len()..])).max()
}

/// `2.34` or `2.2.5`, up to the end of the string.
fn version(bytes: &[u8]) -> Option<(u32, u32)> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = str::from_utf8(&bytes[..end]).ok()?;
    let mut numbers = text.split('.').map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_counts_by_number() {
        let elf =
            b"\x7fELF\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_PRIVATE\0GLIBC_ABI_DT_RELR\0";
        assert_eq!(highest(elf), Some((2, 34)));
        assert_eq!(highest(b"\x7fELF\0"), None);
    }
}
