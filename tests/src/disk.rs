//! A disk of our own that can be full, frozen or broken: an ext4 in a file.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::process::{PATIENCE, until};
use crate::sandbox::Sandbox;

/// Size of the file system, bytes.
const SIZE: u64 = 64 << 20;
/// After so many seconds a process of its own thaws a frozen disk, whatever happens to this one.
const THAWED_AFTER: u32 = 100;
/// What fills it, bytes at a time: first large pieces, then blocks.
const PIECES: [usize; 2] = [1 << 20, 4 << 10];

/// A mounted ext4. The mount and its loop device go with the sandbox, if not before.
#[derive(Debug)]
pub struct Disk {
    image: PathBuf,
    directory: PathBuf,
    /// Thaws it in the end.
    rescue: Option<Child>,
}

impl Disk {
    /// Makes and mounts one.
    ///
    /// # Errors
    /// When it cannot be made or mounted.
    pub fn mount(sandbox: &Sandbox) -> Result<Self> {
        let directory = sandbox.directory("disk")?;
        let (image, directory) = (directory.join("image"), directory.join("mounted"));
        File::create(&image)?.set_len(SIZE)?;
        fs::create_dir(&directory)?;
        // No blocks that only root may use: then all of it can be filled.
        run("mkfs.ext4", &["-q", "-F", "-m", "0", &text(&image)])?;
        let disk = Self { image, directory, rescue: None };
        disk.mount_with("rw")?;
        Ok(disk)
    }

    /// Where it is mounted.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn mount_with(&self, mode: &str) -> Result<()> {
        // As Debian's installer does it: after an error the kernel makes it read-only.
        let options = format!("loop,errors=remount-ro,{mode}");
        run("mount", &["-o", &options, &text(&self.image), &text(&self.directory)])
    }

    /// Lets no write through until it is thawed.
    ///
    /// # Errors
    /// When it cannot be frozen.
    pub fn freeze(&mut self) -> Result<()> {
        let directory = text(&self.directory);
        let script = format!("sleep {THAWED_AFTER}; fsfreeze --unfreeze '{directory}'");
        let mut rescue = Command::new("setsid");
        rescue.args(["sh", "-c", &script]).stdin(Stdio::null());
        self.rescue = Some(rescue.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        run("fsfreeze", &["--freeze", &directory])
    }

    /// Ends that it is frozen; does nothing if it is not.
    ///
    /// # Errors
    /// When it cannot be thawed.
    pub fn thaw(&mut self) -> Result<()> {
        let Some(mut rescue) = self.rescue.take() else { return Ok(()) };
        let thawed = run("fsfreeze", &["--unfreeze", &text(&self.directory)]);
        // Only now it is not needed any more.
        let _ = rescue.kill();
        let _ = rescue.wait();
        thawed
    }

    /// Fills it up with a file.
    ///
    /// # Errors
    /// When that fails for another reason than a full disk.
    pub fn fill(&self) -> Result<()> {
        let mut file = File::options().append(true).create(true).open(self.filler())?;
        for size in PIECES {
            let piece = vec![0xa5; size];
            // What the kernel promised to metadata is free once it is written.
            let more = || match file.write(&piece).and_then(|_| file.sync_all()) {
                Ok(()) => Ok(None),
                Err(error) if error.kind() == ErrorKind::StorageFull => Ok(Some(())),
                Err(error) => Err(error.into()),
            };
            until("the disk is full", PATIENCE, more)?;
        }
        Ok(())
    }

    /// Removes what filled it.
    ///
    /// # Errors
    /// When that is not there.
    pub fn free(&self) -> Result<()> {
        Ok(fs::remove_file(self.filler())?)
    }

    fn filler(&self) -> PathBuf {
        self.directory.join("filler")
    }

    /// Has the kernel find an error in the file system, upon which it allows no more writes, not even to open files.
    ///
    /// # Errors
    /// When the kernel has no such switch.
    pub fn break_down(&self) -> Result<()> {
        let mut device = Command::new("findmnt");
        device.args(["-n", "-o", "SOURCE"]).arg(&self.directory);
        let device = String::from_utf8(device.output()?.stdout)?;
        let name = device.trim().rsplit('/').next().context("the device's name")?;
        let switch = Path::new("/sys/fs/ext4").join(name).join("trigger_fs_error");
        fs::write(&switch, "an error that a test makes").with_context(|| text(&switch))
    }

    /// Mounts it again, writable or not: possible only while no file on it is open.
    ///
    /// # Errors
    /// When a file is open, or it cannot be mounted.
    pub fn mount_again(&self, is_writable: bool) -> Result<()> {
        run("umount", &[&text(&self.directory)])?;
        self.mount_with(if is_writable { "rw" } else { "ro" })
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _thawed_by_the_rescue_otherwise = self.thaw();
        let _goes_with_the_sandbox_otherwise = run("umount", &["--lazy", &text(&self.directory)]);
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.with_context(|| program.to_owned())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {arguments:?}: {}: {said}", output.status);
    Ok(())
}
