//! What a receiver did, and what it lets through.

use lb_daemon::{
    dataplane::{MapsError, Role},
    stats::ReceiverStats,
};

use super::verdict;
use crate::{
    arguments::Options,
    failure::Failure,
    output::{Report, fields},
    pinned,
};

/// Reads the receiver's maps.
pub(super) fn read(options: &Options) -> Result<ReceiverStats, Failure> {
    ReceiverStats::read(&options.bpffs).map_err(|error| match error {
        MapsError::Missing { .. } => pinned::nothing_pinned(options, Role::Receiver),
        error => pinned::failure(&error),
    })
}

impl Report for ReceiverStats {
    fn table(&self) -> String {
        let port = self.gue_port.map_or_else(|| "none".into(), |port| port.to_string());
        let allowed = [
            ("sources", self.sources.join(", ")),
            ("vips", self.vips.join(", ")),
            ("endpoints", self.endpoints.join(", ")),
            ("gue port", port),
        ];
        format!("{}\n{}", fields(&allowed), verdict::table(&self.verdicts))
    }
}

#[cfg(test)]
mod tests {
    use lb_common::abi::{counter::VerdictCounter, verdict::Verdict};

    use super::*;

    #[test]
    fn a_receiver_shows_what_it_lets_through_and_what_became_of_it() {
        let counter = VerdictCounter { packets: 7, bytes: 700 };
        let receiver = ReceiverStats {
            verdicts: [(Verdict::Decapsulated, counter), (Verdict::NotTunnel, counter)]
                .map(Into::into)
                .into(),
            sources: ["10.0.0.2/32", "fd00::/64"].map(Into::into).into(),
            vips: ["203.0.113.1", "2001:db8:f::1"].map(Into::into).into(),
            endpoints: ["10.0.0.3", "fd00::3"].map(Into::into).into(),
            gue_port: Some(6080),
        };
        assert_eq!(
            receiver.table(),
            "\
sources    10.0.0.2/32, fd00::/64
vips       203.0.113.1, 2001:db8:f::1
endpoints  10.0.0.3, fd00::3
gue port   6080

VERDICT       ACTION  PACKETS  BYTES
decapsulated  pass          7    700
not_tunnel    pass          7    700
"
        );
        let json = serde_json::to_value(&receiver).unwrap();
        assert_eq!(json["endpoints"], serde_json::json!(["10.0.0.3", "fd00::3"]));
        assert_eq!(json["vips"], serde_json::json!(["203.0.113.1", "2001:db8:f::1"]));
        assert_eq!(json["verdicts"][0]["packets"], 7);
    }
}
