//! Processes other than this one.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

/// A process other than this one.
#[derive(Debug)]
pub struct Other {
    /// Its id.
    pub pid: u32,
    /// The process that started it.
    pub parent: u32,
    /// Its network namespace, as `net:[NUMBER]`.
    pub network: Option<PathBuf>,
}

/// All processes in the sandbox but its first, which is this one. Ended ones that nobody has waited
/// for are left out: orphans come to this process, and it waits only for its own.
///
/// # Errors
/// When `/proc` cannot be read.
pub fn others() -> Result<Vec<Other>> {
    let mut others = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else { continue };
        let Some((state, parent)) = stat(pid) else { continue };
        if pid != 1 && state != "Z" && state != "X" {
            let network = fs::read_link(format!("/proc/{pid}/ns/net")).ok();
            others.push(Other { pid, parent, network });
        }
    }
    Ok(others)
}

/// State and parent of a process (proc(5), `/proc/PID/stat`).
fn stat(pid: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut after_name = stat.rsplit_once(") ")?.1.split(' ');
    Some((after_name.next()?.to_owned(), after_name.next()?.parse().ok()?))
}
