//! The command line.

use std::{
    net::{IpAddr, SocketAddr},
    num::NonZeroU16,
    path::PathBuf,
    time::Duration,
};

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use lb_common::wire::gue;
use nix::unistd::{Group, User};

use super::{Failure, interfaces::Awaited, vlan::Vlan};
use crate::{
    access::{Client, Clients},
    api::Rights,
    tls::TlsFiles,
};
use lb_base::bytes::ByteSize;
use lb_config::DEFAULT_SOCKET;
use lb_control::reconcile;
use lb_maps::{
    self, AllowLists, DEFAULT_BPFFS, Options, Prefix, Rooms, directory::DEFAULT_STATE_DIRECTORY,
};
use lb_model::{Name, plan::Sources};

/// The daemon of the Spillway load balancer.
#[derive(Debug, Parser)]
#[command(name = "spillwayd", version, long_version = version(), max_term_width = 80)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub(super) role: Role,
}

const AFTER_HELP: &str = "\
Stopping the daemon leaves packets flowing; `spillway detach` ends that.
RUST_LOG sets what is logged: error, warn, info (the default), debug.

Exit status:
  0  it was told to stop
  1  it could not start or go on, which it says in one sentence
  2  the command line or the settings file is wrong, or names an interface
     that this host does not have

SIGHUP: the settings file and the file of --apply are read again, as
`spillway reload` does, which also says what came of it.";

#[derive(Debug, Subcommand)]
pub(super) enum Role {
    /// Spread connections to virtual addresses over backends
    Balancer(Box<BalancerArguments>),
    /// Unwrap what balancers send, on a backend
    Receiver(Box<ReceiverArguments>),
}

#[derive(Args, Debug)]
pub(super) struct BalancerArguments {
    #[command(flatten)]
    pub(super) path: PathArguments,
    /// Region this host stands in: its backends come first
    #[arg(long, value_name = "NAME", value_parser = |text: &str| Name::new(text))]
    pub(super) region: Option<Name>,
    /// Source address of tunnels, one of each family at most [default: the interface's own]
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    source: Vec<IpAddr>,
    /// Where the store is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_STATE_DIRECTORY)]
    pub(super) state_dir: PathBuf,
    /// Start although the store holds a configuration of a newer schema: packets go on as they are, and the
    /// configuration waits for an apply
    #[arg(long)]
    pub(super) any_schema: bool,
    /// Unix socket to answer on
    #[arg(long, value_name = "PATH", default_value = DEFAULT_SOCKET)]
    pub(super) socket: PathBuf,
    /// Displaced IPv4 connections to remember, 88 bytes each; a quarter as many of IPv6,
    /// 112 bytes each [default: 524288, or as many as the pinned table has]
    #[arg(long, value_name = "NUMBER", value_parser = room())]
    displaced: Option<u32>,
    /// Flows of tracked UDP services over IPv4 to remember, sizes as above [default: 262144, or as
    /// many as the pinned table has]
    #[arg(long, value_name = "NUMBER", value_parser = room())]
    udp_flows: Option<u32>,
    /// Interface, and the id of the VLAN whose tag goes on what is sent to backends by it, 1 to 4094; may be
    /// given several times [default: the tags that a packet came in with by the same interface, else none]
    #[arg(long, value_name = "NAME=ID")]
    pub(super) vlan: Vec<Vlan>,
    /// Most ICMP errors a second that tell clients of packets that are too large; 0: nobody is told
    #[arg(long, value_name = "NUMBER", value_parser = answers())]
    #[arg(default_value_t = reconcile::Settings::default().icmp_errors)]
    pub(super) icmp_errors: u32,
    /// Most pings of virtual addresses a second that are answered; 0: none
    #[arg(long, value_name = "NUMBER", value_parser = answers())]
    #[arg(default_value_t = reconcile::Settings::default().icmp_echoes)]
    pub(super) icmp_echoes: u32,
    /// Serve a status page for browsers at --http as well, read-only
    #[arg(long, requires = "http")]
    pub(super) status_page: bool,
    /// Most kernel memory that all maps may take, as 512MiB or 2GiB; a configuration that needs more
    /// is refused [default: no limit]
    #[arg(long, value_name = "BYTES")]
    pub(super) map_memory_limit: Option<ByteSize>,
    /// User that the unix socket belongs to, a name or number [default: the daemon's own]
    #[arg(long, value_name = "USER", value_parser = user)]
    socket_owner: Option<u32>,
    /// Group that the unix socket belongs to, a name or number [default: the daemon's own]
    #[arg(long, value_name = "GROUP", value_parser = group)]
    socket_group: Option<u32>,
    /// Who may use the unix socket, and so change everything: permission bits in octal
    #[arg(long, value_name = "MODE", value_parser = mode, default_value = "660")]
    socket_mode: u32,
    /// Address and port to answer on over TLS too; clients need a certificate and a role
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = |text: &str| endpoint(text, "192.0.2.1:9751"))]
    listen: Option<SocketAddr>,
    /// Certificate to show there, PEM, with those between it and its authority
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// Its key, PEM
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Authorities that clients' certificates are from, PEM
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// A DNS name or URI of a client's certificate, and its role: viewer, operator or admin; may be
    /// given several times
    #[arg(long, value_name = "NAME=ROLE")]
    tls_client: Vec<Client>,
    /// File to note each change of the configuration in, in lines of JSON: intent and outcome
    #[arg(long, value_name = "FILE")]
    pub(super) audit_file: Option<PathBuf>,
    /// Configuration to put in force at the start and at a reload, a TOML file
    #[arg(long, value_name = "FILE")]
    pub(super) apply: Option<PathBuf>,
    /// A balancer's packet program is one for XDP
    #[arg(long, hide = true, value_name = "HOOK", value_parser = only_xdp)]
    hook: Option<()>,
}

