//! Sizes in bytes with binary units, as settings and messages have them.

use std::{fmt, str::FromStr};

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
