//! Applies a configuration file: TOML in, [`lb_control::command`] out.

use std::{fmt, io, path::Path};

use lb_api::audit::Audit;
use lb_base::error_chain;
use lb_config::{
    Invalid, Requested,
    document::{Document, DocumentError},
};
use lb_control::command::{Actor, Applied, Apply, Refusal, Stopping};
use lb_member::Changes;

/// How the audit log names the request.
const REQUEST: &str = "the configuration of the file";

/// Puts the configuration of a file in force; with `force` however much it removes.
///
/// # Errors
/// [`FileError`]. The previous configuration stays in force, except after [`Refusal::Behind`].
pub(super) async fn apply(
    path: &Path,
    force: bool,
    changes: &Changes,
    audit: &Audit,
) -> Result<Applied, FileError> {
    let actor = Actor::File(path.into());
    let read = tokio::fs::read_to_string(path).await.map_err(FileError::Unreadable);
    let read = read.and_then(|text| Ok((configuration(&text)?, text)));
    let (configuration, text) = read.inspect_err(|error| {
        audit.refused(&actor, REQUEST, &error.to_string());
    })?;
    let request = REQUEST.to_owned();
    let apply = Apply { configuration, actor, request, force, ..Apply::default() };
    audit.apply(changes, apply).await?.map_err(|refusal| match refusal {
        Refusal::Invalid(invalid) => FileError::invalid(&text, &invalid),
        refusal => refusal.into(),
    })
}

fn configuration(text: &str) -> Result<Requested, FileError> {
    let document = Document::parse(text).map_err(FileError::Invalid)?;
    lb_config::validate(&document.into()).map_err(|invalid| FileError::invalid(text, &invalid))
}

/// Why the configuration of a file is not in force.
#[derive(Debug)]
pub(super) enum FileError {
    /// It cannot be read.
    Unreadable(io::Error),
    /// It is not a valid configuration.
    Invalid(DocumentError),
    /// It is valid, but was refused.
    Refused(Refusal),
    /// The daemon is stopping.
    Stopping(Stopping),
}

impl FileError {
    fn invalid(text: &str, invalid: &Invalid) -> Self {
        Self::Invalid(DocumentError::invalid(text, invalid))
    }

    /// The mistakes of the file, if it has several.
    pub(super) fn mistakes(&self) -> Vec<String> {
        let Self::Invalid(error) = self else { return Vec::new() };
        let mistakes: Vec<_> = error.lines().collect();
        if mistakes.len() > 1 { mistakes } else { Vec::new() }
    }
}

impl From<Refusal> for FileError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Stopping> for FileError {
    fn from(stopping: Stopping) -> Self {
        Self::Stopping(stopping)
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "cannot be read: {}", error_chain::message(error)),
            Self::Invalid(error) => write!(f, "{error}"),
            Self::Refused(Refusal::OpenSlots(open)) => write!(f, "{open}; {}", open.hint),
            Self::Refused(refusal) => f.write_str(&error_chain::message(refusal)),
            Self::Stopping(stopping) => write!(f, "{stopping}"),
        }
    }
}

impl std::error::Error for FileError {}

#[cfg(test)]
mod tests {
    use lb_control::command::{Commands, Warning};
    use std::fs;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use lb_base::queue::{QueueCounters, bounded};
    use lb_control::FollowedFile;
    use lb_control::{
        members::Sensed,
        state::{Inbox, Loops, Sensors, Settings},
    };
    use lb_fake::packet_path::{self, FakePacketPath, Heartbeats};
    use lb_store::Store;

    const GOOD: &str = "\
[[region]]
name = \"eu\"
[[pool]]
name = \"web\"
slots = 31
[[pool.backend]]
address = \"10.0.0.1\"
region = \"eu\"
";

    fn texts(warnings: &[Warning]) -> Vec<String> {
        warnings.iter().map(ToString::to_string).collect()
    }

