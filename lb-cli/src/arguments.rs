//! Arguments that commands share: the options of every command, and parsers of values.

use std::{
    ffi::OsString,
    io::Read,
    net::{IpAddr, SocketAddr},
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use lb_config::{
    DEFAULT_SOCKET, Reason,
    document::{self, DurationError},
};
use lb_maps::{self, directory::DEFAULT_STATE_DIRECTORY};
use lb_model::NamedValue;

use crate::{
    failure::{Exit, Failure},
    output::Format,
};

#[derive(Args, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Options {
    /// Output format: `table`, `wide` (more columns), `json` or `yaml` (while watching, one value
    /// per line or document)
    #[arg(long, short, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    #[arg(env = "SPILLWAY_OUTPUT", hide_possible_values = true)]
    pub(crate) output: Format,
    /// Context to ask; see `spillway context` [default: the one in use]
    #[arg(long, global = true, value_name = "NAME", env = "SPILLWAY_CONTEXT")]
    pub(crate) context: Option<String>,
    /// Unix socket of the daemon [default: /run/spillway/spillwayd.sock; for a receiver and for
    /// `reload`: the socket in the daemon's settings, or for a receiver
    /// /run/spillway-receiver/receiver.sock]
    #[arg(long, global = true, value_name = "PATH", env = "SPILLWAY_SOCKET")]
    pub(crate) socket: Option<PathBuf>,
    /// Address of a daemon to ask over TLS instead, https://HOST:PORT
    #[arg(long, global = true, value_name = "URL", env = "SPILLWAY_SERVER")]
    pub(crate) server: Option<String>,
    /// Client certificate, PEM; the names in it decide what you may do
    #[arg(long, global = true, value_name = "FILE", env = "SPILLWAY_TLS_CERT")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Key of the client certificate, PEM
    #[arg(long, global = true, value_name = "FILE", env = "SPILLWAY_TLS_KEY")]
    pub(crate) tls_key: Option<PathBuf>,
    /// CA certificates that the daemon's certificate is verified with, PEM
    #[arg(long, global = true, value_name = "FILE", env = "SPILLWAY_TLS_CA")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Mount point of the BPF file system
    #[arg(long, global = true, value_name = "DIR", env = "SPILLWAY_BPFFS")]
    #[arg(default_value = "/sys/fs/bpf")]
    pub(crate) bpffs: PathBuf,
    /// State directory of the daemon [default: /var/lib/spillway]
    #[arg(long, global = true, value_name = "DIR", env = "SPILLWAY_STATE_DIR")]
    pub(crate) state_dir: Option<PathBuf>,
}

impl Options {
    pub(crate) fn socket(&self) -> &Path {
        self.socket.as_deref().unwrap_or(Path::new(DEFAULT_SOCKET))
    }

    pub(crate) fn state_dir(&self) -> &Path {
        self.state_dir.as_deref().unwrap_or(Path::new(DEFAULT_STATE_DIRECTORY))
    }

    /// Where the balancer is asked, for messages.
    pub(crate) fn address(&self) -> String {
        self.server.clone().unwrap_or_else(|| self.socket().display().to_string())
    }
}

/// What a daemon does on its interfaces; `lb_maps::Component` as a flag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Component {
    /// Sends packets of services to backends
    #[default]
    Balancer,
    /// Decapsulates packets on a backend
    Receiver,
}

impl From<Component> for lb_maps::Component {
    fn from(component: Component) -> Self {
        match component {
            Component::Balancer => Self::Balancer,
            Component::Receiver => Self::Receiver,
        }
    }
}

/// Why a change is made; part of every command that changes the configuration.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ReasonArgument {
    /// Reason for the history and the audit log, at most 256 bytes
    #[arg(long, short = 'm', value_name = "TEXT", value_parser = parse_reason)]
    reason: Option<String>,
}

impl ReasonArgument {
    /// As a request has it; empty: none.
    pub(crate) fn text(&self) -> String {
        self.reason.clone().unwrap_or_default()
    }
}

