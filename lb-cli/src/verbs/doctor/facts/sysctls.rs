use std::{collections::BTreeMap, fs};

/// Kernel parameters of a network namespace, by their dotted names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Sysctls(pub(in super::super) BTreeMap<String, i64>);

/// What is read of each interface.
const OF_INTERFACES: [&str; 3] = ["rp_filter", "arp_ignore", "arp_announce"];
/// What is read besides.
const OF_THE_HOST: [&str; 2] = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"];

impl Sysctls {
    pub(super) fn read<'a>(interfaces: impl Iterator<Item = &'a String>) -> Self {
        let mut values: BTreeMap<_, _> =
            OF_THE_HOST.iter().filter_map(|name| Some(((*name).into(), host(name)?))).collect();
        for interface in interfaces.map(String::as_str).chain(["all"]) {
            for name in OF_INTERFACES {
                let path = format!("/proc/sys/net/ipv4/conf/{interface}/{name}");
                let name = of(interface, name);
                values.extend(number(&path).map(|value| (name, value)));
            }
        }
        Self(values)
    }

    /// A parameter; `None`: it cannot be read.
    pub(in super::super) fn get(&self, name: &str) -> Option<i64> {
        self.0.get(name).copied()
    }

    /// What counts of an interface's IPv4 parameter: the larger of `all` and its own (Linux,
    /// networking/ip-sysctl).
    pub(in super::super) fn effective(&self, interface: &str, name: &str) -> Option<i64> {
        self.get(&of(interface, name)).max(self.get(&of("all", name)))
    }
}

fn of(interface: &str, name: &str) -> String {
    format!("net.ipv4.conf.{interface}.{name}")
}

fn host(name: &str) -> Option<i64> {
    number(&format!("/proc/sys/{}", name.replace('.', "/")))
}

fn number(path: &str) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_of_all_and_own_counts() {
        let values = [("net.ipv4.conf.all.rp_filter", 1), ("net.ipv4.conf.eth0.rp_filter", 2)];
        let sysctls = Sysctls(values.map(|(name, value)| (name.to_owned(), value)).into());
        assert_eq!(sysctls.effective("eth0", "rp_filter"), Some(2));
        assert_eq!(sysctls.effective("eth1", "rp_filter"), Some(1));
        assert_eq!(sysctls.effective("eth1", "arp_ignore"), None);
    }
}
