//! What a process may do, proc_pid_status(5).

use std::fs;

/// A capability: its bit and its name, include/uapi/linux/capability.h.
pub(crate) type Capability = (u32, &'static str);

/// To attach programs, to ask for neighbours, and to know the kernel's maps of devices.
pub(crate) const NET_ADMIN: Capability = (12, "CAP_NET_ADMIN");
/// To load programs that compute with packet pointers.
pub(crate) const PERFMON: Capability = (38, "CAP_PERFMON");
/// To load programs and to open maps.
pub(crate) const BPF: Capability = (39, "CAP_BPF");
const SYS_ADMIN: u32 = 21;

/// Effective capabilities of a process, as bits; `self` is this one. `None`: not to be seen.
pub(crate) fn effective(process: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Names of those that are missing; `None`: none is. CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON,
/// capabilities(7).
pub(crate) fn missing(effective: u64, needed: &[Capability]) -> Option<String> {
    let has = |bit: u32| effective >> bit & 1 != 0;
    let may = |bit: u32| has(bit) || bit >= PERFMON.0 && has(SYS_ADMIN);
    let lacks = needed.iter().filter(|(bit, _)| !may(*bit));
    let names: Vec<_> = lacks.map(|(_, name)| *name).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn administration_stands_for_two_of_them() {
        let all = [NET_ADMIN, PERFMON, BPF];
        assert_eq!(missing(1 << 12 | 1 << 38 | 1 << 39, &all), None);
        assert_eq!(missing(1 << 12 | 1 << 21, &all), None);
        assert_eq!(missing(1 << 21, &all).as_deref(), Some("CAP_NET_ADMIN"));
        assert_eq!(missing(1 << 12, &all).as_deref(), Some("CAP_PERFMON, CAP_BPF"));
    }
}
