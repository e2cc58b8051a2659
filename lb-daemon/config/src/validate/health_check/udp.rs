use spillway_proto::v1;

use super::{
    super::invalid::{Invalid, Place},
    plain::at_most,
};
use lb_model::UdpCheck;

/// What every path takes in one IPv6 packet (RFC 8200: 1280 bytes) after its headers.
const LONGEST_REQUEST: usize = 1232;
const LONGEST_EXPECTED: usize = 1024;

pub(super) fn probe(at: &Place, message: &v1::UdpCheck) -> Result<UdpCheck, Invalid> {
    let v1::UdpCheck { request, answer_prefix, answer_contains } = message.clone();
    at_most(at, "udp.request", request.len(), LONGEST_REQUEST)?;
    at_most(at, "udp.answer_prefix", answer_prefix.len(), LONGEST_EXPECTED)?;
    at_most(at, "udp.answer_contains", answer_contains.len(), LONGEST_EXPECTED)?;
    Ok(UdpCheck { request, answer_prefix, answer_contains })
}
