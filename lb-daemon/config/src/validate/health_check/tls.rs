use rustls_pki_types::DnsName;
use spillway_proto::v1;

use super::{
    super::invalid::{Invalid, Place},
    plain::at_most,
};
use lb_base::Quoted;
use lb_model::{CheckTls, Trust};

/// PATH_MAX of Linux, which counts the NUL behind it.
const LONGEST_PATH: usize = 4095;

pub(super) fn probe(at: &Place, message: &v1::CheckTls) -> Result<CheckTls, Invalid> {
    let v1::CheckTls { server_name, verify, ca_file } = message.clone();
    if !server_name.is_empty() && DnsName::try_from(server_name.as_str()).is_err() {
        let cause = format_args!("{} is no DNS name", Quoted(&server_name));
        return Err(at.wrong("tls.server_name", cause));
    }
    let trust = match (verify, ca_file) {
        (None | Some(false), file) if file.is_empty() => Trust::Anybody,
        (Some(true), file) if file.is_empty() => Trust::Host,
        (Some(false), _) => {
            return Err(at.wrong("tls.ca_file", "is set, but verify is false; give one of them"));
        }
        (None | Some(true), file) => Trust::File(path(at, file)?),
    };
    Ok(CheckTls { server_name: Some(server_name).filter(|name| !name.is_empty()), trust })
}

fn path(at: &Place, path: String) -> Result<String, Invalid> {
    const FIELD: &str = "tls.ca_file";
    at_most(at, FIELD, path.len(), LONGEST_PATH)?;
    if let Some(c) = path.chars().find(|c| c.is_control()) {
        return Err(at.wrong(FIELD, format_args!("holds {c:?}")));
    }
    match path.starts_with('/') {
        true => Ok(path),
        false => Err(at.wrong(FIELD, format_args!("{} must begin with '/'", Quoted(&path)))),
    }
}
