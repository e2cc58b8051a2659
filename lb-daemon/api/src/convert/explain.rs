//! Conversion of the flow of an `Explain`.

use std::net::SocketAddr;

use lb_base::Quoted;
use lb_config::message::ApiEnum;
use lb_inspect::explain::{Flow, FlowError};
use lb_model::Protocol;
use spillway_proto::v1;

use super::WrongField;

pub(crate) fn flow(request: &v1::ExplainRequest) -> Result<Flow, WrongField> {
    let (client, vip) = (endpoint("client", &request.client)?, endpoint("vip", &request.vip)?);
    let protocol = Protocol::from_api(request.protocol)
        .map_err(|unknown| WrongField::new("protocol", unknown.to_string()))?
        .unwrap_or(Protocol::Tcp);
    Flow::new(client, vip, protocol, request.open).map_err(|error| match error {
        FlowError::TwoVersions(client, vip) => {
            WrongField::new("vip", format!("{vip} is of another IP version than {client}"))
        }
        FlowError::OpenDatagram => {
            WrongField::new("open", "is for TCP only; UDP has no connections")
        }
    })
}

fn endpoint(field: &'static str, text: &str) -> Result<SocketAddr, WrongField> {
    if text.is_empty() {
        return Err(WrongField::new(field, "must be set"));
    }
    let plain = |endpoint: &SocketAddr| match endpoint {
        SocketAddr::V4(_) => true,
        SocketAddr::V6(v6) => v6.scope_id() == 0,
    };
    match text.parse::<SocketAddr>() {
        Ok(endpoint) if endpoint.port() == 0 => {
            Err(WrongField::new(field, "port 0 is not possible; give 1 to 65535"))
        }
        Ok(endpoint) if plain(&endpoint) => Ok(endpoint),
        _ => {
            let form = "write 192.0.2.1:80 or [2001:db8::1]:80";
            let cause = format!("{} is not an address with a port; {form}", Quoted(text));
            Err(WrongField::new(field, cause))
        }
    }
}
