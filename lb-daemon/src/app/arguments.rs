//! The definition of the command line, and so of the settings.

use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    path::PathBuf,
    time::Duration,
};

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use lb_common::wire::gue;
use nix::unistd::{Group, User};

use super::{
    Failure,
    fleet_arguments::FleetArguments,
    interfaces::{NamedInterfaces, Vlan},
    sizes::SizeArguments,
};
use lb_api::Rights;
use lb_base::{bytes::ByteSize, error_chain};
use lb_config::{DEFAULT_SOCKET, document::parse_duration};
use lb_fleet::FleetSettings;
use lb_maps::{
    self, AllowLists, DEFAULT_BPFFS, Options, Prefix, SizeSettings,
    directory::DEFAULT_STATE_DIRECTORY,
};
use lb_model::{Ipv4Prefix, Name, next_hop::GivenSources};
use lb_observe::http::HttpFiles;
use lb_publish::reconcile;
use lb_secure::{
    access::{Client, Clients},
    tls::{CertificateFiles, TlsFiles},
};

/// The daemon of the Spillway load balancer.
#[derive(Debug, Parser)]
#[command(name = "spillwayd", version, long_version = version(), max_term_width = 80)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) component: Component,
}

const AFTER_HELP: &str = "\
After the daemon stops, packets are still forwarded, until `spillway detach`.
RUST_LOG sets the log level: error, warn, info (the default), debug.

Exit status:
  0  a signal stopped it
  1  it could not start or had to end; standard error says why
  2  the command line or the settings file is wrong, or names an interface
     that this host does not have

On SIGHUP the settings file, the file of --apply, certificates and tokens are
read again.
`spillway reload` does the same, and prints the result.";

#[derive(Debug, Subcommand)]
pub(super) enum Component {
    /// Balance connections to virtual addresses over backends
    Balancer(Box<BalancerArguments>),
    /// Unwrap packets from balancers, on a backend
    Receiver(Box<ReceiverArguments>),
}

#[derive(Args, Debug)]
pub(super) struct BalancerArguments {
    #[command(flatten)]
    pub(super) path: PathArguments,
    /// Region of this host, whose backends are preferred
    #[arg(long, value_name = "NAME", value_parser = |text: &str| Name::new(text))]
    pub(super) region: Option<Name>,
    /// Source address of tunnels, one of each family at most [default: the interface's own]
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', value_parser = host_address)]
    source: Vec<IpAddr>,
    /// Prefix of 8 to 32 bits, routed to this host, that each flow has an outer source of IPv4 tunnels from
    /// [default: all flows have one address, that of --source]
    #[arg(long, value_name = "PREFIX", value_parser = source_prefix)]
    tunnel_source_prefix: Option<Ipv4Prefix>,
    /// Directory of the store
    #[arg(long, value_name = "DIR", default_value = DEFAULT_STATE_DIRECTORY)]
    pub(super) state_dir: PathBuf,
    /// Start even if the stored configuration has a newer schema: the maps stay as they are until an apply
    #[arg(long)]
    pub(super) any_schema: bool,
    /// Unix socket of the API
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub(super) socket: PathBuf,
    #[command(flatten)]
    pub(super) sizes: SizeArguments,
    /// Interface and VLAN id (1 to 4094) of the tag of packets to backends; may be given several times [default: the
    /// tags that the packet came with if it leaves by the same interface, else none]
    #[arg(long, value_name = "NAME=ID")]
    pub(super) vlan: Vec<Vlan>,
    /// Most ICMP errors a second to clients whose packets are too large or at their last hop, a tenth of them to one network
    /// and half in the name of one VIP; 0: none
    #[arg(long, value_name = "NUMBER", value_parser = answers())]
    #[arg(default_value_t = reconcile::Settings::default().icmp_errors)]
    pub(super) icmp_errors: u32,
    /// Most pings of virtual addresses to answer a second, a tenth of them to one network and half at one VIP; 0: none
    #[arg(long, value_name = "NUMBER", value_parser = answers())]
    #[arg(default_value_t = reconcile::Settings::default().icmp_echoes)]
    pub(super) icmp_echoes: u32,
    /// Also serve a read-only status page for browsers at --http
    #[arg(long, requires = "http")]
    pub(super) status_page: bool,
    /// Most kernel memory for all maps, such as 512MiB or 2GiB; a configuration that needs more is refused
    /// [default: no limit]
    #[arg(long, value_name = "BYTES")]
    pub(super) map_memory_limit: Option<ByteSize>,
    /// Owner of the unix socket, a name or number [default: the daemon's own user]
    #[arg(long, value_name = "USER", value_parser = user)]
    socket_owner: Option<u32>,
    /// Group of the unix socket, a name or number [default: the daemon's own group]
    #[arg(long, value_name = "GROUP", value_parser = group)]
    socket_group: Option<u32>,
    /// Permission bits of the unix socket, in octal; whoever may use it may change everything
    #[arg(long, value_name = "MODE", value_parser = mode, default_value = "660")]
    socket_mode: u32,
    /// Second unix socket of the API, for all users of this host; its calls can only read [default: none]
    #[arg(long, value_name = "PATH")]
    pub(super) read_only_socket: Option<PathBuf>,
    /// Address and port for the API over TLS; clients need a certificate and a role
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = |text: &str| endpoint(text, "192.0.2.1:9751"))]
    listen: Option<SocketAddr>,
    /// Certificate of the TLS listener and intermediate certificates, PEM
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Key of the certificate, PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Certificate authorities of clients, PEM
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// DNS name or URI in a client's certificate, and the client's role: viewer, plan, operator or admin; with patterns of
    /// pools for these alone, such as operator:web-*, and perhaps prefixes of addresses for services at these alone, such as
    /// admin:web-*@192.0.2.0/24; may be given several times
    #[arg(long, value_name = "NAME=ROLE[:POOLS[@ADDRESSES]]")]
    tls_client: Vec<Client>,
    /// Audit log: a file with lines of JSON for each change of the configuration, its intent and its outcome
    #[arg(long, value_name = "FILE")]
    pub(super) audit_file: Option<PathBuf>,
    /// TOML file with the configuration to apply at the start and at a reload
    #[arg(long, value_name = "FILE")]
    pub(super) apply: Option<PathBuf>,
    #[command(flatten)]
    pub(super) fleet: FleetArguments,
    /// A balancer's packet program exists for XDP only
    #[arg(long, hide = true, value_name = "HOOK", value_parser = only_xdp)]
    hook: Option<()>,
}

