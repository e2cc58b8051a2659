//! Our own cache: folders that are either finished or absent, filled by one process at a time.

use std::env;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::ui;

/// `$XDG_CACHE_HOME/spillway`, or `~/.cache/spillway`.
pub(crate) fn root() -> Result<PathBuf> {
    let base = match env::var_os("XDG_CACHE_HOME").filter(|dir| Path::new(dir).is_absolute()) {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(env::var_os("HOME").context("HOME: not set")?).join(".cache"),
    };
    let root = base.join("spillway");
    fs::create_dir_all(&root).with_context(|| root.display().to_string())?;
    Ok(root)
}

/// Written last, with the recipe's version; a folder without it, or with another, is not finished.
const STAMP: &str = "finished";

/// A folder of the cache.
pub(crate) struct Entry {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Changes when the same name gets other contents.
    recipe: &'static str,
}

impl Entry {
    pub(crate) fn new(root: &Path, name: &str, recipe: &'static str) -> Self {
        Self { path: root.join(name), recipe }
    }

    /// Whether all of it is there.
    pub(crate) fn is_finished(&self) -> bool {
        fs::read_to_string(self.path.join(STAMP)).is_ok_and(|stamp| stamp.trim() == self.recipe)
    }

    /// Fills the folder if it is not finished. What an interrupted run left is done again.
    pub(crate) fn fill(&self, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let _lock = self.lock()?;
        if self.is_finished() {
            return Ok(()); // by another process, meanwhile
        }
        let dir = &self.path;
        if dir.exists() {
            ui::note(&format!("{} is unfinished: done again", dir.display()));
            fs::remove_dir_all(dir).with_context(|| dir.display().to_string())?;
        }
        fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        fill(dir)?;
        fs::write(dir.join(STAMP), self.recipe).with_context(|| dir.display().to_string())
    }

    /// Held until the file is closed; the kernel lets go of it whatever becomes of us.
    fn lock(&self) -> Result<File> {
        lock(&self.path)
    }
}

/// Waits for the lock that stands beside a folder.
pub(crate) fn lock(folder: &Path) -> Result<File> {
    let mut name = folder.as_os_str().to_owned();
    name.push(".lock");
    let path = PathBuf::from(name);
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .with_context(|| path.display().to_string())?;
    if file.try_lock().is_err() {
        ui::note(&format!("waiting for another run that fills {}", folder.display()));
        file.lock().with_context(|| path.display().to_string())?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    /// A folder that goes when the test ends.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = env::temp_dir().join(format!("xtask-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            drop(fs::remove_dir_all(&self.0));
        }
    }

    #[test]
    fn a_finished_folder_is_not_filled_again() {
        let scratch = Scratch::new("finished");
        let entry = Entry::new(&scratch.0, "tool-1.0", "1");
        entry.fill(|dir| Ok(fs::write(dir.join("tool"), "old")?)).unwrap();
        entry.fill(|_| bail!("filled twice")).unwrap();
        assert!(entry.is_finished());
        assert_eq!(fs::read_to_string(entry.path.join("tool")).unwrap(), "old");
    }

    #[test]
    fn a_half_done_folder_is_done_again_from_nothing() {
        let scratch = Scratch::new("half");
        let entry = Entry::new(&scratch.0, "tool-1.0", "1");
        let error = entry.fill(|dir| {
            fs::write(dir.join("half"), "")?;
            bail!("killed")
        });
        assert_eq!(error.unwrap_err().to_string(), "killed");
        assert!(!entry.is_finished());
        entry.fill(|dir| Ok(fs::write(dir.join("whole"), "")?)).unwrap();
        assert!(!entry.path.join("half").exists());
        assert!(entry.path.join("whole").exists());
    }

    #[test]
    fn another_recipe_is_another_content() {
        let scratch = Scratch::new("recipe");
        Entry::new(&scratch.0, "tool-1.0", "1").fill(|_| Ok(())).unwrap();
        assert!(!Entry::new(&scratch.0, "tool-1.0", "2").is_finished());
    }

    #[test]
    fn of_two_runs_at_once_one_fills() {
        let scratch = Scratch::new("two");
        let filled = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let entry = Entry::new(&scratch.0, "tool-1.0", "1");
                    let fill = |dir: &Path| {
                        filled.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        Ok(fs::write(dir.join("tool"), vec![0; 1 << 20])?)
                    };
                    entry.fill(fill).unwrap();
                    assert!(entry.is_finished());
                });
            }
        });
        assert_eq!(filled.into_inner(), 1);
    }
}
