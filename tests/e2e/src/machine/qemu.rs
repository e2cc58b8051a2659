//! QEMU without hardware help: a serial console, and network cards where a guest is to have them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};

use lb_tests::process::{Running, until};

/// A guest that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(30 * 60);
/// Memory of the guest: the archive, what is unpacked of it, and the maps.
const MEMORY: &str = "2048M";

/// What a guest wrote to its serial console.
#[derive(Clone, Debug)]
pub struct Console(String);

impl Console {
    /// All of it.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Its last lines.
    pub fn end(&self) -> &str {
        const LINES: usize = 40;
        let start = self.0.rmatch_indices('\n').nth(LINES).map_or(0, |(place, _)| place + 1);
        &self.0[start..]
    }

    /// What a test program said of a test: `ok` or another word; `None`: it did not run it.
    pub fn outcome(&self, test: &str) -> Option<&str> {
        self.0.lines().find_map(|line| {
            // Names are padded to one length.
            let rest = line.strip_prefix("test ")?.strip_prefix(test)?;
            Some(rest.trim().strip_prefix("...")?.trim())
        })
    }

    /// What follows `prefix` on the first line that begins so.
    pub fn line(&self, prefix: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(prefix)).map(str::trim)
    }
}

/// One end of a link between two guests: a virtio network card.
#[derive(Clone, Debug)]
pub struct Cable {
    /// A socket, the same at both ends.
    pub path: PathBuf,
    /// Whether this end makes the socket: one does, and first.
    pub makes: bool,
    /// The card's MAC.
    pub mac: &'static str,
}

impl Cable {
    fn arguments(&self, number: usize) -> [String; 4] {
        let Self { path, makes, mac } = self;
        let (path, server) = (path.display(), if *makes { "on" } else { "off" });
        [
            "-netdev".to_owned(),
            format!("stream,id=n{number},server={server},addr.type=unix,addr.path={path}"),
            "-device".to_owned(),
            format!("virtio-net-pci,netdev=n{number},mac={mac}"),
        ]
    }
}

/// A guest that runs.
#[derive(Debug)]
pub struct Machine(Running);

impl Machine {
    /// Boots a kernel with a first root; the cards of `cables` are `eth0` and so on, in their order. `kernel`
    /// is a folder with `boot/vmlinuz-…`, `scratch` one for files on the way, this guest's alone.
    ///
    /// # Errors
    /// When QEMU is missing.
    pub fn start(
        kernel: &Path,
        initramfs: &[u8],
        scratch: &Path,
        cables: &[Cable],
    ) -> Result<Self> {
        let (initrd, log) = (scratch.join("initrd"), scratch.join("console"));
        fs::write(&initrd, initramfs).with_context(|| initrd.display().to_string())?;
        let mut command = Command::new("qemu-system-x86_64");
        command.args(["-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", MEMORY]);
        command.args(["-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"]);
        command.arg("-kernel").arg(image(kernel)?).arg("-initrd").arg(&initrd);
        // A panic ends the guest at once; quiet, so that the console holds the program's lines whole.
        command.args(["-append", "console=ttyS0 quiet panic=-1"]);
        for (number, cable) in cables.iter().enumerate() {
            command.args(cable.arguments(number));
        }
        let mut guest = Running::start("qemu", command.stdin(std::process::Stdio::null()), &log)?;
        for cable in cables.iter().filter(|cable| cable.makes) {
            until("the guest's end of a cable", LIMIT, || {
                guest.check()?;
                Ok(cable.path.exists().then_some(()))
            })?;
        }
        Ok(Self(guest))
    }

    /// Waits until the guest has turned itself off.
    ///
    /// # Errors
    /// When QEMU fails, or the guest takes too long.
    pub fn finish(mut self) -> Result<Console> {
        let guest = &mut self.0;
        let status = until("the guest to turn itself off", LIMIT, || guest.ended());
        match status {
            Ok(status) if status.success() => Ok(Console(guest.output())),
            Ok(status) => bail!("qemu: {status}\n{}", guest.output()),
            Err(error) => Err(error.context(guest.output())),
        }
    }
}

/// The kernel's image in an unpacked package.
fn image(kernel: &Path) -> Result<PathBuf> {
    let boot = kernel.join("boot");
    let entries = fs::read_dir(&boot).with_context(|| boot.display().to_string())?;
    let mut names = entries.flatten().map(|entry| entry.path());
    names
        .find(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-"))
        })
        .with_context(|| format!("{}: no vmlinuz", boot.display()))
}