#[derive(Args, Debug)]
pub(super) struct ReceiverArguments {
    #[command(flatten)]
    pub(super) path: PathArguments,
    /// Source address of balancers' tunnels, or a prefix such as 192.0.2.0/24
    #[arg(long, value_name = "PREFIX", required = true, value_delimiter = ',')]
    allow_source: Vec<Prefix>,
    /// Virtual address that this host serves
    #[arg(long, value_name = "ADDRESS", required = true, value_delimiter = ',', value_parser = host_address)]
    vip: Vec<IpAddr>,
    /// Address where tunnels end besides this host's own addresses; may be given several times
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',', value_parser = host_address)]
    tunnel_endpoint: Vec<IpAddr>,
    /// UDP port of GUE tunnels; 0: none
    #[arg(long, value_name = "PORT", default_value_t = gue::PORT)]
    gue_port: u16,
    /// Hook of the packet program: XDP, as --xdp-mode says, or tc, for drivers without native XDP
    #[arg(long, value_enum, value_name = "HOOK", default_value = "xdp")]
    hook: Hook,
    /// Unix socket for `spillway reload --component receiver` and `spillway doctor`, for root only [default:
    /// /run/spillway-receiver/receiver.sock; if that cannot be used, none]
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct PathArguments {
    /// TOML file with more of these settings, named like the flags without dashes
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Interface that packets arrive on; may be given several times
    #[arg(long, value_name = "NAME", required = true, value_delimiter = ',')]
    #[arg(value_parser = interface_name)]
    pub(super) interface: Vec<String>,
    /// How long to wait at the start for an interface that does not exist yet [default: until 120s after boot]
    #[arg(long, value_name = "DURATION", value_parser = interface_wait)]
    interface_wait: Option<Duration>,
    /// Where the packet program runs: in the driver, or in the network stack (slower)
    #[arg(long, value_enum, value_name = "MODE", default_value = "auto")]
    xdp_mode: XdpMode,
    /// Where the BPF file system is mounted
    #[arg(long, value_name = "DIR", default_value = DEFAULT_BPFFS)]
    bpffs: PathBuf,
    /// Address and port of the metrics, such as 127.0.0.1:9750; without --http-token-file whoever reaches it may read
    /// them [default: none]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = |text: &str| endpoint(text, "127.0.0.1:9750"))]
    pub(super) http: Option<SocketAddr>,
    /// Certificate of --http and intermediate certificates, PEM; it then answers over TLS only
    #[arg(long, value_name = "FILE", requires = "http", requires = "http_tls_key")]
    http_tls_cert: Option<PathBuf>,
    /// Key of that certificate, PEM
    #[arg(long, value_name = "FILE", requires = "http_tls_cert")]
    http_tls_key: Option<PathBuf>,
    /// File with a token on each line; clients of --http then need one of them
    #[arg(long, value_name = "FILE", requires = "http")]
    http_token_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum XdpMode {
    /// In the driver if it can, else in the network stack, with a warning
    Auto,
    /// In the driver
    Native,
    /// In the network stack, with any driver
    Generic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Hook {
    /// Before the network stack
    Xdp,
    /// In the network stack, with any driver, after GRO
    Tc,
}

impl PathArguments {
    /// Interfaces that must exist before the daemon starts.
    pub(super) fn interfaces(&self) -> NamedInterfaces<'_> {
        let names = self.interface.iter().map(|name| ("interface".into(), name.as_str())).collect();
        NamedInterfaces { names, timeout: self.interface_wait, file: self.config.as_deref() }
    }

    /// Files of the HTTP listener.
    pub(super) fn http_files(&self) -> HttpFiles {
        let certificate = self.http_tls_cert.clone().zip(self.http_tls_key.clone());
        let certificate =
            certificate.map(|(certificate, key)| CertificateFiles { certificate, key });
        HttpFiles { certificate, tokens: self.http_token_file.clone() }
    }

    fn options(&self) -> Options {
        let mode = match self.xdp_mode {
            XdpMode::Auto => lb_maps::XdpMode::Auto,
            XdpMode::Native => lb_maps::XdpMode::Native,
            XdpMode::Generic => lb_maps::XdpMode::Generic,
        };
        Options {
            objects: lb_programs::OBJECTS,
            bpffs: self.bpffs.clone(),
            interfaces: self.interface.clone(),
            hook: mode.into(),
            sizes: SizeSettings::default(),
        }
    }
}

impl ReceiverArguments {
    pub(super) fn options(&self) -> Options {
        let options = self.path.options();
        match self.hook {
            Hook::Xdp => options,
            Hook::Tc => Options { hook: lb_maps::Hook::Tc, ..options },
        }
    }

    /// Refuses contradictions: an XDP mode with another hook, or a tunnel endpoint that is a VIP.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if let Some(vip) = self.tunnel_endpoint.iter().find(|it| self.vip.contains(it)) {
            return Err(Failure::new(format!(
                "--tunnel-endpoint {vip}: is also a --vip, and no tunnel may end there"
            ))
            .hint("remove it from one of the two"));
        }
        let mode = match self.path.xdp_mode {
            XdpMode::Native => "native",
            XdpMode::Generic => "generic",
            XdpMode::Auto => return Ok(()),
        };
        if self.hook == Hook::Xdp {
            return Ok(());
        }
        let sentence = format!("--hook tc: --xdp-mode {mode} only applies to --hook xdp");
        Err(Failure::new(sentence).hint("give one of the two"))
    }

    /// The allow lists, without the host's own addresses.
    pub(super) fn allowed(&self) -> AllowLists {
        AllowLists {
            sources: self.allow_source.iter().copied().collect(),
            vips: self.vip.iter().copied().collect(),
            endpoints: self.tunnel_endpoint.iter().copied().collect(),
            gue_port: NonZeroU16::new(self.gue_port),
        }
    }
}

