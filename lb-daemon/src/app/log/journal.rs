use std::{
    env,
    io::{self, Write},
    os::unix::net::UnixDatagram,
};

use nix::sys::stat::fstat;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    Layer,
    fmt::{
        FormatFields,
        format::{DefaultFields, Writer},
    },
    layer::Context,
};

use super::entry::Entry;

/// Where the journal takes entries.
const SOCKET: &str = "/run/systemd/journal/socket";
/// Says which file of a service the journal reads: its device and inode, systemd.exec(5).
const STREAM: &str = "JOURNAL_STREAM";

/// Writes each event as an entry of the journal: its fields are the entry's, and stand in its text
/// too, which is all that `journalctl` shows unless asked.
#[derive(Debug)]
pub(super) struct Journal(UnixDatagram);

impl Journal {
    /// The journal, where it is what reads stderr, and takes entries.
    pub(super) fn behind_stderr() -> Option<Self> {
        let stderr = fstat(io::stderr()).ok()?;
        if !is_stream(&env::var(STREAM).ok()?, stderr.st_dev, stderr.st_ino) {
            return None;
        }
        let socket = UnixDatagram::unbound().ok()?;
        // It passes over what is empty.
        socket.send_to(&[], SOCKET).ok()?;
        Some(Self(socket))
    }
}

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = String::new();
        let _never_fails = DefaultFields::new().format_fields(Writer::new(&mut text), event);
        let entry = Entry::of(event, priority(*event.metadata().level()), &text);
        if self.0.send_to(entry.bytes(), SOCKET).is_err() {
            // As when it is started anew; stderr may still reach somebody.
            let _nobody = writeln!(io::stderr(), "{text}");
        }
    }
}

/// Whether a file is the one that is named.
fn is_stream(named: &str, device: u64, inode: u64) -> bool {
    named.split_once(':').is_some_and(|(d, i)| d.parse() == Ok(device) && i.parse() == Ok(inode))
}

/// A level as syslog(3) counts.
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_is_the_journals_if_device_and_inode_are() {
        assert!(is_stream("9:1234", 9, 1234));
        for other in ["9:1235", "8:1234", "9", "", "9:1234:", "a:b"] {
            assert!(!is_stream(other, 9, 1234), "{other}");
        }
    }
}
