//! What /proc says of a process: its command line, its settings and its capabilities.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// A process's command line, the program's full path first; empty if the process is gone or hidden.
pub fn command_line(pid: u32) -> Vec<String> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line);
    let mut words: Vec<_> = line.split_terminator('\0').map(str::to_owned).collect();
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok();
    if let (Some(first), Some(program)) = (words.first_mut(), program) {
        // The kernel marks a program whose file was replaced.
        *first = program.display().to_string().trim_end_matches(" (deleted)").to_owned();
    }
    words
}

/// The settings file of a daemon with this command line.
pub fn settings_file(words: &[String]) -> Option<PathBuf> {
    option(words, "--config").map(PathBuf::from)
}

/// A text setting of a daemon, by its name in the file: from the command line or else from the settings
/// file. `None`: it has its default, or the file cannot be read.
pub fn setting(words: &[String], name: &str) -> Option<String> {
    let given = option(words, &format!("--{name}")).map(str::to_owned);
    given.or_else(|| text_setting(&settings_file(words)?, name))
}

/// The value of an option, `--option VALUE` or `--option=VALUE`.
fn option<'w>(words: &'w [String], option: &str) -> Option<&'w str> {
    let joined = words.iter().find_map(|word| word.strip_prefix(option)?.strip_prefix('='));
    let separate = words.iter().position(|word| word == option).and_then(|at| words.get(at + 1));
    joined.or(separate.map(String::as_str))
}

fn text_setting(file: &Path, name: &str) -> Option<String> {
    let table: toml::Table = fs::read_to_string(file).ok()?.parse().ok()?;
    Some(table.get(name)?.as_str()?.to_owned())
}

/// A capability: its bit and its name, include/uapi/linux/capability.h.
pub type Capability = (u32, &'static str);

/// To attach programs, to query neighbours and to read device maps.
pub const NET_ADMIN: Capability = (12, "CAP_NET_ADMIN");
/// To load programs with packet pointer arithmetic.
pub const PERFMON: Capability = (38, "CAP_PERFMON");
/// To load programs and to open maps.
pub const BPF: Capability = (39, "CAP_BPF");
const SYS_ADMIN: u32 = 21;

/// Effective capabilities of a process as bits, proc_pid_status(5); `self` is this process. `None`: they
/// cannot be read.
pub fn effective_capabilities(process: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

/// Names of the missing capabilities; `None`: none is missing. CAP_SYS_ADMIN includes CAP_BPF and
/// CAP_PERFMON, capabilities(7).
pub fn missing_capabilities(effective: u64, needed: &[Capability]) -> Option<String> {
    let has = |bit: u32| effective >> bit & 1 != 0;
    let may = |bit: u32| has(bit) || bit >= PERFMON.0 && has(SYS_ADMIN);
    let lacks = needed.iter().filter(|(bit, _)| !may(*bit));
    let names: Vec<_> = lacks.map(|(_, name)| *name).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests {
    use std::process;

    use super::*;

    #[test]
    fn the_command_line_overrides_the_file_in_both_its_forms() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("r.toml").display().to_string();
        fs::write(&file, "socket = \"/c\"\ngue-port = 6080\n").unwrap();
        for (line, socket) in [
            ("/d receiver --interface eth0", None),
            ("/d receiver --socket /a", Some("/a")),
            ("/d receiver --socket=/b", Some("/b")),
            (&*format!("/d receiver --config {file}"), Some("/c")),
            (&*format!("/d receiver --config={file}"), Some("/c")),
            (&*format!("/d receiver --config={file} --socket /a"), Some("/a")),
            ("/d receiver --config /nonexistent", None),
            ("/d receiver --socket", None),
        ] {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(setting(&words, "socket").as_deref(), socket, "{line}");
            assert_eq!(setting(&words, "gue-port"), None, "{line}: a number is not a text");
        }
    }

    #[test]
    fn a_command_line_begins_with_the_path_of_the_program() {
        let words = command_line(process::id());
        assert_eq!(Path::new(&words[0]), std::env::current_exe().unwrap());
        assert_eq!(words.len(), std::env::args().len());
        assert!(command_line(u32::MAX).is_empty());
    }

    #[test]
    fn sys_admin_includes_bpf_and_perfmon() {
        let all = [NET_ADMIN, PERFMON, BPF];
        assert_eq!(missing_capabilities(1 << 12 | 1 << 38 | 1 << 39, &all), None);
        assert_eq!(missing_capabilities(1 << 12 | 1 << 21, &all), None);
        assert_eq!(missing_capabilities(1 << 21, &all).as_deref(), Some("CAP_NET_ADMIN"));
        assert_eq!(missing_capabilities(1 << 12, &all).as_deref(), Some("CAP_PERFMON, CAP_BPF"));
    }
}
