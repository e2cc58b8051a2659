//! `spillway context`: names for daemons, so that a command line does not have to repeat where they are.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;

use crate::{
    arguments::Options,
    contexts::{Context, Contexts},
    failure::{Exit, Failure},
    output::{Grid, Report, print},
};

#[derive(Debug, Subcommand)]
pub(crate) enum ContextCommand {
    /// List the contexts; `*` marks the one in use
    List,
    /// Create or replace a context from --server, --tls-ca, --tls-cert and --tls-key, or from --socket
    Set(Name),
    /// Use a context for all commands that name none
    Use(Name),
    /// Use no context
    Clear,
    /// Delete a context
    Delete(Name),
}

#[derive(clap::Args, Debug)]
pub(crate) struct Name {
    /// Name of the context
    name: String,
}

#[derive(Serialize)]
struct Listed {
    contexts: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    name: String,
    current: bool,
    #[serde(flatten)]
    context: Context,
}

impl ContextCommand {
    /// # Errors
    /// There is no such context, its values are wrong, or the file of contexts cannot be used.
    pub(crate) fn run(self, options: &Options) -> Result<(), Failure> {
        let mut contexts = Contexts::read()?;
        match self {
            Self::List => {
                let Contexts { current, by_name } = contexts;
                let row = |(name, context): (String, Context)| Row {
                    current: current.as_ref() == Some(&name),
                    name,
                    context,
                };
                let contexts = by_name.into_iter().map(row).collect();
                return print(&Listed { contexts }, options.output);
            }
            Self::Set(Name { name }) => {
                let context = context_of(&name, options)?;
                contexts.by_name.insert(name, context);
            }
            Self::Use(Name { name }) => {
                contexts.require(&name)?;
                contexts.current = Some(name);
            }
            Self::Clear => contexts.current = None,
            Self::Delete(Name { name }) => {
                contexts.require(&name)?;
                contexts.by_name.remove(&name);
                contexts.current.take_if(|current| *current == name);
            }
        }
        contexts.write()
    }
}

/// What the options say, with absolute paths: a context is used from any directory.
fn context_of(name: &str, options: &Options) -> Result<Context, Failure> {
    let Options { server, socket, tls_ca, tls_cert, tls_key, .. } = options;
    let usage = |cause: &str, hint: &str| {
        Failure::new(Exit::Usage, format!("context \"{name}\": {cause}")).hint(hint)
    };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(usage("is not a name", "use letters, digits, '-', '_' and '.'"));
    }
    match (server, socket) {
        (None, None) => {
            let hint = "give --server with --tls-ca, --tls-cert and --tls-key, or --socket";
            return Err(usage("has neither a server nor a socket", hint));
        }
        (Some(_), Some(_)) => {
            return Err(usage("has a server and a socket", "give one of --server and --socket"));
        }
        (Some(server), None) if !server.starts_with("https://") => {
            let cause = format!("'{server}' does not begin with https://");
            return Err(usage(&cause, "write --server https://HOST:PORT"));
        }
        _ => {}
    }
    let absolute = |path: &Option<PathBuf>| match path {
        None => Ok(None),
        Some(path) => {
            std::path::absolute(path).map(Some).map_err(|error| Failure::path(path, &error))
        }
    };
    for file in [tls_ca, tls_cert, tls_key].into_iter().flatten() {
        require_file(file)?;
    }
    Ok(Context {
        server: server.clone(),
        tls_ca: absolute(tls_ca)?,
        tls_cert: absolute(tls_cert)?,
        tls_key: absolute(tls_key)?,
        socket: absolute(socket)?,
    })
}

fn require_file(file: &Path) -> Result<(), Failure> {
    match std::fs::metadata(file) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::path(file, &error).hint("name an existing file")),
    }
}

impl Report for Listed {
    fn table(&self) -> String {
        if self.contexts.is_empty() {
            return "no contexts\n".into();
        }
        let mut grid = Grid::new(["", "NAME", "DAEMON"]);
        for Row { name, current, context } in &self.contexts {
            let mark = if *current { "*" } else { "" };
            let socket = || context.socket.as_ref().map(|socket| socket.display().to_string());
            let daemon = context.server.clone().or_else(socket).unwrap_or_default();
            grid.row([mark.to_owned(), name.clone(), daemon]);
        }
        grid.lines()
    }
}
