//! `spillway edit`: opens the configuration in force in an editor and applies the result.

use std::{
    env,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    apply::{ApplyOptions, ConfigurationFile},
    changes::Changes,
    confirm::{Confirmation, ForceArgument},
    export::Exported,
    fleet::WaitArgument,
};
use crate::{
    arguments::{Options, ReasonArgument, read_input},
    client::{DaemonClient, block_on},
    failure::{Exit, Failure, describe},
    output::{Report as _, print},
};

/// The editor if the environment names none.
const EDITOR: &str = "vi";

#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Only print what would change, and keep the file
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    force: ForceArgument,
    #[command(flatten)]
    wait: WaitArgument,
    #[command(flatten)]
    confirmation: Confirmation,
    #[command(flatten)]
    reason: ReasonArgument,
}

/// A temporary file with the configuration that was in force.
struct Draft {
    path: PathBuf,
    generation: u64,
}

/// Fails if the configuration in force changes while it is being edited.
///
/// # Errors
/// The editor fails, the file is not a configuration, or the daemon refuses or does not answer: a changed file is then
/// kept, and the failure names it. Balancers of the fleet lag.
pub(crate) fn run(options: Options, arguments: &Arguments) -> Result<(), Failure> {
    let output = options.output;
    let answer = block_on(async { DaemonClient::connect(&options).await?.export().await })?;
    let exported = Exported::new(answer)?.require_complete()?;
    let before = exported.table();
    let draft = Draft::new(&before, exported.generation)?;
    if let Err(failure) = run_editor(&draft.path) {
        return Err(draft.keep_if_changed(&before, failure));
    }
    let after = read_input(&draft.path).map_err(|failure| draft.keep(failure))?;
    if after == before {
        draft.remove();
        return print(&Changes::none(draft.generation, arguments.dry_run), output);
    }
    let applied =
        ConfigurationFile::new(draft.path.display().to_string(), after).and_then(|file| {
            block_on(async {
                let how = ApplyOptions {
                    dry_run: arguments.dry_run,
                    expected_generation: Some(draft.generation),
                    any_schema: false,
                    force: arguments.force.force,
                    reason: arguments.reason.text(),
                };
                let mut daemon = DaemonClient::connect(&options).await?;
                let mut changes = file.apply(&mut daemon, how, arguments.confirmation).await?;
                let waited = arguments.wait.wait(&mut daemon, &mut changes).await;
                Ok((changes, waited))
            })
        });
    match applied {
        Ok((changes, waited)) => {
            if arguments.dry_run {
                eprintln!("note: the file is kept: {}", draft.path.display());
            } else {
                draft.remove();
            }
            print(&changes, output)?;
            waited
        }
        Err(failure) => Err(draft.keep(failure)),
    }
}

/// The editor may be a command with arguments, which the shell parses.
fn run_editor(path: &Path) -> Result<(), Failure> {
    let named = ["VISUAL", "EDITOR"].iter().find_map(env::var_os);
    let editor = named.filter(|editor| !editor.is_empty()).unwrap_or_else(|| EDITOR.into());
    let name = editor.to_string_lossy().into_owned();
    let failure = |cause: String| {
        Failure::new(Exit::Failure, format!("editor '{name}': {cause}"))
            .hint("nothing was changed; set EDITOR to your editor")
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
        (false, Some(code)) => Err(failure(format!("exited with status {code}"))),
        (false, None) => Err(failure("was killed".into())),
    }
}

impl Draft {
    /// Creates a file that only this user can read: the configuration holds the hash key.
    fn new(text: &str, generation: u64) -> Result<Self, Failure> {
        let directory = env::temp_dir();
        let failure = |error: &std::io::Error| {
            Failure::path(&directory, error).hint("set TMPDIR to a directory for the file")
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
        // The file may be gone already.
        let _ = std::fs::remove_file(&self.path);
    }

    /// Adds to a failure what to do with the file.
    fn keep(&self, failure: Failure) -> Failure {
        let Self { path, generation } = self;
        let path = path.display();
        let apply = format!("spillway apply -f {path} --expect-generation {generation}");
        let hint = match (&failure.hint, failure.exit) {
            _ if failure.is_overtaken() => format!(
                "the configuration was changed meanwhile; your file is kept: see `spillway diff -f {path}`"
            ),
            (Some(hint), Exit::Conflict) => format!("your file is kept: {path}; {hint}"),
            (Some(_), Exit::Usage) => {
                format!("your file is kept: if that is meant, `{apply} --yes`")
            }
            (Some(_), Exit::Failure | Exit::Unavailable) => {
                format!("your file is kept: apply it with `{apply}`")
            }
            _ => format!("your file is kept: correct it, then `{apply}`"),
        };
        failure.hint(hint)
    }

    /// Removes the file if it was not changed.
    fn keep_if_changed(&self, before: &str, failure: Failure) -> Failure {
        match read_input(&self.path) {
            Ok(after) if after != before => self.keep(failure),
            _ => {
                self.remove();
                failure
            }
        }
    }
}
