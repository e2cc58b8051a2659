//! The server's log.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use anyhow::{Context as _, Error, Result};
use serde::Serialize;

/// A connection that somebody asked something on. Times are seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Visit {
    /// The connection was accepted.
    pub arrived: f64,
    /// Its turn came.
    pub begun: f64,
    /// The answer was written.
    pub ended: f64,
    /// Who asked.
    pub client: SocketAddr,
    /// The address it was asked at.
    pub at: IpAddr,
    /// Status of the answer.
    pub status: u16,
}

impl fmt::Display for Visit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { arrived, begun, ended, client, at, status } = self;
        write!(out, "{arrived:.6} {begun:.6} {ended:.6} {client} {at} {status}")
    }
}

impl FromStr for Visit {
    type Err = Error;

    fn from_str(line: &str) -> Result<Self> {
        let mut words = line.split(' ');
        let mut next = || words.next().with_context(|| format!("visits: line is cut: {line}"));
        Ok(Self {
            arrived: next()?.parse().context("visits: arrival")?,
            begun: next()?.parse().context("visits: begin")?,
            ended: next()?.parse().context("visits: end")?,
            client: next()?.parse().context("visits: client")?,
            at: next()?.parse().context("visits: address")?,
            status: next()?.parse().context("visits: status")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let visit = Visit {
            arrived: 1_763_719_200.25,
            begun: 1_763_719_200.5,
            ended: 1_763_719_200.885,
            client: "198.51.100.2:40000".parse().unwrap(),
            at: "203.0.113.1".parse().unwrap(),
            status: 200,
        };
        let line = "1763719200.250000 1763719200.500000 1763719200.885000 198.51.100.2:40000 \
                    203.0.113.1 200";
        assert_eq!(visit.to_string(), line);
        assert_eq!(line.parse::<Visit>().unwrap(), visit);
        assert!("1763719200.250000 1763719200.500000".parse::<Visit>().is_err());
    }
}
