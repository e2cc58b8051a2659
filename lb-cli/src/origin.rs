//! Where an answer about the packet path comes from: the daemon that the command line names, or the maps
//! that are pinned on this host.

use std::sync::Once;

use crate::{
    arguments::Options,
    daemon::{Daemon, converse},
    exit::Exit,
    failure::Failure,
    output::tell,
};

/// Asks the daemon that the command line names, or reads the pinned maps where it names none.
///
/// A server answers or the verb fails: this host's maps would be another balancer's. A socket without a
/// state directory is asked because its daemon knows the names; where it does not answer, the maps do.
///
/// # Errors
/// Those of `ask` and `read`.
pub(crate) fn answer<T>(
    options: &Options,
    ask: impl AsyncFnOnce(&mut Daemon) -> Result<T, Failure>,
    read: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let has_server = options.server.is_some();
    if !has_server && (options.socket.is_none() || options.state_dir.is_some()) {
        return read();
    }
    match converse(async { ask(&mut Daemon::open(options).await?).await }) {
        Err(failure)
            if !has_server && matches!(failure.exit, Exit::Unavailable | Exit::Permission) =>
        {
            // A verb that looks again and again says it once.
            static SAID: Once = Once::new();
            SAID.call_once(|| {
                tell(&format!("warning: {}; the pinned maps are read instead", failure.message));
            });
            read()
        }
        answer => answer,
    }
}

/// Refuses a server for what works on this host alone; `verb` and `why` make the sentence.
///
/// # Errors
/// The command line or the environment names a server.
pub(crate) fn this_host(options: &Options, verb: &str, why: &str) -> Result<(), Failure> {
    match &options.server {
        None => Ok(()),
        Some(server) => Err(Failure::new(
            Exit::Usage,
            format!("{verb}: {why}, and cannot be asked of the server {server:?}"),
        )
        .hint("run it on that host itself, without --server and with SPILLWAY_SERVER unset")),
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, path::PathBuf};

    use clap::Parser as _;

    use super::*;
    use crate::arguments::Arguments;

    fn options(more: &[&str]) -> Options {
        let arguments = ["spillway", "stats"].iter().chain(more);
        Options {
            state_dir: None,
            socket: None,
            server: None,
            ..Arguments::parse_from(arguments).options
        }
    }

    /// Which of the two answered, with what the daemon failed by.
    fn answered(options: &Options) -> (Result<&'static str, Failure>, bool) {
        let read = Cell::new(false);
        let answer = answer(
            options,
            async |_| Ok("daemon"),
            || {
                read.set(true);
                Ok("pins")
            },
        );
        (answer, read.get())
    }

    #[test]
    fn only_a_server_that_does_not_answer_fails() {
        let none = || Some(PathBuf::from("/nonexistent/spillwayd.sock"));
        let plain = options(&[]);
        assert_eq!(answered(&plain), (Ok("pins"), true));
        let socket = Options { socket: none(), ..options(&[]) };
        assert_eq!(answered(&socket), (Ok("pins"), true));
        let named =
            Options { socket: none(), state_dir: Some("/var/lib/x".into()), ..options(&[]) };
        assert_eq!(answered(&named), (Ok("pins"), true));
        let server = Options { server: Some("nowhere".into()), ..named };
        let (answer, read) = answered(&server);
        let failure = answer.unwrap_err();
        assert_eq!((failure.exit, read), (Exit::Usage, false));
        assert!(failure.message.starts_with("--server 'nowhere': "), "{failure}");
    }

    #[test]
    fn what_works_on_this_host_refuses_a_server_in_one_sentence() {
        this_host(&options(&[]), "detach", "works on this host").unwrap();
        let server = Options { server: Some("https://lb1:7443".into()), ..options(&[]) };
        assert_eq!(
            this_host(&server, "detach", "takes away what is pinned on this host")
                .unwrap_err()
                .to_string(),
            "error: detach: takes away what is pinned on this host, and cannot be asked of the server \
             \"https://lb1:7443\"\n\
             hint: run it on that host itself, without --server and with SPILLWAY_SERVER unset"
        );
    }
}
