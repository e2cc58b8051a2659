//! Requests that HTTP/2's library refuses before the API sees them.

use std::{io::Write as _, os::unix::net::UnixStream};

use anyhow::{Context as _, Result};
use lb_tests::{
    process::{PATIENCE, until},
    sandbox::Sandbox,
};

use crate::host::Host;

/// A client's preface and settings, then a request for `/a b`, which is no path.
const REQUEST: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\
    \0\0\x08\x01\x05\0\0\0\x01\x83\x86\x44\x04/a b";

pub(super) fn are_logged(sandbox: &Sandbox) -> Result<()> {
    let host = Host::new(sandbox, "malformed")?;
    host.write("settings.toml", &host.settings(""))?;
    let settings = host.path("settings.toml");
    let mut command = host.daemon(&["balancer", "--config"]);
    let running = host.start(command.arg(settings))?;
    host.told()?;
    let mut client = UnixStream::connect(host.path("s.sock"))?;
    client.write_all(REQUEST)?;
    let line = r#"WARN API: request refused as malformed: malformed path (b"/a b"): invalid uri character"#;
    let is_logged = || Ok(running.output().contains(line).then_some(()));
    until("the reason", PATIENCE, is_logged).with_context(|| running.output())
}
