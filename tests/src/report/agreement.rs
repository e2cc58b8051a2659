//! Whether clients, backends and balancer tell the same story.
//!
//! Every connection that the client's kernel opened left as one SYN (or more, where it had to be
//! repeated); the balancer counted each SYN under the backend it sent it to; the backend wrote a line
//! for each connection that it answered. So there is one sum that must hold exactly, whatever failed.

use serde::Serialize;

/// What the clients say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClientCount {
    /// Requests with an answer, by the load tool and the single clients.
    pub answered: u64,
    /// Requests without one.
    pub failed: u64,
    /// Connections that the client's kernel opened.
    pub connections_opened: u64,
    /// SYNs that it had to send again.
    pub syns_repeated: u64,
}

/// What is said of a backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackendCount {
    /// Its name.
    pub name: String,
    /// Its region.
    pub region: String,
    /// Requests in its own log.
    pub logged: u64,
    /// Connections by the balancer's counter.
    pub balancer_connections: u64,
}

/// A story that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Agreement {
    /// SYNs by the client's kernel, equal to connections by the balancer's counters.
    pub syns: u64,
    /// Requests in the backends' logs, equal to answers by the clients.
    pub answers: u64,
}

/// Two numbers that should be equal and are not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{left_name}: {left}, but {right_name}: {right}")]
pub struct Disagreement {
    left_name: String,
    left: u64,
    right_name: String,
    right: u64,
}

impl Agreement {
    /// Compares all.
    ///
    /// # Errors
    /// The first two numbers that contradict each other.
    pub fn check(client: &ClientCount, backends: &[BackendCount]) -> Result<Self, Disagreement> {
        let logged = backends.iter().map(|backend| backend.logged).sum();
        let counted = backends.iter().map(|backend| backend.balancer_connections).sum();
        let syns = client.connections_opened + client.syns_repeated;
        equal("answers by the clients", client.answered, "requests in the logs", logged)?;
        equal(
            "requests of the clients",
            client.answered + client.failed,
            "connections by the client's kernel",
            client.connections_opened,
        )?;
        equal("SYNs by the client's kernel", syns, "connections by the balancer", counted)?;
        for backend in backends {
            // Where a request failed the balancer has counted more; it never counts less.
            let (name, logged) = (&backend.name, backend.logged);
            let unanswered = client.failed + client.syns_repeated;
            if !(logged..=logged + unanswered).contains(&backend.balancer_connections) {
                return Err(Disagreement {
                    left_name: format!("requests in the log of {name}"),
                    left: logged,
                    right_name: format!("connections to {name} by the balancer"),
                    right: backend.balancer_connections,
                });
            }
        }
        Ok(Self { syns, answers: client.answered })
    }
}

fn equal(left_name: &str, left: u64, right_name: &str, right: u64) -> Result<(), Disagreement> {
    if left == right {
        return Ok(());
    }
    Err(Disagreement { left_name: left_name.into(), left, right_name: right_name.into(), right })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(name: &str, logged: u64, balancer_connections: u64) -> BackendCount {
        BackendCount { name: name.into(), region: "eu".into(), logged, balancer_connections }
    }

    const CLIENT: ClientCount =
        ClientCount { answered: 100, failed: 3, connections_opened: 103, syns_repeated: 1 };

    fn story(client: ClientCount, backends: &[BackendCount]) -> Result<Agreement, String> {
        Agreement::check(&client, backends).map_err(|disagreement| disagreement.to_string())
    }

    #[test]
    fn failures_are_connections_without_a_line_in_a_log() {
        let backends = [backend("a", 60, 62), backend("b", 40, 42)];
        assert_eq!(story(CLIENT, &backends), Ok(Agreement { syns: 104, answers: 100 }));
    }

    #[test]
    fn each_number_is_held_against_another() {
        let lost = [backend("a", 59, 62), backend("b", 40, 42)];
        let error = "answers by the clients: 100, but requests in the logs: 99";
        assert_eq!(story(CLIENT, &lost), Err(error.into()));

        let client = ClientCount { connections_opened: 102, ..CLIENT };
        let error = "requests of the clients: 103, but connections by the client's kernel: 102";
        assert_eq!(story(client, &lost_and_found()), Err(error.into()));

        let missed = [backend("a", 60, 61), backend("b", 40, 42)];
        let error = "SYNs by the client's kernel: 104, but connections by the balancer: 103";
        assert_eq!(story(CLIENT, &missed), Err(error.into()));

        let swapped = [backend("a", 60, 44), backend("b", 40, 60)];
        let error = "requests in the log of a: 60, but connections to a by the balancer: 44";
        assert_eq!(story(CLIENT, &swapped), Err(error.into()));
    }

    fn lost_and_found() -> [BackendCount; 2] {
        [backend("a", 60, 62), backend("b", 40, 42)]
    }
}