impl BalancerArguments {
    /// Interfaces that must exist before the daemon starts.
    pub(super) fn interfaces(&self) -> NamedInterfaces<'_> {
        let mut named = self.path.interfaces();
        named.names.extend(self.vlan.iter().map(|vlan| (format!("vlan {vlan}"), vlan.interface())));
        named
    }

    pub(super) fn options(&self) -> Options {
        Options { sizes: self.sizes.settings(), ..self.path.options() }
    }

    pub(super) fn rights(&self) -> Rights {
        Rights { owner: self.socket_owner, group: self.socket_group, mode: self.socket_mode }
    }

    /// Clients of the TLS listener and their roles.
    pub(super) fn clients(&self) -> Clients {
        self.tls_client.iter().cloned().collect()
    }

    /// Address and files of the TLS listener, if there is to be one.
    ///
    /// # Errors
    /// A file is missing.
    pub(super) fn remote(&self) -> Result<Option<(SocketAddr, TlsFiles)>, Failure> {
        let Some(listen) = self.listen else { return Ok(None) };
        let file = |name: &str, file: &Option<PathBuf>| {
            file.clone().ok_or_else(|| {
                let sentence = format!("--listen {listen}: --{name} is missing");
                Failure::new(sentence).hint(
                    "the API over TCP always uses TLS with certificates on both ends: give \
                     --tls-cert, --tls-key and --tls-ca",
                )
            })
        };
        let (certificate, key) =
            (file("tls-cert", &self.tls_cert)?, file("tls-key", &self.tls_key)?);
        let authorities = file("tls-ca", &self.tls_ca)?;
        let own = CertificateFiles { certificate, key };
        Ok(Some((listen, TlsFiles { own, authorities })))
    }

    /// Refuses contradictions: a TLS listener without all of its files, two tunnel sources of one family, one path for
    /// both sockets, or a fleet beside a configuration file.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.read_only_socket.as_ref() == Some(&self.socket) {
            let path = self.socket.display();
            let sentence =
                format!("--read-only-socket {path}: is the --socket, which may change everything");
            return Err(Failure::new(sentence).hint("give it a path of its own"));
        }
        self.sources()?;
        self.fleet()?;
        self.remote().map(drop)
    }

    /// How this balancer reaches its fleet, if the settings name one.
    ///
    /// # Errors
    /// A setting is missing, or some contradict each other.
    pub(super) fn fleet(&self) -> Result<Option<FleetSettings>, Failure> {
        let settings = self.fleet.settings(self.region.as_ref())?;
        match (&settings, &self.apply) {
            (Some(settings), Some(file)) => {
                let (file, fleet) = (file.display(), &settings.fleet);
                let sentence = format!(
                    "--apply {file}: a balancer of a fleet has the configuration of the fleet, here {fleet}, \
                     and none of a file"
                );
                Err(Failure::new(sentence).hint(
                    "remove one of the two; `spillway apply -f FILE` changes it for the fleet",
                ))
            }
            _ => Ok(settings),
        }
    }

    /// The given source addresses of tunnels.
    ///
    /// # Errors
    /// Two are of one family.
    pub(super) fn sources(&self) -> Result<GivenSources, Failure> {
        let mut sources =
            GivenSources { prefix_v4: self.tunnel_source_prefix, ..GivenSources::default() };
        for source in &self.source {
            let former = match source {
                IpAddr::V4(v4) => sources.v4.replace(*v4).map(IpAddr::V4),
                IpAddr::V6(v6) => sources.v6.replace(*v6).map(IpAddr::V6),
            };
            if let Some(former) = former {
                let message = format!("--source: {former} and {source} are of the same family");
                return Err(
                    Failure::new(message).hint("give at most one IPv4 and one IPv6 address")
                );
            }
        }
        Ok(sources)
    }
}

