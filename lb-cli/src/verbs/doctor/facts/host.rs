use std::{fs, path::Path};

use nix::{
    sys::statfs::{BPF_FS_MAGIC, statfs},
    unistd::{SysconfVar, sysconf},
};

use lb_daemon::kernel::BTF;

use super::Places;
use crate::rights;

/// The kernel, and what this program may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Host {
    /// Release, `6.1.0-30-amd64`.
    pub(in super::super) release: String,
    /// Whether the kernel tells its types (`/sys/kernel/btf/vmlinux`).
    pub(in super::super) btf: bool,
    /// Whether a BPF file system is where it should be.
    pub(in super::super) bpffs: bool,
    /// `net.core.bpf_jit_enable`; `None`: not to be seen from here.
    pub(in super::super) jit: Option<u32>,
    /// Bytes of a page of memory; 0: not to be seen from here.
    pub(in super::super) page: u32,
    /// Effective capabilities of this program, as bits.
    pub(in super::super) capabilities: u64,
}

impl Host {
    pub(super) fn read(places: &Places) -> Self {
        let text = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let kind = statfs(&places.bpffs).map(|status| status.filesystem_type());
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
            capabilities: rights::effective("self").unwrap_or(0),
        }
    }
}
