use std::{panic, path::Path, process};

use super::Failure;
use lb_base::error_chain;
use lb_control::store::{FILE, Store};

/// Opens the store, with `any_schema` also one that holds a configuration of a newer schema. The database library under it panics on some damaged files: here that is said
/// like any other refusal.
pub(super) fn open(state_directory: &Path, any_schema: bool) -> Result<Store, Failure> {
    let file = state_directory.join(FILE);
    let former = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let cause = panic.payload_as_str().unwrap_or("its pages do not fit each other");
        let failure = Failure::new(format!("{}: is damaged: {cause}", file.display()));
        eprintln!("{}", failure.hint(DAMAGED));
        process::exit(1);
    }));
    let store = match any_schema {
        true => Store::open_any_schema(state_directory),
        false => Store::open(state_directory),
    };
    panic::set_hook(former);
    store.map_err(|error| Failure::new(error_chain::message(&error)).hint(error.hint()))
}

const DAMAGED: &str =
    "put a good copy in its place, or move it away to begin without configuration";
