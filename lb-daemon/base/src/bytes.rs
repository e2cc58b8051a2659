//! Byte strings and sizes in bytes, as configuration and settings files have them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const HEX: &str = "hex:";

/// Bytes, written `"ping\n"` or `"hex:0001 00ff"`. Blanks may separate pairs of digits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// Reads the written form; `None`: not pairs of hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let Some(digits) = text.strip_prefix(HEX) else {
            return Some(Self(text.as_bytes().to_vec()));
        };
        let mut bytes = Vec::with_capacity(digits.len() / 2);
        for word in digits.split_ascii_whitespace() {
            for pair in word.as_bytes().chunks(2) {
                let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
                bytes.push(u8::try_from(digit(0)? << 4 | digit(1)?).ok()?);
            }
        }
        Some(Self(bytes))
    }
}

/// Printable UTF-8 as text, everything else in hexadecimal digits.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unreadable = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
        match std::str::from_utf8(&self.0) {
            Ok(text) if !text.contains(unreadable) && !text.starts_with(HEX) => f.write_str(text),
            _ => {
                f.write_str(HEX)?;
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or bytes such as \"hex:0001 00ff\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Bytes, E> {
                Bytes::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A size in bytes. Shown as a whole number or with one decimal: `512 MiB`, `3.2 GiB`.
#[derive(Clone, Copy, Debug)]
pub struct ByteSize(pub u64);

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        let Some((unit, name)) = UNITS.iter().find(|(unit, _)| self.0 >= *unit) else {
            return write!(f, "{} bytes", self.0);
        };
        match (self.0 / unit, self.0 % unit) {
            (whole, 0) => write!(f, "{whole} {name}"),
            (whole, part) => write!(f, "{whole}.{} {name}", part * 10 / unit),
        }
    }
}

/// The text is not a size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("give bytes, or a whole number with a unit: 512MiB, 2GiB")]
pub struct ByteSizeError;

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, ByteSizeError> {
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let unit: u64 = match unit.trim_start() {
            "" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(ByteSizeError),
        };
        let number: u64 = number.parse().map_err(|_| ByteSizeError)?;
        number.checked_mul(unit).map(Self).ok_or(ByteSizeError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printable_bytes_are_text_and_others_pairs_of_digits() {
        for (text, bytes, again) in [
            ("", &b""[..], ""),
            ("ping\r\n", b"ping\r\n", "ping\r\n"),
            ("größe", "größe".as_bytes(), "größe"),
            ("hex:", b"", ""),
            ("hex:70 69", b"pi", "pi"),
            ("hex:00FF 0a", b"\x00\xff\n", "hex:00ff0a"),
            ("hex:6865783a", b"hex:", "hex:6865783a"),
            ("hex:80", b"\x80", "hex:80"),
        ] {
            let parsed = Bytes::parse(text).unwrap();
            assert_eq!(parsed.0, bytes, "{text}");
            assert_eq!(parsed.to_string(), again);
        }
        for bad in ["hex:0", "hex:0 0", "hex:0g", "hex:+1", "hex:ä"] {
            assert_eq!(Bytes::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, bytes, shown) in [
            ("512", 512, "512 bytes"),
            ("512MiB", 512 << 20, "512 MiB"),
            ("2 GiB", 2 << 30, "2 GiB"),
            ("1536KiB", 1536 << 10, "1.5 MiB"),
        ] {
            let read: ByteSize = text.parse().unwrap();
            assert_eq!((read.0, read.to_string().as_str()), (bytes, shown));
        }
        for wrong in ["", "MiB", "1.5GiB", "2GB", "-1", "99999999999GiB"] {
            assert_eq!(wrong.parse::<ByteSize>().map(|b| b.0), Err(ByteSizeError), "{wrong}");
        }
    }
}
