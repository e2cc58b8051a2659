//! An object as a command line wants it, and which of its fields the command line spoke of.

use crate::{exit::Exit, failure::Failure};

/// Fields that are called otherwise on the command line, where a value says its unit.
const OTHERWISE: [(&str, &str); 1] = [("max_connection_rate", "max_connection_rate_per_second")];

/// An object in the making.
#[derive(Debug, Default)]
pub(crate) struct Edit<K> {
    /// The object with the fields that were given.
    pub(crate) object: K,
    /// Paths of these, as the API has them.
    pub(crate) paths: Vec<String>,
}

impl<K> Edit<K> {
    /// Sets a field where its flag was given.
    pub(crate) fn set<T: Clone>(
        &mut self,
        path: &str,
        flag: Option<&T>,
        write: impl FnOnce(&mut K, T),
    ) {
        if let Some(value) = flag {
            write(&mut self.object, value.clone());
            self.paths.push(path.into());
        }
    }

    /// Sets a list where its flag was given; `none` alone empties it.
    pub(crate) fn list(
        &mut self,
        path: &str,
        flag: &[String],
        write: impl FnOnce(&mut K, Vec<String>),
    ) {
        let values = match flag {
            [] => return,
            [empty] if empty.is_empty() => Vec::new(),
            values => values.to_vec(),
        };
        write(&mut self.object, values);
        self.paths.push(path.into());
    }

    /// Names fields that are to be as if they had never been set.
    ///
    /// # Errors
    /// A field is both set and unset.
    pub(crate) fn unset(&mut self, fields: &[String]) -> Result<(), Failure> {
        for field in fields {
            let path = field.replace('-', "_");
            let renamed = OTHERWISE.iter().find(|(flag, _)| *flag == path);
            let path = renamed.map_or(path, |(_, path)| (*path).into());
            if self.paths.contains(&path) {
                return Err(Failure::new(Exit::Usage, format!("{field}: is both set and unset"))
                    .hint("give its flag, or name it with --unset"));
            }
            self.paths.push(path);
        }
        Ok(())
    }
}
