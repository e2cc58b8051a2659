//! What Debian is told of the package.

use std::fmt;

/// The control file, without the size.
pub(super) struct Control<'a> {
    pub(super) version: &'a str,
    pub(super) architecture: &'a str,
    /// Least version of libc6.
    pub(super) libc: String,
}

impl Control<'_> {
    /// The text; `size` is what it takes when installed, in KiB.
    pub(super) fn text(&self, size: u64) -> String {
        format!("{self}Installed-Size: {size}\n{DESCRIPTION}")
    }
}

impl fmt::Display for Control<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, architecture, libc } = self;
        writeln!(f, "Package: spillway")?;
        writeln!(f, "Version: {version}")?;
        writeln!(f, "Architecture: {architecture}")?;
        writeln!(f, "Maintainer: The Spillway authors <spillway@localhost>")?;
        writeln!(f, "Section: net")?;
        writeln!(f, "Priority: optional")?;
        // 249: StopPropagatedFrom=, and the capabilities by their names.
        writeln!(
            f,
            "Depends: libc6 (>= {libc}), libgcc-s1, init-system-helpers, passwd, systemd (>= 249)"
        )?;
        // The commands of the README, and those by which the doctor mends.
        writeln!(f, "Recommends: ethtool, iproute2, procps")
    }
}

const DESCRIPTION: &str = "\
Description: L4 load balancer in the network driver
 An XDP program looks each packet of a virtual address up in a Maglev table and
 sends it on in an IP tunnel; the backend answers the client directly. The
 daemon keeps the tables true to health checks, neighbours and a configuration.
 .
 One package for balancers and backends. Linux 6.1 or later. Nothing is started
 by the installation: see /usr/share/doc/spillway/README.md.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_file_has_its_fields() {
        let control = Control { version: "0.1.0", architecture: "amd64", libc: "2.34".to_owned() };
        let text = control.text(7000);
        for line in ["Package: spillway", "Version: 0.1.0", "Architecture: amd64"] {
            assert!(text.lines().any(|it| it == line), "{line}:\n{text}");
        }
        assert!(text.contains("\nDepends: libc6 (>= 2.34), libgcc-s1,"), "{text}");
        assert!(text.contains("\nRecommends: ethtool, iproute2, procps\n"), "{text}");
        assert!(text.contains("\nInstalled-Size: 7000\nDescription: "), "{text}");
        assert!(text.lines().all(|line| line.len() <= 100) && text.ends_with('\n'));
    }
}
