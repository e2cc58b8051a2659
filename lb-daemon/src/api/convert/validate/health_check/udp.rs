use spillway_proto::v1;

use super::{
    super::super::invalid::{Invalid, Place},
    plain::at_most,
};
use crate::model::UdpProbe;

/// What every path takes in one IPv6 packet (RFC 8200: 1280 bytes) after its headers.
const LONGEST_REQUEST: usize = 1232;
const LONGEST_EXPECTED: usize = 1024;

pub(super) fn probe(at: &Place, message: &v1::UdpProbe) -> Result<UdpProbe, Invalid> {
    let v1::UdpProbe { request, answer_prefix, answer_contains } = message.clone();
    at_most(at, "udp.request", request.len(), LONGEST_REQUEST)?;
    at_most(at, "udp.answer_prefix", answer_prefix.len(), LONGEST_EXPECTED)?;
    at_most(at, "udp.answer_contains", answer_contains.len(), LONGEST_EXPECTED)?;
    Ok(UdpProbe { request, answer_prefix, answer_contains })
}
