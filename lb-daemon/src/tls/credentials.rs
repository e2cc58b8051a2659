use std::{fmt, sync::Arc, time::Duration};

use tokio::{sync::watch, time::sleep};
use tokio_rustls::rustls::ServerConfig;

use super::{TlsError, TlsFiles, files::Contents};
use crate::access::Clients;
use lb_base::{conditions::Conditions, error_chain};

/// Time between two looks at the files.
const LOOK: Duration = Duration::from_secs(2);

/// What certificates are called among the conditions.
const TLS: &str = "TLS";

/// What connections are accepted by now.
#[derive(Clone)]
pub struct InForce {
    pub(super) config: Arc<ServerConfig>,
    pub(super) clients: Arc<Clients>,
    /// Another one whenever somebody may have lost a right: connections of an earlier one end.
    pub(super) epoch: u64,
    contents: Contents,
}

/// Certificates and clients, which change while the daemon runs. Clones are of the same ones.
#[derive(Clone, Debug)]
pub struct Credentials {
    files: TlsFiles,
    in_force: watch::Sender<InForce>,
    conditions: Conditions,
}

impl fmt::Debug for InForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without keys.
        f.debug_struct("InForce").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn open(
        files: TlsFiles,
        clients: Clients,
        conditions: Conditions,
    ) -> Result<Self, TlsError> {
        let contents = files.read()?;
        let config = files.server(&contents)?;
        let in_force = InForce { config, clients: Arc::new(clients), epoch: 0, contents };
        Ok(Self { files, in_force: watch::Sender::new(in_force), conditions })
    }

    pub(super) fn watch(&self) -> watch::Receiver<InForce> {
        self.in_force.subscribe()
    }

    /// Reads the files again. Where they cannot be used what is in force stays, and that is a condition.
    ///
    /// # Errors
    /// Why, `TLS: cause`.
    pub fn refresh(&self) -> Result<(), String> {
        match self.again() {
            Ok(changed) => {
                if changed {
                    tracing::info!("certificates were read anew");
                }
                self.conditions.end(TLS);
                Ok(())
            }
            Err(error) => {
                let cause = error_chain::message(&error);
                self.conditions.begin(TLS, &cause);
                Err(format!("{TLS}: {cause}"))
            }
        }
    }

    fn again(&self) -> Result<bool, TlsError> {
        let contents = self.files.read()?;
        if contents == self.in_force.borrow().contents {
            return Ok(false);
        }
        let config = self.files.server(&contents)?;
        self.in_force.send_modify(|now| {
            now.epoch += u64::from(now.contents.authorities != contents.authorities);
            (now.config, now.contents) = (config, contents);
        });
        Ok(true)
    }

    /// Lets others in, and those that are in only as they may now.
    pub fn set_clients(&self, clients: Clients) {
        self.in_force.send_if_modified(|now| {
            let differ = *now.clients != clients;
            if differ {
                (now.clients, now.epoch) = (Arc::new(clients), now.epoch + 1);
            }
            differ
        });
    }

    /// Looks at the files every two seconds, for ever.
    pub async fn follow(&self) {
        loop {
            sleep(LOOK).await;
            let files = self.clone();
            // Files may be on a slow disk.
            // What is wrong with them is a condition.
            let _ = tokio::task::spawn_blocking(move || files.refresh()).await;
        }
    }
}
