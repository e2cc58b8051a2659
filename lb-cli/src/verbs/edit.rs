//! `spillway edit`: the configuration in force, in an editor.

use std::{
    env,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    apply::{File, How},
    change::Changes,
    export::Exported,
};
use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    exit::Exit,
    failure::{Failure, describe},
    output::{Report as _, print},
    source::read,
};

/// The editor where the environment names none.
const EDITOR: &str = "vi";

/// Options of `edit`.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Only print what would change; the file is kept
    #[arg(long)]
    dry_run: bool,
}

/// A file of ours with the configuration that was in force.
struct Draft {
    path: PathBuf,
    generation: u64,
}

/// Has the configuration edited and puts it in force, if nobody else changed it meanwhile.
///
/// # Errors
/// The editor fails, what it leaves is no configuration, or the daemon refuses or does not answer.
/// What was written is then kept, and the failure names the file.
pub(crate) fn run(options: Options, arguments: &Arguments) -> Result<(), Failure> {
    let output = options.output;
    let answer = converse(async { Daemon::open(&options).await?.export().await })?;
    let exported = Exported::new(answer)?.whole()?;
    let before = exported.table();
    let draft = Draft::new(&before, exported.generation)?;
    if let Err(failure) = edit(&draft.path) {
        return Err(draft.kept_if_changed(&before, failure));
    }
    let after = read(&draft.path).map_err(|failure| draft.kept(failure))?;
    if after == before {
        draft.remove();
        return print(&Changes::none(draft.generation, arguments.dry_run), output);
    }
    let applied = File::new(draft.path.display().to_string(), after).and_then(|file| {
        converse(async {
            let how = How {
                dry_run: arguments.dry_run,
                expected_generation: Some(draft.generation),
                any_schema: false,
            };
            file.apply(&mut Daemon::open(&options).await?, how).await
        })
    });
    match applied {
        Ok(changes) => {
            if arguments.dry_run {
                eprintln!("note: the file is kept: {}", draft.path.display());
            } else {
                draft.remove();
            }
            print(&changes, output)
        }
        Err(failure) => Err(draft.kept(failure)),
    }
}

/// Has a file edited. The editor may be a command with arguments, as the shell reads it.
fn edit(path: &Path) -> Result<(), Failure> {
    let named = ["VISUAL", "EDITOR"].iter().find_map(env::var_os);
    let editor = named.filter(|editor| !editor.is_empty()).unwrap_or_else(|| EDITOR.into());
    let name = editor.to_string_lossy().into_owned();
    let failure = |cause: String| {
        Failure::new(Exit::Failure, format!("editor '{name}': {cause}"))
            .hint("name one with the environment variable EDITOR; nothing was changed")
    };
    let mut script = editor;
    script.push(" \"$@\"");
    let status = Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg("editor")
        .arg(path)
        .status()
        .map_err(|error| failure(describe(&error)))?;
    match (status.success(), status.code()) {
        (true, _) => Ok(()),
        (false, Some(code)) => Err(failure(format!("it ended with status {code}"))),
        (false, None) => Err(failure("it was killed".into())),
    }
}

impl Draft {
    /// A new file that only this user may read: the configuration has the key of the hash.
    fn new(text: &str, generation: u64) -> Result<Self, Failure> {
        let directory = env::temp_dir();
        let failure = |error: &std::io::Error| {
            Failure::path(&directory, error)
                .hint("name a directory for the file with the environment variable TMPDIR")
        };
        let mut file = tempfile::Builder::new()
            .prefix("spillway-")
            .suffix(".toml")
            .tempfile_in(&directory)
            .map_err(|error| failure(&error))?;
        file.write_all(text.as_bytes()).map_err(|error| failure(&error))?;
        let (_, path) = file.keep().map_err(|kept| failure(&kept.error))?;
        Ok(Self { path, generation })
    }

    fn remove(&self) {
        // Somebody else may have taken it away.
        let _ = std::fs::remove_file(&self.path);
    }

    /// The same failure, with what to do with the file.
    fn kept(&self, failure: Failure) -> Failure {
        let Self { path, generation } = self;
        let path = path.display();
        let apply = format!("spillway apply -f {path} --expect-generation {generation}");
        let hint = match (&failure.hint, failure.exit) {
            _ if failure.is_overtaken() => format!(
                "somebody else changed it meanwhile; what you wrote is kept: see `spillway diff -f {path}`"
            ),
            (Some(hint), Exit::Conflict) => format!("what you wrote is kept in {path}; {hint}"),
            _ => format!("what you wrote is kept: mend it, then `{apply}`"),
        };
        failure.hint(hint)
    }

    /// The file goes where nothing was written into it.
    fn kept_if_changed(&self, before: &str, failure: Failure) -> Failure {
        match read(&self.path) {
            Ok(after) if after != before => self.kept(failure),
            _ => {
                self.remove();
                failure
            }
        }
    }
}
