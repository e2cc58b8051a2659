//! The kernel, its parameters, and the rights of this program.

use std::{collections::BTreeMap, fs, path::Path};

use lb_base::kernel::BTF;
use nix::{
    sys::statfs::{BPF_FS_MAGIC, statfs},
    unistd::{SysconfVar, sysconf},
};

use crate::process;

/// The kernel, and the capabilities of this program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Host {
    /// Kernel release: `6.1.0-30-amd64`.
    pub(crate) release: String,
    /// Whether the kernel has BTF (`/sys/kernel/btf/vmlinux`).
    pub(crate) btf: bool,
    /// Whether a BPF file system is mounted at the configured place.
    pub(crate) bpffs: bool,
    /// `net.core.bpf_jit_enable`; `None`: unknown.
    pub(crate) jit: Option<u32>,
    /// Size of a memory page, bytes; 0: unknown.
    pub(crate) page: u32,
    /// Effective capabilities of this program as bits.
    pub(crate) capabilities: u64,
    /// Packets that the reverse path filters of this network namespace have dropped; 0: unknown.
    pub(crate) rp_filter_drops: u64,
}

impl Host {
    pub(super) fn read(bpffs: &Path) -> Self {
        let text = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let kind = statfs(bpffs).map(|status| status.filesystem_type());
        Self {
            release: text("/proc/sys/kernel/osrelease").unwrap_or_default(),
            btf: Path::new(BTF).exists(),
            bpffs: kind == Ok(BPF_FS_MAGIC),
            jit: text("/proc/sys/net/core/bpf_jit_enable").and_then(|value| value.parse().ok()),
            page: sysconf(SysconfVar::PAGE_SIZE)
                .ok()
                .flatten()
                .and_then(|page| page.try_into().ok())
                .unwrap_or(0),
            capabilities: process::effective_capabilities("self").unwrap_or(0),
            rp_filter_drops: text("/proc/self/net/netstat")
                .and_then(|text| kernel_counter(&text, "TcpExt", "IPReversePathFilter"))
                .unwrap_or(0),
        }
    }
}

/// A counter of /proc/net/netstat, which has two lines a group: its names and its values.
fn kernel_counter(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(": "));
    let (names, values) = (lines.next()?.split(' '), lines.next()?.split(' '));
    names.zip(values).find(|(known, _)| *known == name)?.1.parse().ok()
}

/// Kernel parameters of a network namespace, by dotted name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sysctls(pub(crate) BTreeMap<String, i64>);

const INTERFACE_PARAMETERS: [&str; 3] = ["rp_filter", "arp_ignore", "arp_announce"];
const HOST_PARAMETERS: [&str; 2] = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"];

impl Sysctls {
    pub(super) fn read<'a>(interfaces: impl Iterator<Item = &'a String>) -> Self {
        let mut values: BTreeMap<_, _> = HOST_PARAMETERS
            .iter()
            .filter_map(|name| Some(((*name).into(), read_parameter(name)?)))
            .collect();
        for interface in interfaces.map(String::as_str).chain(["all"]) {
            for name in INTERFACE_PARAMETERS {
                let path = format!("/proc/sys/net/ipv4/conf/{interface}/{name}");
                let name = parameter_of(interface, name);
                values.extend(read_number(&path).map(|value| (name, value)));
            }
        }
        Self(values)
    }

    /// `None`: the parameter cannot be read.
    pub(crate) fn get(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }

    /// The effective IPv4 parameter of an interface: the larger of `all` and its own (Linux,
    /// networking/ip-sysctl).
    pub(crate) fn effective(&self, interface: &str, name: &str) -> Option<i64> {
        self.get(&parameter_of(interface, name)).max(self.get(&parameter_of("all", name)))
    }
}

fn parameter_of(interface: &str, name: &str) -> String {
    format!("net.ipv4.conf.{interface}.{name}")
}

fn read_parameter(name: &str) -> Option<i64> {
    read_number(&format!("/proc/sys/{}", name.replace('.', "/")))
}

fn read_number(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_stands_below_its_name() {
        let text = "TcpExt: SyncookiesSent IPReversePathFilter\nTcpExt: 3 12\nIpExt: InMcastPkts\nIpExt: 7\n";
        let counter = |group, name| kernel_counter(text, group, name);
        assert_eq!(counter("TcpExt", "IPReversePathFilter"), Some(12));
        assert_eq!(counter("IpExt", "InMcastPkts"), Some(7));
        assert_eq!(counter("IpExt", "IPReversePathFilter"), None);
        let own = fs::read_to_string("/proc/self/net/netstat").unwrap();
        assert!(kernel_counter(&own, "TcpExt", "IPReversePathFilter").is_some(), "{own}");
    }

    #[test]
    fn the_larger_of_all_and_own_counts() {
        let values = [("net.ipv4.conf.all.rp_filter", 1), ("net.ipv4.conf.eth0.rp_filter", 2)];
        let sysctls = Sysctls(values.map(|(name, value)| (name.to_owned(), value)).into());
        assert_eq!(sysctls.effective("eth0", "rp_filter"), Some(2));
        assert_eq!(sysctls.effective("eth1", "rp_filter"), Some(1));
        assert_eq!(sysctls.effective("eth1", "arp_ignore"), None);
    }
}