#[derive(Args, Debug)]
pub(super) struct ReceiverArguments {
    #[command(flatten)]
    pub(super) path: PathArguments,
    /// Where balancers send from: an address, or a prefix as 192.0.2.0/24
    #[arg(long, value_name = "PREFIX", required = true, value_delimiter = ',')]
    allow_source: Vec<Prefix>,
    /// Virtual address that this host serves
    #[arg(long, value_name = "ADDRESS", required = true, value_delimiter = ',')]
    vip: Vec<IpAddr>,
    /// Address where tunnels end besides this host's own, which are known; may be given several times
    #[arg(long, value_name = "ADDRESS", value_delimiter = ',')]
    tunnel_endpoint: Vec<IpAddr>,
    /// UDP port where tunnels of GUE end; 0: nowhere
    #[arg(long, value_name = "PORT", default_value_t = gue::PORT)]
    gue_port: u16,
    /// What the packet program hooks into: XDP, as --xdp-mode says, or tc, for drivers without native XDP
    #[arg(long, value_enum, value_name = "HOOK", default_value = "xdp")]
    hook: Hook,
    /// Unix socket that `spillway reload --role receiver` and `spillway doctor` ask, for root alone [default:
    /// /run/spillway-receiver/receiver.sock; if that cannot be used, none]
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct PathArguments {
    /// File with more of these settings: TOML, the flags' names without their dashes
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Interface that packets come in by; may be given several times
    #[arg(long, value_name = "NAME", required = true, value_delimiter = ',')]
    pub(super) interface: Vec<String>,
    /// Seconds to wait at the start for an interface that does not exist yet [default: until the host
    /// has been up for 120 seconds]
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(0..=3600))]
    interface_wait: Option<u64>,
    /// Where the packet program runs: in the driver, or in the stack (slower)
    #[arg(long, value_enum, value_name = "MODE", default_value = "auto")]
    xdp_mode: XdpMode,
    /// Where the BPF file system is mounted
    #[arg(long, value_name = "DIR", default_value = DEFAULT_BPFFS)]
    bpffs: PathBuf,
    /// Address and port to serve metrics at, as 127.0.0.1:9750; whoever reaches it may read them
    /// [default: none are served]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = |text: &str| endpoint(text, "127.0.0.1:9750"))]
    pub(super) http: Option<SocketAddr>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum XdpMode {
    /// In the driver; where it cannot, in the stack, with a warning
    Auto,
    /// In the driver
    Native,
    /// In the stack, with any driver
    Generic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Hook {
    /// Before the stack has a packet
    Xdp,
    /// In the stack, with any driver, after GRO
    Tc,
}

impl PathArguments {
    /// What has to be there before the daemon can start.
    pub(super) fn interfaces(&self) -> Awaited<'_> {
        let names = self.interface.iter().map(|name| ("interface".into(), name.as_str())).collect();
        let patience = self.interface_wait.map(Duration::from_secs);
        Awaited { names, patience, file: self.config.as_deref() }
    }

    fn options(&self) -> Options {
        let mode = match self.xdp_mode {
            XdpMode::Auto => lb_maps::XdpMode::Auto,
            XdpMode::Native => lb_maps::XdpMode::Native,
            XdpMode::Generic => lb_maps::XdpMode::Generic,
        };
        Options {
            objects: crate::OBJECTS,
            bpffs: self.bpffs.clone(),
            interfaces: self.interface.clone(),
            hook: mode.into(),
            rooms: Rooms::default(),
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

    /// Refuses what contradicts itself.
    ///
    /// # Errors
    /// A mode of XDP is asked for, and another hook; or tunnels are to end at a VIP.
    pub(super) fn agree(&self) -> Result<(), Failure> {
        if let Some(vip) = self.tunnel_endpoint.iter().find(|it| self.vip.contains(it)) {
            return Err(Failure::new(format!(
                "--tunnel-endpoint {vip}: is a --vip, where no tunnel ends"
            ))
            .hint("give it as one of the two"));
        }
        let mode = match self.path.xdp_mode {
            XdpMode::Native => "native",
            XdpMode::Generic => "generic",
            XdpMode::Auto => return Ok(()),
        };
        if self.hook == Hook::Xdp {
            return Ok(());
        }
        let sentence = format!("--hook tc: --xdp-mode {mode} is for programs of XDP");
        Err(Failure::new(sentence).hint("give one of the two"))
    }

    /// What is let through, but for the host's own addresses.
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
    /// What has to be there before the daemon can start.
    pub(super) fn interfaces(&self) -> Awaited<'_> {
        let mut awaited = self.path.interfaces();
        awaited
            .names
            .extend(self.vlan.iter().map(|vlan| (format!("vlan {vlan}"), vlan.interface())));
        awaited
    }

    pub(super) fn options(&self) -> Options {
        let rooms = Rooms { displaced: self.displaced, udp_flows: self.udp_flows };
        Options { rooms, ..self.path.options() }
    }

    /// Who may use the unix socket.
    pub(super) fn rights(&self) -> Rights {
        Rights { owner: self.socket_owner, group: self.socket_group, mode: self.socket_mode }
    }

    /// Who is let in over TLS.
    pub(super) fn clients(&self) -> Clients {
        self.tls_client.iter().cloned().collect()
    }

    /// Where to answer over TLS, and by what.
    ///
    /// # Errors
    /// Some of it is missing.
    pub(super) fn remote(&self) -> Result<Option<(SocketAddr, TlsFiles)>, Failure> {
        let Some(listen) = self.listen else { return Ok(None) };
        let file = |name: &str, file: &Option<PathBuf>| {
            file.clone().ok_or_else(|| {
                let sentence = format!("--listen {listen}: --{name} is missing");
                Failure::new(sentence).hint(
                    "over TCP there is only TLS with certificates on both ends: give --tls-cert, \
                     --tls-key and --tls-ca",
                )
            })
        };
        let (certificate, key) =
            (file("tls-cert", &self.tls_cert)?, file("tls-key", &self.tls_key)?);
        let authorities = file("tls-ca", &self.tls_ca)?;
        Ok(Some((listen, TlsFiles { certificate, key, authorities })))
    }

    /// Refuses what contradicts itself.
    ///
    /// # Errors
    /// There is to be a door over TLS without all of its files, or tunnels have two sources of a family.
    pub(super) fn agree(&self) -> Result<(), Failure> {
        self.sources()?;
        self.remote().map(drop)
    }

    /// The sources that were given.
    ///
    /// # Errors
    /// There are two of a family.
    pub(super) fn sources(&self) -> Result<Sources, Failure> {
        let mut sources = Sources::default();
        for source in &self.source {
            let former = match source {
                IpAddr::V4(v4) => sources.v4.replace(*v4).map(IpAddr::V4),
                IpAddr::V6(v6) => sources.v6.replace(*v6).map(IpAddr::V6),
            };
            if let Some(former) = former {
                let message = format!("--source: {former} and {source} are of one family");
                return Err(Failure::new(message).hint("give one address of each family at most"));
            }
        }
        Ok(sources)
    }
}

/// A hook of a balancer's program.
fn only_xdp(text: &str) -> Result<(), String> {
    match text {
        "xdp" => Ok(()),
        "tc" => {
            Err("the balancer is a program for XDP: only the receiver has one for tc; with any \
                     driver `--xdp-mode generic` works"
                .into())
        }
        _ => Err("must be xdp".into()),
    }
}

/// An address with a port.
fn endpoint(text: &str, example: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("give an address and a port, as {example}"))
}

