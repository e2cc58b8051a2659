//! Who changed what, who captured packets, who had ways through tunnels tried: a line of the log under the target
//! `audit`, and a line of JSON in a file where one is set.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use serde_json::{Value, json};

use crate::{access::Actor, causes, command::Applied, seldom::Seldom, troubles::Troubles};

/// The log of changes. Clones write to the same one.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    file: Option<Arc<Named>>,
    troubles: Troubles,
    denials: Arc<Seldom>,
}

#[derive(Debug)]
struct Named {
    path: PathBuf,
    open: Mutex<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    /// Whether it is the one that has the name, as far as we know.
    named: bool,
}

impl Audit {
    /// A log that is also written to a file, at its end; readable for its owner alone where it is
    /// made. Where it cannot be written later, that is a trouble.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(path: Option<&Path>, troubles: Troubles) -> io::Result<Self> {
        let named = |path: &Path| {
            Ok::<_, io::Error>(Named {
                path: path.into(),
                open: Mutex::new(Open { file: append(path)?, named: true }),
            })
        };
        let file = path.map(named).transpose()?.map(Arc::new);
        Ok(Self { file, troubles, denials: Arc::default() })
    }

    /// Opens the file anew, as after it was moved away. Where that fails the former one is written on.
    pub fn reopen(&self) {
        let Some(named) = &self.file else { return };
        let mut open = named.open.lock().unwrap_or_else(PoisonError::into_inner);
        match append(&named.path) {
            Ok(file) => {
                *open = Open { file, named: true };
                self.troubles.end(&named.path.display().to_string());
            }
            Err(error) => {
                open.named = false;
                self.trouble(&named.path, &error);
            }
        }
    }

    /// Somebody changed the configuration.
    pub fn changed(&self, actor: &Actor, before: u64, applied: &Applied) {
        let after = applied.generation;
        tracing::info!(
            target: "audit",
            actor = %actor, before, after, changes = applied.changes.len(),
            "configuration changed"
        );
        let changes = applied.changes.iter().map(|change| {
            let kind = change.kind.to_string();
            json!({"kind": kind, "object": change.object, "details": change.details})
        });
        self.line(
            "apply",
            actor,
            &json!({
                "before": before, "after": after, "changes": changes.collect::<Vec<_>>(),
            }),
        );
    }

    /// Somebody captures packets.
    pub fn capture_began(&self, actor: &Actor, wanted: &str) {
        tracing::info!(target: "audit", actor = %actor, "capture began: {wanted}");
        self.line("capture", actor, &json!({"wanted": wanted}));
    }

    /// Somebody's capture ended.
    pub fn capture_ended(&self, actor: &Actor, summary: &str) {
        tracing::info!(target: "audit", actor = %actor, "capture ended: {summary}");
        self.line("capture_ended", actor, &json!({"summary": summary}));
    }

    /// Somebody tries ways through tunnels, with packets of so many bytes.
    pub fn probed(&self, actor: &Actor, ways: usize, size: u16) {
        tracing::info!(target: "audit", actor = %actor, ways, size, "probe");
        self.line("probe", actor, &json!({"ways": ways, "packet_size": size}));
    }

    /// Somebody called what they may not. Ten such lines a second are kept, the others counted.
    pub fn denied(&self, actor: &Actor, call: &str, cause: &str) {
        let Some(left_out) = self.denials.now(10) else { return };
        tracing::warn!(target: "audit", actor = %actor, call, left_out, "denied: {cause}");
        self.line("denied", actor, &json!({"call": call, "left_out": left_out}));
    }

    fn line(&self, what: &str, actor: &Actor, more: &Value) {
        let Some(named) = &self.file else { return };
        let time = prost_types::Timestamp::from(SystemTime::now()).to_string();
        let mut entry = json!({"time": time, "what": what, "who": who(actor)});
        if let (Some(entry), Some(more)) = (entry.as_object_mut(), more.as_object()) {
            entry.extend(more.clone());
        }
        let mut open = named.open.lock().unwrap_or_else(PoisonError::into_inner);
        // One write a line: others may append to the file, too.
        match open.file.write_all(format!("{entry}\n").as_bytes()) {
            Ok(()) if open.named => self.troubles.end(&named.path.display().to_string()),
            Ok(()) => {}
            Err(error) => self.trouble(&named.path, &error),
        }
    }

    fn trouble(&self, path: &Path, error: &io::Error) {
        self.troubles.begin(
            &path.display().to_string(),
            &format!("audit: not written: {}", causes::of(error)),
        );
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

fn who(actor: &Actor) -> Value {
    match actor {
        Actor::Unknown => json!({}),
        // Not as a path: one that is no UTF-8 has no JSON.
        Actor::File(path) => json!({"file": path.display().to_string()}),
        Actor::User(uid) => json!({"uid": uid}),
        Actor::Certificate(name) => json!({"certificate": name}),
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    use super::*;

    #[test]
    fn a_file_is_named_whatever_its_name_is() {
        let file = Actor::File(OsStr::from_bytes(b"/etc/\xff.toml").into());
        assert_eq!(who(&file), json!({"file": "/etc/\u{fffd}.toml"}));
    }
}
