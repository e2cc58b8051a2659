//! What a reader must know of a run: the machine, and what was measured.

use std::fs;

use anyhow::{Context as _, Result};

/// Facts of a run.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// Model of the CPUs.
    pub(crate) cpu: String,
    /// CPUs that the kernel has.
    pub(crate) cpus: String,
    /// Release of the kernel.
    pub(crate) kernel: String,
    /// Day of the run.
    pub(crate) date: String,
    /// Commit of what was measured.
    pub(crate) commit: String,
    /// The command.
    pub(crate) command: String,
}

impl Facts {
    /// Reads those of the machine.
    ///
    /// # Errors
    /// A file of the kernel that cannot be read.
    pub(crate) fn gather(date: String, commit: String, command: String) -> Result<Self> {
        let read = |path: &str| fs::read_to_string(path).with_context(|| path.to_owned());
        let (cpu, cpus) = cpus(&read("/proc/cpuinfo")?);
        let kernel = read("/proc/sys/kernel/osrelease")?.trim().to_owned();
        Ok(Self { cpu, cpus: cpus.to_string(), kernel, date, commit, command })
    }
}

/// Model of the first CPU, and their number (proc(5)).
fn cpus(text: &str) -> (String, usize) {
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.split_once(':'));
        line.map(|(_, value)| value.trim().to_owned())
    };
    let number = text.lines().filter(|line| line.starts_with("processor")).count();
    (field("model name").unwrap_or_else(|| "not named".into()), number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_counted_and_the_first_is_named() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n\nprocessor\t: 1\n\
                    model name\t: Another\n";
        assert_eq!(cpus(text), ("Some CPU @ 2 GHz".into(), 2));
        assert_eq!(cpus("processor\t: 0\n"), ("not named".into(), 1));
    }
}
