//! One file for each verb: what it asks, the answer as one value, and the answer's table.

pub(crate) mod apply;
mod backend;
pub(crate) mod capture;
mod change;
pub(crate) mod detach;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod edit;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod history;
pub(crate) mod manual;
pub(crate) mod objects;
mod outcome;
pub(crate) mod regions;
pub(crate) mod reload;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod table;
pub(crate) mod top;
pub(crate) mod verdicts;
pub(crate) mod watch;
