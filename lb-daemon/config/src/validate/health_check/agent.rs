use spillway_proto::v1;

use super::{
    super::invalid::{Invalid, Place},
    plain::at_most,
};
use lb_base::Quoted;
use lb_model::AgentCheck;

const LONGEST_SENT: usize = 1024;
const LONGEST_HEADER: usize = 64;

pub(super) fn probe(at: &Place, message: &v1::AgentCheck) -> Result<AgentCheck, Invalid> {
    let v1::AgentCheck { send } = message.clone();
    at_most(at, "agent.send", send.len(), LONGEST_SENT)?;
    Ok(AgentCheck { send })
}

/// The name of a header, a token of RFC 9110.
pub(super) fn header(at: &Place, name: &str) -> Result<Option<String>, Invalid> {
    const FIELD: &str = "http.agent_header";
    at_most(at, FIELD, name.len(), LONGEST_HEADER)?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    match name.chars().all(is_token) {
        true => Ok(Some(name.to_owned()).filter(|name| !name.is_empty())),
        false => Err(at.wrong(FIELD, format_args!("{} is no name of a header", Quoted(name)))),
    }
}