fn only_xdp(text: &str) -> Result<(), String> {
    match text {
        "xdp" => Ok(()),
        "tc" => {
            Err("only the receiver has a program for tc, the balancer's is for XDP; `--xdp-mode \
                 generic` works with any driver"
                .into())
        }
        _ => Err("must be xdp".into()),
    }
}

fn interface_wait(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(wait) if wait > Duration::from_secs(3600) => Err("give at most 1h".into()),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

fn endpoint(text: &str, example: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("must be an address and a port, such as {example}"))
}

fn interface_name(text: &str) -> Result<String, &'static str> {
    match text.trim().is_empty() {
        true => Err("must be the name of an interface"),
        false => Ok(text.to_owned()),
    }
}

fn host_address(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr = text.parse().map_err(|error| error_chain::message(&error))?;
    lb_config::host_address(address)
}

fn source_prefix(text: &str) -> Result<Ipv4Prefix, String> {
    let prefix: Prefix = text.parse().map_err(|error| error_chain::message(&error))?;
    let IpAddr::V4(address) = prefix.address() else {
        return Err("must be a prefix of IPv4: tunnels of IPv6 have a flow label".into());
    };
    let found = Ipv4Prefix::new(address, prefix.bits());
    let found = found.ok_or("must have 8 to 32 bits, as 10.64.0.0/24 has 24")?;
    match address.octets()[0] {
        0 | 127 | 224.. => {
            Err("must be of unicast addresses that can be routed to this host".into())
        }
        _ => Ok(found),
    }
}

fn user(text: &str) -> Result<u32, String> {
    let found = || User::from_name(text).ok().flatten().map(|user| user.uid.as_raw());
    text.parse().ok().or_else(found).ok_or_else(|| "no such user".into())
}

fn group(text: &str) -> Result<u32, String> {
    let found = || Group::from_name(text).ok().flatten().map(|group| group.gid.as_raw());
    text.parse().ok().or_else(found).ok_or_else(|| "no such group".into())
}

fn mode(text: &str) -> Result<u32, String> {
    let bits = u32::from_str_radix(text, 8).ok().filter(|bits| *bits <= 0o777);
    bits.ok_or_else(|| "must be permission bits in octal, such as 660".into())
}

fn answers() -> clap::builder::RangedI64ValueParser<u32> {
    value_parser!(u32).range(0..=i64::from(reconcile::MOST_ANSWERS))
}

/// The version, and the digests of the packet programs.
fn version() -> String {
    let object = |role: lb_maps::Component| match lb_programs::OBJECTS.digest(role) {
        Some(digest) => format!("{role} program: {digest:016x}"),
        None => format!("{role} program: none in this build"),
    };
    let version = env!("CARGO_PKG_VERSION");
    [version.into(), object(lb_maps::Component::Balancer), object(lb_maps::Component::Receiver)]
        .join("\n")
}
