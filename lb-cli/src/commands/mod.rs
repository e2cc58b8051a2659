//! The subcommands, one file or folder each: what a command asks, the answer as one value, and the
//! answer's table. The command line itself is defined in `main.rs`.

pub(crate) mod apply;
mod backend_figures;
mod backend_status;
pub(crate) mod capture;
mod changes;
pub(crate) mod confirm;
pub(crate) mod context;
pub(crate) mod detach;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod drops;
pub(crate) mod edit;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod fleet;
pub(crate) mod history;
pub(crate) mod objects;
pub(crate) mod overrides;
pub(crate) mod regions;
pub(crate) mod reload;
pub(crate) mod rollback;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod table;
pub(crate) mod top;
pub(crate) mod validate;
pub(crate) mod verdicts;
pub(crate) mod watch;
