//! Telling everybody to stop.

use tokio::sync::watch;

/// Dropping it, or [`Stopper::stop`], stops everybody who has a [`Stop`] of it.
#[derive(Debug)]
pub struct Stopper(watch::Sender<()>);

/// Says when to stop.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<()>);

impl Stopper {
    /// Somebody who can stop others, and a stop for them.
    pub fn new() -> (Self, Stop) {
        let (sender, receiver) = watch::channel(());
        (Self(sender), Stop(receiver))
    }

    /// Stops them.
    pub fn stop(self) {
        drop(self.0);
    }
}

impl Stop {
    /// Ends when it is time to stop.
    pub async fn wait(mut self) {
        while self.0.changed().await.is_ok() {}
    }
}
