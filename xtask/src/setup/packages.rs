//! The Debian packages that demo, tests and bench run, and why.

use std::path::Path;

use crate::programs;

/// Who needs a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Building the product, which every other purpose needs too.
    Build,
    /// The tour.
    Demo,
    /// The lab with one balancer.
    Lab,
    /// The lab with several, which have etcd.
    FleetLab,
    /// The experiments that the demo repeats.
    Experiment,
    Test,
    Bench,
    /// The bench of the daemon alone.
    Control,
    Fuzz,
}

use Purpose::{Bench, Build, Control, Demo, Experiment, FleetLab, Fuzz, Lab, Test};

/// A package, told by the programs it brings: where they are, whoever put them there, it is not
/// missing. A module of a program is told by its path.
pub(crate) struct Wanted {
    pub(crate) package: &'static str,
    pub(crate) programs: &'static [&'static str],
    pub(crate) why: &'static str,
    purposes: &'static [Purpose],
}

const fn wanted(
    package: &'static str,
    programs: &'static [&'static str],
    why: &'static str,
    purposes: &'static [Purpose],
) -> Wanted {
    Wanted { package, programs, why, purposes }
}

#[rustfmt::skip]
const ALL: [Wanted; 29] = [
    wanted("iproute2", &["ip"], "makes the namespaces and their links", &[Demo, Lab, FleetLab, Experiment, Test, Bench, Control]),
    wanted("util-linux", &["unshare", "nsenter", "setpriv", "setsid"], "keeps what we make out of the system", &[Demo, Lab, FleetLab, Experiment, Test, Bench, Control]),
    wanted("mount", &["mount", "umount"], "a BPF file system of our own", &[Demo, Lab, FleetLab, Experiment, Test, Bench, Control]),
    wanted("ethtool", &["ethtool"], "turns off checksum offload at senders", &[Demo, Lab, FleetLab, Experiment, Test, Bench, Control]),
    wanted("iputils-ping", &["ping"], "tells whether a network is up", &[Test]),
    wanted("nginx", &["nginx"], "backends", &[Demo, Experiment, Test, Bench]),
    wanted("curl", &["curl"], "a client: single connections, uploads and downloads", &[Demo, Lab, FleetLab, Experiment, Test]),
    wanted("siege", &["siege"], "a client: many connections, each fresh", &[Demo, Experiment, Test]),
    wanted("httperf", &["httperf"], "a client: connections at a fixed rate, answered or not", &[Experiment, Test]),
    wanted("wrk", &["wrk"], "a client: load on long connections, and many fresh ones", &[Experiment, Test, Bench]),
    wanted("haproxy", &["haproxy"], "is measured beside Spillway", &[Experiment, Test, Bench]),
    wanted("libnginx-mod-stream", &["/usr/lib/nginx/modules/ngx_stream_module.so"], "is measured beside Spillway", &[Experiment, Test, Bench]),
    wanted("nftables", &["nft"], "is measured beside Spillway", &[Bench]),
    wanted("tshark", &["tshark"], "a second opinion on every frame that we emit", &[Experiment, Test]),
    wanted("tcpdump", &["tcpdump"], "captures the frames", &[Experiment, Test]),
    wanted("bpftool", &["bpftool"], "a second opinion on programs, links and maps", &[Test]),
    wanted("prometheus", &["promtool"], "checks the alert rules, and tests them", &[Test]),
    wanted("chromium", &["chromium"], "shows the status page", &[Test]),
    wanted("qemu-system-x86", &["qemu-system-x86_64"], "boots Debian 12's own kernel", &[Test]),
    wanted("busybox-static", &["busybox"], "the system around that kernel", &[Test]),
    wanted("python3-pip", &["python3", "pip3"], "a client of the API in another language", &[Test]),
    wanted("g++", &["c++"], "builds libFuzzer", &[Test, Fuzz]),
    wanted("openssl", &["openssl"], "makes certificates and serves TLS, as others do", &[Test]),
    wanted("etcd-server", &["etcd"], "what a fleet shares is kept in it", &[FleetLab, Test]),
    wanted("etcd-client", &["etcdctl"], "a second opinion on what is in etcd", &[Test]),
    wanted("libfaketime", &["/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"], "gives a daemon a wrong clock", &[Test]),
    wanted("protobuf-compiler", &["protoc"], "builds the client of etcd", &[Build]),
    wanted("libprotobuf-dev", &["/usr/include/google/protobuf/descriptor.proto"], "builds the client of etcd", &[Build]),
    wanted("debootstrap", &["debootstrap"], "makes the Debian that the package is tried in", &[Test]),
];

/// What `purpose` needs and is not here.
pub(crate) fn missing(purpose: Option<Purpose>) -> Vec<&'static Wanted> {
    missing_from(purpose, |program| match Path::new(program) {
        path if path.is_absolute() => path.is_file(),
        _ => programs::find(program).is_some(),
    })
}

fn missing_from(purpose: Option<Purpose>, is_here: impl Fn(&str) -> bool) -> Vec<&'static Wanted> {
    let concerns = |wanted: &&Wanted| {
        let is_needed = |purpose| wanted.purposes.contains(&purpose);
        purpose.is_none_or(|purpose| is_needed(purpose) || is_needed(Build))
    };
    let is_missing = |wanted: &&Wanted| !wanted.programs.iter().all(|program| is_here(program));
    ALL.iter().filter(concerns).filter(is_missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(missing: &[&Wanted]) -> Vec<&'static str> {
        missing.iter().map(|wanted| wanted.package).collect()
    }

    #[test]
    fn each_verb_gets_what_it_needs() {
        let demo = names(&missing_from(Some(Demo), |_| false));
        assert!(demo.contains(&"nginx") && demo.contains(&"siege"));
        assert!(!demo.contains(&"qemu-system-x86") && !demo.contains(&"httperf"));
        assert!(names(&missing_from(Some(Experiment), |_| false)).contains(&"httperf"));
        let bench = names(&missing_from(Some(Bench), |program| !program.starts_with('/')));
        assert_eq!(bench, ["libnginx-mod-stream", "libprotobuf-dev"]);
        let control = names(&missing_from(Some(Control), |_| false));
        let build = ["protobuf-compiler", "libprotobuf-dev"];
        assert_eq!(control, [&["iproute2", "util-linux", "mount", "ethtool"][..], &build].concat());
        assert_eq!(names(&missing_from(Some(Build), |_| false)), build);
        let [lab, fleet] = [Lab, FleetLab].map(|it| names(&missing_from(Some(it), |_| false)));
        assert!(lab.contains(&"curl") && !lab.contains(&"nginx") && !lab.contains(&"etcd-server"));
        assert!(fleet.contains(&"etcd-server") && fleet.len() == lab.len() + 1);
        assert_eq!(missing_from(None, |_| false).len(), ALL.len());
        assert!(missing_from(None, |_| true).is_empty());
    }

    #[test]
    fn a_package_is_missing_if_one_of_its_programs_is() {
        assert_eq!(names(&missing_from(None, |program| program != "nsenter")), ["util-linux"]);
    }
}
