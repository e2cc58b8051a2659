//! What a receiver did, and what it lets through.

use lb_daemon::dataplane::{AllowLists, MapsError, ReceiverMaps, Role};
use serde::Serialize;

use super::verdict::Verdicts;
use crate::{
    arguments::Options,
    failure::Failure,
    output::{Report, fields},
    pinned,
};

/// The answer of a backend.
#[derive(Serialize)]
pub(super) struct Receiver {
    verdicts: Verdicts,
    /// Prefixes that tunnel packets may come from.
    sources: Vec<String>,
    /// VIPs that they may be for.
    vips: Vec<String>,
}

impl Receiver {
    /// Reads the receiver's maps.
    pub(super) fn read(options: &Options) -> Result<Self, Failure> {
        let maps = ReceiverMaps::open(&options.bpffs).map_err(|error| match error {
            MapsError::Missing { .. } => pinned::nothing_pinned(options, Role::Receiver),
            error => pinned::failure(&error),
        })?;
        let read = || Ok((maps.verdicts()?, maps.allowed()?));
        let (verdicts, allowed) = read().map_err(|error| pinned::failure(&error))?;
        Ok(Self::new(verdicts.into_iter().collect(), &allowed))
    }

    fn new(verdicts: Verdicts, allowed: &AllowLists) -> Self {
        Self {
            verdicts,
            sources: allowed.sources.iter().map(ToString::to_string).collect(),
            vips: allowed.vips.iter().map(ToString::to_string).collect(),
        }
    }
}

impl Report for Receiver {
    fn table(&self) -> String {
        let allowed = [("sources", self.sources.join(", ")), ("vips", self.vips.join(", "))];
        format!("{}\n{}", fields(&allowed), self.verdicts.table())
    }
}

#[cfg(test)]
mod tests {
    use lb_common::abi::{counter::VerdictCounter, verdict::Verdict};

    use super::*;

    #[test]
    fn a_receiver_shows_what_it_lets_through_and_what_became_of_it() {
        let counter = VerdictCounter { packets: 7, bytes: 700 };
        let allowed = AllowLists {
            sources: ["10.0.0.2/32", "fd00::/64"].map(|p| p.parse().unwrap()).into(),
            vips: ["203.0.113.1", "2001:db8:f::1"].map(|p| p.parse().unwrap()).into(),
        };
        let verdicts = [(Verdict::Decapsulated, counter), (Verdict::NotTunnel, counter)];
        let receiver = Receiver::new(verdicts.into_iter().collect(), &allowed);
        assert_eq!(
            receiver.table(),
            "\
sources  10.0.0.2/32, fd00::/64
vips     203.0.113.1, 2001:db8:f::1

VERDICT       ACTION  PACKETS  BYTES
decapsulated  pass          7    700
not_tunnel    pass          7    700
"
        );
        let json = serde_json::to_value(&receiver).unwrap();
        assert_eq!(json["vips"], serde_json::json!(["203.0.113.1", "2001:db8:f::1"]));
        assert_eq!(json["verdicts"][0]["packets"], 7);
    }
}