/// A user's number.
fn user(text: &str) -> Result<u32, String> {
    let found = || User::from_name(text).ok().flatten().map(|user| user.uid.as_raw());
    text.parse().ok().or_else(found).ok_or_else(|| "no such user".into())
}

/// A group's number.
fn group(text: &str) -> Result<u32, String> {
    let found = || Group::from_name(text).ok().flatten().map(|group| group.gid.as_raw());
    text.parse().ok().or_else(found).ok_or_else(|| "no such group".into())
}

/// Permission bits.
fn mode(text: &str) -> Result<u32, String> {
    let bits = u32::from_str_radix(text, 8).ok().filter(|bits| *bits <= 0o777);
    bits.ok_or_else(|| "must be permission bits in octal, as 660".into())
}

fn room() -> clap::builder::RangedI64ValueParser<u32> {
    value_parser!(u32).range(i64::from(Rooms::LEAST)..=i64::from(Rooms::MOST))
}

fn answers() -> clap::builder::RangedI64ValueParser<u32> {
    value_parser!(u32).range(0..=i64::from(reconcile::MOST_ANSWERS))
}

/// The version, and which packet programs are inside.
fn version() -> String {
    let object = |role: lb_maps::Role| match crate::OBJECTS.digest(role) {
        Some(digest) => format!("{role} program: {digest:016x}"),
        None => format!("{role} program: none in this build"),
    };
    let version = env!("CARGO_PKG_VERSION");
    [version.into(), object(lb_maps::Role::Balancer), object(lb_maps::Role::Receiver)].join("\n")
}
