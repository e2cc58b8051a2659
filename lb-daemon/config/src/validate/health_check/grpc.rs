use spillway_proto::v1;

use super::{
    super::invalid::{Invalid, Place},
    plain::plain,
};
use lb_model::GrpcCheck;

const LONGEST: usize = 255;

pub(super) fn probe(at: &Place, message: &v1::GrpcCheck) -> Result<GrpcCheck, Invalid> {
    let v1::GrpcCheck { service, authority } = message.clone();
    plain(at, "grpc.service", &service, LONGEST)?;
    plain(at, "grpc.authority", &authority, LONGEST)?;
    if !authority.is_empty() && authority.parse::<http::uri::Authority>().is_err() {
        return Err(at.wrong("grpc.authority", "is no host, with or without a port"));
    }
    Ok(GrpcCheck { service, authority: Some(authority).filter(|name| !name.is_empty()) })
}
