//! Replaces `:authority` in a header block of HTTP/2 (HPACK, RFC 7541).
//!
//! An entry of the dynamic table is as large as its name and value are long. The new value is as long as the old one, so
//! the tables of client and server stay alike: indices need no translation, and nothing is kept between blocks.

/// Index of `:authority` in the static table.
const AUTHORITY_INDEX: usize = 1;

/// The name as literal: plain, and in Huffman's code.
const AUTHORITY: [&[u8]; 2] = [b":authority", b"\xb8\x3b\x53\x39\xec\x32\x7d\x7f"];

/// Flag of strings in Huffman's code.
const HUFFMAN: u8 = 0x80;

/// Number of bytes whose code has so many bits (RFC 7541, appendix B). The code is canonical: among codes of one length
/// values are consecutive, and the first of them follows from the shorter ones. The end of string is left out, as it must
/// not occur.
const CODES: [u32; 31] = [
    0, 0, 0, 0, 0, 10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19,
    29, 0, 3,
];

/// Bits of the code of `0`, which are all zero. No code is shorter.
const ZERO_BITS: usize = 5;

/// The block with zeros for the value of `:authority`, never longer than before. `None`: there is nothing to replace, or
/// the block is malformed. An empty value stays. So does one whose name is an index of the dynamic table: encoders take the
/// static one.
pub(super) fn replace_authority(block: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader { block, position: 0 };
    let (mut replaced, mut copied) = (Vec::with_capacity(block.len()), 0);
    while let Some(&first) = block.get(reader.position) {
        // RFC 7541, section 6.
        let name_prefix = match first {
            0x80.. => {
                reader.integer(7)?;
                continue;
            }
            0x40.. => 6,
            0x20.. => {
                reader.integer(5)?;
                continue;
            }
            _ => 4,
        };
        let is_authority = match reader.integer(name_prefix)? {
            0 => {
                let name = reader.string()?;
                name.bytes == AUTHORITY[usize::from(name.is_huffman)]
            }
            index => index == AUTHORITY_INDEX,
        };
        let start = reader.position;
        let value = reader.string()?;
        if is_authority && !value.bytes.is_empty() {
            replaced.extend_from_slice(&block[copied..start]);
            value.write_zeros(&mut replaced)?;
            copied = reader.position;
        }
    }
    if copied == 0 {
        return None;
    }
    replaced.extend_from_slice(&block[copied..]);
    Some(replaced)
}

struct Reader<'a> {
    block: &'a [u8],
    position: usize,
}

/// A string as it is in the block.
struct Literal<'a> {
    is_huffman: bool,
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.block.get(self.position)?;
        self.position += 1;
        Some(byte)
    }

    /// An integer whose first byte has so many bits of it (RFC 7541, 5.1).
    fn integer(&mut self, prefix: u32) -> Option<usize> {
        let mask = (1 << prefix) - 1;
        let mut value = usize::from(self.byte()? & mask);
        if value < usize::from(mask) {
            return Some(value);
        }
        // As many as h2 reads.
        for shift in [0, 7, 14, 21] {
            let byte = self.byte()?;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn string(&mut self) -> Option<Literal<'a>> {
        let is_huffman = self.block.get(self.position)? & HUFFMAN != 0;
        let length = self.integer(7)?;
        let bytes = self.block.get(self.position..)?.get(..length)?;
        self.position += length;
        Some(Literal { is_huffman, bytes })
    }
}

impl Literal<'_> {
    /// Writes as many zeros as there are characters, in the same code.
    fn write_zeros(&self, to: &mut Vec<u8>) -> Option<()> {
        if !self.is_huffman {
            write_integer(to, 0, self.bytes.len());
            to.resize(to.len() + self.bytes.len(), b'0');
            return Some(());
        }
        let bits = ZERO_BITS * huffman_length(self.bytes)?;
        let length = bits.div_ceil(8);
        write_integer(to, HUFFMAN, length);
        to.resize(to.len() + length, 0);
        // Padding is ones (RFC 7541, 5.2).
        *to.last_mut()? |= (1 << (8 * length - bits)) - 1;
        Some(())
    }
}

/// Number of characters of a string in Huffman's code.
fn huffman_length(bytes: &[u8]) -> Option<usize> {
    let mut length = 0;
    // Of the code that is being read: its bits so far, their number, and the first code with that number.
    let (mut code, mut bits, mut first) = (0, 0, 0);
    for bit in bytes.iter().flat_map(|byte| (0..8).rev().map(move |at| u32::from(byte >> at & 1))) {
        (code, bits, first) = (code << 1 | bit, bits + 1, first << 1);
        let codes = CODES.get(bits)?;
        if code - first < *codes {
            length += 1;
            (code, bits, first) = (0, 0, 0);
        } else {
            first += codes;
        }
    }
    (bits < 8 && code == (1 << bits) - 1).then_some(length)
}

/// Writes an integer with a prefix of seven bits after a flag.
fn write_integer(to: &mut Vec<u8>, flag: u8, mut value: usize) {
    if value < 0x7f {
        to.push(flag | value as u8);
        return;
    }
    to.push(flag | 0x7f);
    value -= 0x7f;
    while value >= 0x80 {
        to.push(0x80 | (value & 0x7f) as u8);
        value >>= 7;
    }
    to.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_in_the_code_is_counted() {
        // Bytes 0 to 255, in the code of Python's hpack.
        let all = include_str!("every_byte.hex").replace('\n', "");
        let all: Vec<_> = (0..all.len() / 2)
            .map(|at| u8::from_str_radix(&all[2 * at..][..2], 16).unwrap())
            .collect();
        assert_eq!(huffman_length(&all), Some(256));
        for (bytes, length) in [
            (&b""[..], Some(0)),
            (b"\x07", Some(1)),
            (b"\xa0\xe4\x1d\x13\x9d\x09", Some(9)),
            // Padding that is too long, or no ones.
            (b"\xff", None),
            (b"\x00", None),
            // The end of the string.
            (b"\xff\xff\xff\xff", None),
        ] {
            assert_eq!(huffman_length(bytes), length, "{bytes:?}");
        }
    }
}
