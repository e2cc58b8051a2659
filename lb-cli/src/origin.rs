//! Where answers about the packet path come from: the daemon that the command line names, or the maps
//! pinned on this host.

use std::sync::Once;

use crate::{
    arguments::Options,
    client::{DaemonClient, block_on},
    failure::{Exit, Failure},
    output::print_stderr,
};

/// Asks the daemon that the command line names; without one, reads the pinned maps.
///
/// A server that does not answer is a failure: the maps of this host belong to another balancer. A socket
/// without a state directory is asked because its daemon knows the names; if it does not answer, the maps
/// are read.
///
/// # Errors
/// Those of `ask` and `read`.
pub(crate) fn ask_or_read<T>(
    options: &Options,
    ask: impl AsyncFnOnce(&mut DaemonClient) -> Result<T, Failure>,
    read: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let has_server = options.server.is_some();
    if !has_server && (options.socket.is_none() || options.state_dir.is_some()) {
        return read();
    }
    match block_on(async { ask(&mut DaemonClient::connect(options).await?).await }) {
        Err(failure)
            if !has_server && matches!(failure.exit, Exit::Unavailable | Exit::Permission) =>
        {
            // Commands that ask repeatedly warn once.
            static WARNED: Once = Once::new();
            WARNED.call_once(|| {
                print_stderr(&format!(
                    "warning: {}; reading the pinned maps instead",
                    failure.message
                ));
            });
            read()
        }
        answer => answer,
    }
}

/// Refuses `--server` for a command that works on this host only.
///
/// # Errors
/// The command line or the environment names a server.
pub(crate) fn refuse_server(options: &Options, command: &str) -> Result<(), Failure> {
    match &options.server {
        None => Ok(()),
        Some(server) => Err(Failure::new(
            Exit::Usage,
            format!("{command}: works on this host only, not on the server {server:?}"),
        )
        .hint("run it on that host, without --server, SPILLWAY_SERVER or a context")),
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, path::PathBuf};

    use clap::Parser as _;

    use super::*;

    fn options(more: &[&str]) -> Options {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            options: Options,
        }
        let arguments = ["spillway"].iter().chain(more);
        Options {
            state_dir: None,
            socket: None,
            server: None,
            ..Line::parse_from(arguments).options
        }
    }

    /// The answer, and whether the pins were read.
    fn ask(options: &Options) -> (Result<&'static str, Failure>, bool) {
        let read = Cell::new(false);
        let answer = ask_or_read(
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
        assert_eq!(ask(&plain), (Ok("pins"), true));
        let socket = Options { socket: none(), ..options(&[]) };
        assert_eq!(ask(&socket), (Ok("pins"), true));
        let named =
            Options { socket: none(), state_dir: Some("/var/lib/x".into()), ..options(&[]) };
        assert_eq!(ask(&named), (Ok("pins"), true));
        let server = Options { server: Some("nowhere".into()), ..named };
        let (answer, read) = ask(&server);
        let failure = answer.unwrap_err();
        assert_eq!((failure.exit, read), (Exit::Usage, false));
        assert!(failure.message.starts_with("--server 'nowhere': "), "{failure}");
    }

    #[test]
    fn a_command_for_this_host_refuses_a_server_in_one_sentence() {
        refuse_server(&options(&[]), "detach").unwrap();
        let server = Options { server: Some("https://lb1:7443".into()), ..options(&[]) };
        assert_eq!(
            refuse_server(&server, "detach").unwrap_err().to_string(),
            "error: detach: works on this host only, not on the server \"https://lb1:7443\"\n\
             hint: run it on that host, without --server, SPILLWAY_SERVER or a context"
        );
    }
}
