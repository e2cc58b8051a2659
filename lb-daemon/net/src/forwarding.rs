//! Whether this host forwards packets, from `/proc/sys/net`, which shows the network namespace of the thread that reads it.

use std::{
    fs,
    io::{self, ErrorKind},
    path::Path,
};

use tokio::task::spawn_blocking;
use tracing::debug;

/// Where interfaces have their settings, of IPv4 and IPv6.
const DIRECTORIES: [&str; 2] = ["/proc/sys/net/ipv4/conf", "/proc/sys/net/ipv6/conf"];

/// Whether packets that come in by any interface are forwarded, of IPv4 and IPv6. If that cannot be read, they are taken to be.
pub(super) async fn read() -> [bool; 2] {
    // There may be thousands of interfaces.
    let read =
        spawn_blocking(|| DIRECTORIES.map(|directory| forwards_or_unknown(directory.as_ref())));
    read.await.unwrap_or([true; 2])
}

fn forwards_or_unknown(directory: &Path) -> bool {
    forwards(directory).unwrap_or_else(|error| {
        debug!("net: {}: {error}", directory.display());
        true
    })
}

/// `lo` is left out: no packet from a network comes in by it. So is `default`, which only interfaces get that are made later.
/// `all` counts, because the kernel forwards IPv6 by it alone. Linux 6.17 and later forward IPv6 by `force_forwarding` of an
/// interface, too.
fn forwards(directory: &Path) -> io::Result<bool> {
    let mut is_read = false;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if ["lo", "default"].iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        for name in ["forwarding", "force_forwarding"] {
            match fs::read_to_string(entry.path().join(name)) {
                Ok(text) if text.trim() == "0" => is_read = true,
                Ok(_) => return Ok(true),
                // The interface has gone meanwhile, or the kernel does not have the setting.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    if is_read { Ok(false) } else { Err(ErrorKind::NotFound.into()) }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn directory(interfaces: &[(&str, &str)]) -> TempDir {
        let directory = TempDir::new().unwrap();
        for (interface, value) in interfaces {
            // `force_forwarding` of an interface stands behind a slash.
            let (interface, setting) =
                interface.split_once('/').unwrap_or((interface, "forwarding"));
            let interface = directory.path().join(interface);
            fs::create_dir_all(&interface).unwrap();
            fs::write(interface.join(setting), format!("{value}\n")).unwrap();
        }
        directory
    }

    #[test]
    fn a_host_forwards_if_an_interface_but_lo_does() {
        for (interfaces, expected) in [
            (&[("all", "0"), ("eth0", "0"), ("eth1", "0")][..], false),
            (&[("all", "0"), ("eth0", "0"), ("eth1", "1")][..], true),
            (&[("all", "0"), ("default", "1"), ("eth0", "0"), ("lo", "1")][..], false),
            (&[("all", "1"), ("eth0", "0")][..], true),
            (&[("all", "0"), ("eth0", "0"), ("eth0/force_forwarding", "0")][..], false),
            (&[("all", "0"), ("eth0", "0"), ("eth0/force_forwarding", "1")][..], true),
        ] {
            let directory = directory(interfaces);
            assert_eq!(forwards_or_unknown(directory.path()), expected, "{interfaces:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_counts_as_forwarding() {
        let there = directory(&[("all", "0"), ("eth0", "0")]);
        assert!(forwards_or_unknown(&there.path().join("nowhere")));
        assert!(forwards_or_unknown(directory(&[("lo", "0")]).path()));
        let file = there.path().join("eth0/forwarding");
        fs::remove_file(&file).unwrap();
        assert!(!forwards_or_unknown(there.path()), "an interface that has gone is left out");
        fs::create_dir(&file).unwrap();
        assert!(forwards_or_unknown(there.path()), "its setting is no file");
    }
}
