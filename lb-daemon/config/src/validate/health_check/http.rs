use spillway_proto::v1;

use super::{
    super::{
        invalid::{Invalid, Place},
        number,
    },
    agent,
    plain::{at_most, plain},
};
use lb_base::Quoted;
use lb_model::{HttpCheck, bounds};

const LONGEST_METHOD: usize = 16;
const LONGEST_PATH: usize = 2048;
const LONGEST_HOST: usize = 255;
const LONGEST_TEXT: usize = 1024;

pub(super) fn probe(at: &Place, message: &v1::HttpCheck) -> Result<HttpCheck, Invalid> {
    let method = method(at, &message.method)?;
    let path = if message.path.is_empty() { "/" } else { &*message.path };
    if !path.starts_with('/') {
        return Err(at.wrong("http.path", format_args!("{} must begin with '/'", Quoted(path))));
    }
    plain(at, "http.path", path, LONGEST_PATH)?;
    plain(at, "http.host", &message.host, LONGEST_HOST)?;
    let status_min =
        number::within_or(at, "http.status_min", message.status_min, bounds::STATUSES, 200)?;
    let status_max = number::within_or(
        at,
        "http.status_max",
        message.status_max,
        bounds::STATUSES,
        status_min.max(299),
    )?;
    if status_max < status_min {
        let cause = format!("{status_max} is below status_min, {status_min}");
        return Err(at.wrong("http.status_max", cause));
    }
    let text = &message.body_contains;
    at_most(at, "http.body_contains", text.len(), LONGEST_TEXT)?;
    if !text.is_empty() && method == "HEAD" {
        return Err(at.wrong("http.body_contains", "an answer to HEAD has no body"));
    }
    Ok(HttpCheck {
        method,
        path: path.into(),
        host: Some(message.host.clone()).filter(|host| !host.is_empty()),
        status_min,
        status_max,
        body_contains: Some(text.clone()).filter(|text| !text.is_empty()),
        agent_header: agent::header(at, &message.agent_header)?,
    })
}

fn method(at: &Place, method: &str) -> Result<String, Invalid> {
    const FIELD: &str = "http.method";
    at_most(at, FIELD, method.len(), LONGEST_METHOD)?;
    if !method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') {
        let cause = format_args!("{} may hold only A-Z and '-'", Quoted(method));
        return Err(at.wrong(FIELD, cause));
    }
    match method {
        "" => Ok("GET".into()),
        "CONNECT" => Err(at.wrong(FIELD, "CONNECT asks for a tunnel; give GET or HEAD")),
        _ => Ok(method.into()),
    }
}
