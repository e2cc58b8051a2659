//! The ledger in the state directory: what this balancer owns outlives a crash of the host.

use std::{
    io,
    path::{Path, PathBuf},
};

use lb_base::{
    error_chain,
    own_file::{self, Outlives, OwnFileError},
};
use lb_model::Name;
use lb_sharing::{Ledger, Parts};
use serde::{Deserialize, Serialize};

/// Name of the file in the state directory.
pub(crate) const LEDGER_FILE: &str = "ledger.json";

/// Version of the file's format.
const FORMAT: u64 = 1;
/// Most bytes that are read: several times what as many groups as fit in a message take.
const MAX_SIZE: u64 = 64 << 20;

/// The file of one balancer of one fleet.
#[derive(Clone, Debug)]
pub(crate) struct LedgerFile {
    path: PathBuf,
    fleet: Name,
    balancer: Name,
    /// A test that holds it has a disk that does not answer.
    #[cfg(test)]
    pub(super) disk: std::sync::Arc<std::sync::Mutex<()>>,
}

/// What is in the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content<L> {
    format: u64,
    fleet: Name,
    balancer: Name,
    ledger: L,
}

/// What can be told of a file of any format.
#[derive(Deserialize)]
struct AnyContent {
    format: u64,
}

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LedgerFileError {
    #[error(transparent)]
    File(#[from] OwnFileError),
    #[error("is not JSON of a ledger: {0}")]
    Damaged(#[from] serde_json::Error),
    #[error("has format {0}, and this program knows format {FORMAT}")]
    Format(u64),
    #[error("belongs to balancer {balancer} of fleet {fleet}")]
    Foreign { fleet: Name, balancer: Name },
    #[error("owns more than the whole of pool {pool} in region {region}")]
    TooMuch { pool: Name, region: Name },
    #[error("the transfers to {0} are not numbered in order")]
    Numbers(Name),
}

/// A ledger whose incarnation was raised and stored: what [`lb_sharing::Sharing::start`] begins with.
#[derive(Debug)]
pub(crate) struct StartedLedger {
    pub(crate) ledger: Ledger,
    /// Why the stored one was not used, or counts as an old copy. The balancer then owns nothing until the others have
    /// forgotten it.
    pub(crate) lost: Option<String>,
}

impl LedgerFile {
    pub(crate) fn new(state_directory: &Path, fleet: Name, balancer: Name) -> Self {
        Self {
            path: state_directory.join(LEDGER_FILE),
            fleet,
            balancer,
            #[cfg(test)]
            disk: std::sync::Arc::default(),
        }
    }

    /// Reads it. Waits for the disk.
    ///
    /// # Errors
    /// [`LedgerFileError`]: nothing of it may be used.
    pub(crate) fn read(&self) -> Result<Ledger, LedgerFileError> {
        let bytes = own_file::read(&self.path, MAX_SIZE)?;
        let AnyContent { format } = serde_json::from_slice(&bytes)?;
        if format != FORMAT {
            return Err(LedgerFileError::Format(format));
        }
        let Content { fleet, balancer, ledger, .. } = serde_json::from_slice(&bytes)?;
        if (&fleet, &balancer) != (&self.fleet, &self.balancer) {
            return Err(LedgerFileError::Foreign { fleet, balancer });
        }
        check(&ledger)?;
        Ok(ledger)
    }

    /// Replaces it. Waits for the disk, and returns once a crash of the host does not lose it.
    ///
    /// # Errors
    /// The file may have either ledger.
    pub(crate) fn write(&self, ledger: &Ledger) -> io::Result<()> {
        #[cfg(test)]
        let _answers = self.disk.lock();
        let (fleet, balancer) = (self.fleet.clone(), self.balancer.clone());
        let content = serde_json::to_vec(&Content { format: FORMAT, fleet, balancer, ledger })?;
        own_file::replace(&self.path, &content, Outlives::Host)
    }

    /// Begins another start of this balancer, whose last one that the fleet knows has the incarnation `known` (0: none). A
    /// file that is not there or cannot be used counts as an old copy, as does one of an earlier start than that.
    /// [`Self::write`] has to have been called before, with [`Ledger::new_member`], when the balancer joined. Waits for the
    /// disk.
    ///
    /// # Errors
    /// The raised incarnation cannot be stored: the balancer must not begin.
    pub(crate) fn begin(&self, known: u64) -> io::Result<StartedLedger> {
        let (mut ledger, mut lost) = match self.read() {
            Ok(ledger) => (ledger, None),
            Err(error) => {
                let cause = format!("{}: {}", self.path.display(), error_chain::message(&error));
                (Ledger::default(), Some(cause))
            }
        };
        if lost.is_none() && ledger.incarnation < known {
            lost = Some(format!(
                "{}: is of start {} of this balancer, and the fleet knows start {known}",
                self.path.display(),
                ledger.incarnation
            ));
        }
        ledger.incarnation = ledger.incarnation.max(known).saturating_add(1);
        ledger.is_old_copy |= lost.is_some();
        self.write(&ledger)?;
        Ok(StartedLedger { ledger, lost })
    }
}

/// Checks what the format does not: no ledger of ours is otherwise.
fn check(ledger: &Ledger) -> Result<(), LedgerFileError> {
    let transfers = || ledger.pairs.values().flat_map(|pair| &pair.unacknowledged);
    let given = transfers().map(|transfer| (&transfer.group, &transfer.parts));
    if let Some((group, _)) = ledger.owned.iter().chain(given).find(|(_, p)| **p > Parts::WHOLE) {
        let (pool, region) = (group.pool.clone(), group.region.clone());
        return Err(LedgerFileError::TooMuch { pool, region });
    }
    for (name, pair) in &ledger.pairs {
        // The last one has the number of the last that was sent.
        let count = pair.unacknowledged.len() as u64;
        let Some(before) = pair.sent.checked_sub(count) else {
            return Err(LedgerFileError::Numbers(name.clone()));
        };
        let mut numbers = pair.unacknowledged.iter().zip(1..);
        if !numbers.all(|(transfer, place)| transfer.number == before + place) {
            return Err(LedgerFileError::Numbers(name.clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use lb_sharing::{GroupKey, Transfer};

    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn file(directory: &Path) -> LedgerFile {
        LedgerFile::new(directory, name("prod"), name("lb-1"))
    }

    fn ledger() -> Ledger {
        let group = GroupKey { pool: name("web"), region: name("eu"), birth: 3 };
        let mut ledger = Ledger { incarnation: 4, adopted: 3, ..Ledger::default() };
        ledger.owned.insert(group.clone(), Parts(100));
        let pair = ledger.pairs.entry(name("lb-2")).or_default();
        (pair.sent, pair.applied) = (7, 2);
        pair.unacknowledged = [6, 7]
            .map(|number| Transfer { number, group: group.clone(), parts: Parts(number) })
            .into();
        ledger
    }

    #[test]
    fn a_start_raises_the_incarnation_and_keeps_the_rest() {
        let directory = tempfile::tempdir().unwrap();
        let file = file(directory.path());
        file.write(&ledger()).unwrap();
        let started = file.begin(4).unwrap();
        assert_eq!(started.lost, None);
        assert_eq!(started.ledger, Ledger { incarnation: 5, ..ledger() });
        assert_eq!(file.read().unwrap(), started.ledger, "it is stored");
    }

    #[test]
    fn one_that_is_lost_or_of_an_earlier_start_counts_as_an_old_copy() {
        let directory = tempfile::tempdir().unwrap();
        let file = file(directory.path());
        let path = directory.path().join(LEDGER_FILE);
        let started = file.begin(9).unwrap();
        assert_eq!((started.ledger.incarnation, started.ledger.is_old_copy), (10, true));
        let sentence = format!("{}: No such file or directory", path.display());
        assert_eq!(started.lost, Some(sentence));
        file.write(&ledger()).unwrap();
        let started = file.begin(5).unwrap();
        assert_eq!((started.ledger.incarnation, started.ledger.is_old_copy), (6, true));
        let sentence = format!(
            "{}: is of start 4 of this balancer, and the fleet knows start 5",
            path.display()
        );
        assert_eq!(started.lost, Some(sentence));
        assert!(file.begin(6).unwrap().ledger.is_old_copy, "it is still one");
    }

    #[test]
    fn what_cannot_be_used_has_its_sentence() {
        let directory = tempfile::tempdir().unwrap();
        let file = file(directory.path());
        let path = directory.path().join(LEDGER_FILE);
        file.write(&ledger()).unwrap();
        let good = fs::read_to_string(&path).unwrap();
        let refused = |text: &str| {
            assert_ne!(text, good);
            fs::write(&path, text).unwrap();
            let error = file.read().unwrap_err().to_string();
            let started = file.begin(0).unwrap();
            assert!(started.ledger.is_old_copy && started.ledger.owned.is_empty());
            error
        };
        assert!(refused("").starts_with("is not JSON of a ledger: EOF"));
        assert!(refused(&good[..good.len() - 3]).starts_with("is not JSON of a ledger: EOF"));
        assert!(refused(&good.replace("\"epoch\"", "\"epok\"")).contains("missing field `epoch`"));
        assert_eq!(
            refused(&good.replace("\"format\":1", "\"format\":2")),
            "has format 2, and this program knows format 1"
        );
        for (ours, theirs) in [("prod", "core"), ("lb-1", "lb-9")] {
            let [fleet, balancer] = ["prod", "lb-1"].map(|n| if n == ours { theirs } else { n });
            let sentence = format!("belongs to balancer {balancer} of fleet {fleet}");
            assert_eq!(refused(&good.replace(ours, theirs)), sentence);
        }
        assert_eq!(
            refused(&good.replace(",100]", ",4294967297]")),
            "owns more than the whole of pool web in region eu"
        );
        for (sent, other) in [("\"sent\":7", "\"sent\":8"), ("\"sent\":7", "\"sent\":1")] {
            let sentence = "the transfers to lb-2 are not numbered in order";
            assert_eq!(refused(&good.replace(sent, other)), sentence);
        }
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(file.read().is_err(), "it leads elsewhere");
    }
}
