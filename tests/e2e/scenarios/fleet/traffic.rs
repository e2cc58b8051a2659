//! Connections of clients while something happens to a fleet: none of them may notice.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use lb_e2e::fixture::{ECHO, FleetFixture, HTTP, Tunnel};
use lb_tests::traffic::{Requests, Stream, ensure_answered};

/// Streams through each tunnel.
const STREAMS: u64 = 2;

/// Clients that open a connection for each request.
const CLIENTS: usize = 2;

/// Time between two requests of a client.
const PAUSE: Duration = Duration::from_millis(50);

/// Requests that are waited for where traffic is to have gone on.
const SOME: u64 = 10;

/// Streams on which every byte is checked, and requests.
pub(super) struct Traffic {
    begun: Instant,
    streams: Vec<Stream>,
    requests: Requests,
}

impl Traffic {
    /// The router spreads its connections over the balancers.
    pub(super) fn start(fleet: &FleetFixture) -> Result<Self> {
        let client = &fleet.fabric.client;
        let begun = Instant::now();
        let mut streams = Vec::new();
        for seed in 0..STREAMS {
            for tunnel in Tunnel::ALL {
                streams.push(Stream::open(client, tunnel.endpoint(ECHO), seed)?);
            }
        }
        let requests = Requests::start(client, Tunnel::Ipip.endpoint(HTTP), CLIENTS, PAUSE);
        Ok(Self { begun, streams, requests })
    }

    /// Waits until everything has gone on.
    pub(super) fn goes_on(&self) -> Result<()> {
        Stream::all_go_on(&self.streams)?;
        self.requests.wait_for(SOME)
    }

    /// Ends it, after it has gone on. `without` is a backend that must not have answered requests since then.
    pub(super) fn finish(self, without: Option<(&str, Instant)>) -> Result<()> {
        self.goes_on()?;
        Stream::finish_all(self.streams)?;
        let attempts = self.requests.finish()?;
        let now = Instant::now();
        let answered = ensure_answered(&attempts, self.begun, now, &[])?;
        ensure!(answered == attempts.len(), "{answered} of {} requests", attempts.len());
        if let Some((name, since)) = without {
            ensure_answered(&attempts, since, now, &[name])?;
        }
        Ok(())
    }
}
