//! Addresses with a port as people write them: `192.0.2.1:80`, `[2001:db8::1]:80`.

use std::net::{IpAddr, SocketAddr};

use crate::{exit::Exit, failure::Failure};

/// How an endpoint is written, for hints.
const FORM: &str = "write ADDRESS:PORT, as in 192.0.2.1:80 or [2001:db8::1]:80";

/// An address and port of a command line; `what` names it in the failure.
///
/// # Errors
/// Says what is missing or wrong, and how it is written.
pub(crate) fn parse(what: &str, text: &str) -> Result<SocketAddr, Failure> {
    let fail = |cause: String, hint: String| {
        Failure::new(Exit::Usage, format!("{what} '{text}': {cause}")).hint(hint)
    };
    match text.parse::<SocketAddr>() {
        Ok(SocketAddr::V6(v6)) if v6.scope_id() != 0 => Err(fail(
            "an address with a zone is of one link only".into(),
            "give the address without '%ZONE'".into(),
        )),
        Ok(endpoint) if endpoint.port() == 0 => {
            Err(fail("port 0 is no port".into(), "give a port from 1 to 65535".into()))
        }
        Ok(endpoint) => Ok(endpoint),
        Err(_) => {
            let (cause, hint) = wrong_part(text);
            Err(fail(cause, hint))
        }
    }
}

/// What keeps a text from being an address with a port, and what to write.
fn wrong_part(text: &str) -> (String, String) {
    if let Ok(address) = text.parse::<IpAddr>() {
        let (cause, form) = match address {
            IpAddr::V4(_) => ("the port is missing", format!("write {text}:PORT")),
            IpAddr::V6(_) => (
                "an IPv6 address with a port stands in brackets",
                format!("write [{text}]:PORT, the brackets around the address alone"),
            ),
        };
        return (cause.into(), form);
    }
    let Some((address, port)) = text.rsplit_once(':') else {
        return ("it is not an address with a port".into(), FORM.into());
    };
    let bare = address.strip_prefix('[').and_then(|a| a.strip_suffix(']')).unwrap_or(address);
    match bare.parse::<IpAddr>() {
        Ok(_) if port.is_empty() => ("the port is missing after ':'".into(), FORM.into()),
        Ok(IpAddr::V6(_)) if bare == address => (
            "an IPv6 address with a port stands in brackets".into(),
            format!("write [{bare}]:PORT"),
        ),
        Ok(_) => (format!("'{port}' is not a port"), "give a port from 1 to 65535".into()),
        Err(_) => (
            format!("'{bare}' is not an IPv4 or IPv6 address"),
            "give the address itself; names are not looked up".into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_with_a_port() {
        let v4 = parse("vip", "192.0.2.1:80").unwrap();
        assert_eq!((v4.ip(), v4.port()), (IpAddr::from([192, 0, 2, 1]), 80));
        let v6 = parse("vip", "[2001:db8::1]:65535").unwrap();
        let address = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]);
        assert_eq!((v6.ip(), v6.port()), (address, 65535));
    }

    #[test]
    fn each_mistake_is_named_with_what_to_write() {
        for (text, cause, hint) in [
            ("192.0.2.1", "the port is missing", "192.0.2.1:PORT"),
            ("2001:db8::1", "stands in brackets", "[2001:db8::1]:PORT"),
            ("2001:db8:0:0:0:0:0:1:80", "stands in brackets", "[2001:db8:0:0:0:0:0:1]:PORT"),
            ("192.0.2.1:0", "port 0", "1 to 65535"),
            ("192.0.2.1:65536", "'65536' is not a port", "1 to 65535"),
            ("[2001:db8::1]:http", "'http' is not a port", "1 to 65535"),
            ("192.0.2.1:", "missing after", "ADDRESS:PORT"),
            ("example:80", "'example' is not", "names are not"),
            ("[::g]:80", "'::g' is not", "names are not"),
            ("[fe80::1%2]:80", "zone", "without '%ZONE'"),
            ("web", "not an address with a port", "ADDRESS:PORT"),
            ("", "not an address with a port", "ADDRESS:PORT"),
        ] {
            let failure = parse("client", text).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.starts_with(&format!("client '{text}': ")), "{failure}");
            assert!(failure.message.contains(cause), "{text}: {failure}");
            assert!(
                failure.hint.as_deref().unwrap_or_default().contains(hint),
                "{text}: {failure}"
            );
        }
    }
}