fn parse_reason(text: &str) -> Result<String, String> {
    match Reason::new(text) {
        Ok(reason) => reason.given().map(str::to_owned).ok_or_else(|| "the reason is empty".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// The number of a generation.
pub(crate) fn parse_generation(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("generations are numbered from 1".into()),
        Ok(number) => Ok(number),
        Err(_) if text.contains(['.', '/']) => {
            Err("not the number of a generation; a file is named with -f".into())
        }
        Err(_) => Err("not the number of a generation; `spillway history` lists them".into()),
    }
}

/// Name of an input file in messages. `-` is standard input.
pub(crate) fn input_name(file: &Path) -> String {
    if file == Path::new("-") { "standard input".into() } else { file.display().to_string() }
}

/// Reads a file that the command line names, or standard input for `-`.
///
/// # Errors
/// The file cannot be read, or is not UTF-8.
pub(crate) fn read_input(file: &Path) -> Result<String, Failure> {
    let bytes = if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    let bytes = bytes.map_err(|error| {
        Failure::path(Path::new(&input_name(file)), &error)
            .hint("name a readable file with -f, or - for standard input")
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::new(Exit::Invalid, format!("{}: byte {at} is not UTF-8", input_name(file)))
            .hint("a configuration is a TOML file")
    })
}

const ENDPOINT_HINT: &str = "write ADDRESS:PORT, as in 192.0.2.1:80 or [2001:db8::1]:80";

/// Parses an address with a port: `192.0.2.1:80`, `[2001:db8::1]:80`. `what` names it in the failure.
///
/// # Errors
/// Names the part that is missing or wrong, and what to write.
pub(crate) fn parse_endpoint(what: &str, text: &str) -> Result<SocketAddr, Failure> {
    let fail = |cause: String, hint: String| {
        Failure::new(Exit::Usage, format!("{what} '{text}': {cause}")).hint(hint)
    };
    match text.parse::<SocketAddr>() {
        Ok(SocketAddr::V6(v6)) if v6.scope_id() != 0 => Err(fail(
            "an address with a zone is valid on one link only".into(),
            "give the address without '%ZONE'".into(),
        )),
        Ok(endpoint) if endpoint.port() == 0 => {
            Err(fail("port 0 is not a port".into(), "give a port from 1 to 65535".into()))
        }
        Ok(endpoint) => Ok(endpoint),
        Err(_) => {
            let (cause, hint) = endpoint_mistake(text);
            Err(fail(cause, hint))
        }
    }
}

/// Why a text is not an address with a port, and what to write instead.
fn endpoint_mistake(text: &str) -> (String, String) {
    if let Ok(address) = text.parse::<IpAddr>() {
        let (cause, form) = match address {
            IpAddr::V4(_) => ("the port is missing", format!("write {text}:PORT")),
            IpAddr::V6(_) => (
                "an IPv6 address with a port needs brackets",
                format!("write [{text}]:PORT, with brackets around the address only"),
            ),
        };
        return (cause.into(), form);
    }
    let Some((address, port)) = text.rsplit_once(':') else {
        return ("not an address with a port".into(), ENDPOINT_HINT.into());
    };
    let bare = address.strip_prefix('[').and_then(|a| a.strip_suffix(']')).unwrap_or(address);
    match bare.parse::<IpAddr>() {
        Ok(_) if port.is_empty() => ("the port is missing after ':'".into(), ENDPOINT_HINT.into()),
        Ok(IpAddr::V6(_)) if bare == address => {
            ("an IPv6 address with a port needs brackets".into(), format!("write [{bare}]:PORT"))
        }
        Ok(_) => (format!("'{port}' is not a port"), "give a port from 1 to 65535".into()),
        Err(_) => (
            format!("'{bare}' is not an IPv4 or IPv6 address"),
            "give an address; names are not resolved".into(),
        ),
    }
}

/// A parser of whole numbers within a range.
///
/// In the API 0 often means "unset". A user who writes 0 expects 0 and would silently get the default,
/// so 0 is refused here as in a file.
pub(crate) fn within(
    range: RangeInclusive<u32>,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number
            .ok_or_else(|| format!("give a whole number from {} to {}", range.start(), range.end()))
    }
}

/// [`within`] for a field that has a default: 0 is answered with how to get the default.
pub(crate) fn within_or_unset(
    range: RangeInclusive<u32>,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync {
    let parse = within(range);
    move |text| {
        parse(text).map_err(|allowed| match text.parse() {
            Ok(0) => format!("{allowed}; for the default, leave the flag out or use --unset"),
            _ => allowed,
        })
    }
}

/// Parses the name of a value, and lets help texts and shell completion list all of them. Hyphens are
/// taken for underscores.
pub(crate) fn one_of<T: NamedValue>() -> impl TypedValueParser<Value = T> {
    let possible = T::ALL.iter().map(|value| {
        let possible = PossibleValue::new(value.name()).help(value.meaning());
        match value.name().contains('_') {
            true => possible.alias(value.name().replace('_', "-")),
            false => possible,
        }
    });
    PossibleValuesParser::new(possible)
        .try_map(|name| T::from_name(&name.replace('-', "_")).ok_or("no such value"))
}

pub(crate) fn parse_duration(text: &str) -> Result<prost_types::Duration, DurationError> {
    document::parse_duration(text)?.try_into().map_err(|_| DurationError::TooLong)
}

/// A parser of durations within a range.
pub(crate) fn duration_within(
    range: RangeInclusive<Duration>,
) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync {
    move |text| {
        let duration = document::parse_duration(text).map_err(|error| error.to_string())?;
        match range.contains(&duration) {
            true => Ok(duration),
            false => Err(format!("give {:?} to {:?}", range.start(), range.end())),
        }
    }
}

/// The time between two readings of counters.
pub(crate) fn parse_interval() -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync {
    duration_within(Duration::from_secs(1)..=Duration::from_secs(3600))
}

/// `--wait 20s` as `--wait=20s`. The flag's value is optional, so clap takes the next word for another argument.
pub(crate) fn with_joined_wait(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    let mut is_flag = true;
    for word in words {
        let is_limit = |word: &OsString| {
            word.to_str().is_some_and(|word| document::parse_duration(word).is_ok())
        };
        match joined.last_mut() {
            Some(last) if is_flag && last == "--wait" && is_limit(&word) => {
                last.push("=");
                last.push(word);
            }
            _ => {
                is_flag &= word != "--";
                joined.push(word);
            }
        }
    }
    joined
}

/// Parses a rate of connections, such as `600/m`, to connections a second.
pub(crate) fn parse_rate(text: &str) -> Result<f64, String> {
    document::parse_rate(text).ok_or_else(|| {
        "give a number of connections per unit of time, such as 10/s or 600/m".into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_both_families_are_parsed() {
        let v4 = parse_endpoint("vip", "192.0.2.1:80").unwrap();
        assert_eq!((v4.ip(), v4.port()), (IpAddr::from([192, 0, 2, 1]), 80));
        let v6 = parse_endpoint("vip", "[2001:db8::1]:65535").unwrap();
        let address = IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]);
        assert_eq!((v6.ip(), v6.port()), (address, 65535));
    }

    #[test]
    fn a_limit_behind_wait_belongs_to_it() {
        let joined = |line: &str| {
            let words = with_joined_wait(line.split(' ').map(OsString::from));
            words.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
        };
        for (line, expected) in [
            ("apply --wait 20s -f x", "apply --wait=20s -f x"),
            ("drain 10.0.0.1 --wait 1h30m", "drain 10.0.0.1 --wait=1h30m"),
            ("drain --wait 10.0.0.1", "drain --wait 10.0.0.1"),
            ("rollback --wait 7", "rollback --wait 7"),
            ("delete -- --wait 20s", "delete -- --wait 20s"),
            ("apply --wait=20s 5s", "apply --wait=20s 5s"),
            ("apply --wait", "apply --wait"),
        ] {
            assert_eq!(joined(line), expected);
        }
    }

    #[test]
    fn each_mistake_in_an_endpoint_is_named_with_what_to_write() {
        for (text, cause, hint) in [
            ("192.0.2.1", "the port is missing", "192.0.2.1:PORT"),
            ("2001:db8::1", "needs brackets", "[2001:db8::1]:PORT"),
            ("2001:db8:0:0:0:0:0:1:80", "needs brackets", "[2001:db8:0:0:0:0:0:1]:PORT"),
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
            let failure = parse_endpoint("client", text).unwrap_err();
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
