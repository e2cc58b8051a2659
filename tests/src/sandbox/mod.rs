//! A place of our own that vanishes with the process.
//!
//! [`enter`] starts the current program again as process 1 of fresh PID, mount, network and IPC
//! namespaces, with `/run` and a BPF file system of its own. The process that was started first stays
//! outside as the [`supervisor`]; it does nothing but end the inside when it is told to end. Each of
//! the two dies with the other, and when process 1 is gone the kernel removes every process, network
//! namespace, link, pinned BPF object and mount that was made inside. No path of an exit, a signal or
//! a crash can leave anything behind, because nothing is undone: it only ceases to be referenced.
//! In a guest of QEMU that can be had for less: [`whole_system`].

mod inside;
mod supervisor;

use std::path::{Path, PathBuf};

/// Says to a started program that it is to be the inside, by the process id of the outside; only
/// process 1 heeds it.
const MARK: &str = "SPILLWAY_SANDBOX";

/// Set for a program that runs as the whole system of a guest, to what it is there.
pub const GUEST: &str = "SPILLWAY_GUEST";

/// Where a sandbox keeps its files: a tmpfs that nobody outside sees.
const ROOT: &str = "/run/sandbox";

/// Proof of being inside.
#[derive(Clone, Debug)]
pub struct Sandbox {
    root: PathBuf,
}

/// Puts the program into a sandbox. Call it first thing in `main`, before any thread is started.
///
/// Returns inside. Outside it does not return: it waits for the inside and exits as that did.
/// Without the rights to make namespaces it says so and exits with code 1.
pub fn enter() -> Sandbox {
    let failure = if outside().is_some() {
        match inside::set_up(Path::new(ROOT)) {
            Ok(()) => return Sandbox { root: ROOT.into() },
            Err(error) => error,
        }
    } else {
        match supervisor::run() {
            Ok(code) => std::process::exit(code),
            Err(error) => error,
        }
    };
    #[expect(clippy::print_stderr, reason = "there is no caller left to return the error to")]
    {
        eprintln!("sandbox: {failure:#}");
    }
    std::process::exit(1);
}

/// Takes the whole of a [guest](GUEST) for a sandbox: its devices are in it, and it all goes with
/// the guest.
///
/// # Errors
/// This is no guest, or a BPF file system cannot be mounted.
pub fn whole_system() -> anyhow::Result<Sandbox> {
    anyhow::ensure!(std::env::var_os(GUEST).is_some(), "not in a guest");
    let sandbox = Sandbox { root: ROOT.into() };
    inside::mount_bpf(&sandbox.root)?;
    Ok(sandbox)
}

/// The host's own `/run` for a sandbox, of which nothing vanishes: what is made there has to be removed.
///
/// Its [`Sandbox::bpffs`] is below `/run/bpf`, so who uses it mounts one elsewhere by [`mount_bpf`].
pub fn on_the_host() -> Sandbox {
    Sandbox { root: "/run".into() }
}

/// Mounts a BPF file system on a directory, which is made.
///
/// # Errors
/// When it cannot be mounted.
pub fn mount_bpf(directory: &Path) -> anyhow::Result<()> {
    inside::mount_bpf_on(directory)
}

/// Process id of the outside, as its own namespace has it; `None`: this is not the inside.
pub fn outside() -> Option<u32> {
    let mark = std::env::var(MARK).ok().filter(|_| std::process::id() == 1)?;
    mark.parse().ok()
}

impl Sandbox {
    /// A directory that exists only here, made if need be.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn directory(&self, name: &str) -> std::io::Result<PathBuf> {
        let path = self.root.join(name);
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// A directory on the sandbox's own BPF file system, made if need be; one for each daemon.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn bpffs(&self, name: &str) -> std::io::Result<PathBuf> {
        self.directory(&format!("bpf/{name}"))
    }
}