    #[tokio::test]
    async fn a_file_comes_into_force_and_a_wrong_one_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let stop = CancellationToken::new();
        let (audit, (commands, requests)) = (Audit::default(), Commands::channel());
        let changes = Changes::from(commands.clone());
        let ((_health, health), (_changes, network)) =
            (bounded(1, &QueueCounters::default()), bounded(1, &QueueCounters::default()));
        let path = directory.path().join("web.toml");
        let settings = Settings {
            state_directory: directory.path().into(),
            followed: FollowedFile::new(Some(path.clone())),
            ..Settings::default()
        };
        let store = Store::open(directory.path()).unwrap();
        let sensors = Sensors::default();
        let inbox = Inbox { sensed: Sensed { health, network }, requests };
        let packets = FakePacketPath::default();
        let paths = (packets.clone(), packets.clone(), packets);
        let loops = Loops::new(settings, store, paths, sensors, inbox);
        let heartbeats = Heartbeats::every(std::time::Duration::from_secs(1));
        let state = packet_path::spawn(loops, &heartbeats, &stop);

        let missing = apply(&path, false, &changes, &audit).await.unwrap_err();
        assert_eq!(missing.to_string(), "cannot be read: No such file or directory");

        fs::write(&path, GOOD).unwrap();
        assert_eq!(apply(&path, false, &changes, &audit).await.unwrap().generation, 1);
        let again = apply(&path, false, &changes, &audit).await.unwrap();
        assert_eq!((again.generation, again.changes.len()), (1, 0));

        let warnings = async |text: &str| {
            let apply = Apply { configuration: configuration(text).unwrap(), ..Apply::default() };
            texts(&commands.apply(apply, None).await.unwrap().unwrap().warnings)
        };
        let others = GOOD.replace("31", "37");
        let taken_back = format!(
            "the daemon reads {} at its next start or reload, which reverts this change: change the file too",
            path.display()
        );
        assert_eq!(warnings(&others).await, [taken_back]);
        fs::write(&path, GOOD.replace("31", "41")).unwrap();
        assert_eq!(
            texts(&apply(&path, false, &changes, &audit).await.unwrap().warnings),
            [""; 0],
            "it is the file's own"
        );
        fs::write(&path, GOOD).unwrap();
        assert_eq!(warnings(GOOD).await, [""; 0], "the file says it already");
        assert_eq!(commands.export().await.unwrap().generation, 4);

        // The file leaves the slots open: the pool keeps its number, which another call may change.
        let open = GOOD.replace("slots = 31\n", "");
        fs::write(&path, &open).unwrap();
        let kept = apply(&path, false, &changes, &audit).await.unwrap();
        assert_eq!((kept.generation, kept.changes.len()), (4, 0));
        assert_eq!(warnings(&GOOD.replace("31", "37")).await, [""; 0], "the file keeps that too");
        assert_eq!(warnings(GOOD).await, [""; 0]);
        fs::write(&path, format!("balancers = 2\nhash_key = \"{:032}\"\n{open}", 7)).unwrap();
        let refused = apply(&path, false, &changes, &audit).await.unwrap_err().to_string();
        let expected = "pools[0] \"web\": slots: must be a number, the same on all 2 balancers; set slots = 31 in pool web, ";
        assert!(refused.starts_with(expected), "{refused}");
        // More backends than slots: the line of the pool, as with each other mistake in a file.
        let backends: String = (2..33)
            .map(|n| format!("[[pool.backend]]\naddress = \"10.0.0.{n}\"\nregion = \"eu\"\n"))
            .collect();
        fs::write(&path, open + &backends).unwrap();
        let refused = apply(&path, false, &changes, &audit).await.unwrap_err().to_string();
        let expected =
            "line 3, column 1: pools[0] \"web\": slots: 31 must be more than the 32 backends";
        assert!(refused.starts_with(expected), "{refused}");
        assert_eq!(commands.export().await.unwrap().generation, 6);

        for (text, cause) in [
            ("[[region]\n", "line 1, column 10: "),
            ("\nregions = 1\n", "line 2, column 1: unknown field `regions`"),
            (
                &GOOD.replace("\"eu\"\n[[pool]]", "\"us\"\n[[pool]]"),
                "line 8, column 1: pools[0] \"web\": backends[0] \"10.0.0.1\": region: ",
            ),
        ] {
            fs::write(&path, text).unwrap();
            let error = apply(&path, false, &changes, &audit).await.unwrap_err().to_string();
            assert!(error.starts_with(cause), "{error}");
            assert_eq!(commands.export().await.unwrap().generation, 6);
        }
        stop.cancel();
        state.await.unwrap();
        assert!(matches!(apply(&path, false, &changes, &audit).await, Err(FileError::Invalid(_))));
        fs::write(&path, GOOD).unwrap();
        assert!(matches!(apply(&path, false, &changes, &audit).await, Err(FileError::Stopping(_))));
    }
}
