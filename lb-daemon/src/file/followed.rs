//! Which file the configuration is read from again, at each start and reload.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use super::configuration;
use crate::model::Configuration;

/// The file, if there is one. Clones are of the same one.
#[derive(Clone, Debug, Default)]
pub struct Followed(Arc<Mutex<Option<PathBuf>>>);

impl Followed {
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
        let said = fs::read_to_string(&path).ok().and_then(|text| configuration(&text).ok());
        Some((path, said))
    }
}
