//! Which file the configuration is read from again, at each start and reload.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use lb_config::document::Document;
use lb_model::Configuration;

/// The file, if there is one. Clones are of the same one.
#[derive(Clone, Debug, Default)]
pub struct FollowedFile(Arc<Mutex<Option<PathBuf>>>);

impl FollowedFile {
    /// A file, or none.
    pub fn new(path: Option<PathBuf>) -> Self {
        Self(Arc::new(Mutex::new(path)))
    }

    /// Its path.
    pub fn path(&self) -> Option<PathBuf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// It is another one from now on, or none.
    pub fn set(&self, path: Option<PathBuf>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = path;
    }

    /// Its path and what it says now; `None` for that: it cannot be read, or is wrong.
    pub fn read(&self) -> Option<(PathBuf, Option<Configuration>)> {
        let path = self.path()?;
        let text = fs::read_to_string(&path).ok();
        let document = text.and_then(|text| Document::parse(&text).ok());
        let configuration =
            document.and_then(|document| lb_config::validate(&document.into()).ok());
        Some((path, configuration))
    }
}
