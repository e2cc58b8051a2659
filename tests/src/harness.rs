//! Runs named cases in a sandbox, one after the other, with the arguments of `cargo test`.

use std::process::ExitCode;
use std::sync::Mutex;

use libtest_mimic::{Arguments, Failed, Trial};

use crate::sandbox::Sandbox;

/// A case: `Err` or a panic fails it.
pub type Case = fn(&Sandbox) -> anyhow::Result<()>;

static NOTES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Has something that was measured printed when all cases have run.
pub fn note(text: String) {
    NOTES.lock().expect("nobody panics with it").push(text);
}

/// Runs the cases. One at a time unless `--test-threads` says otherwise: they share two hands full
/// of namespaces and measure time.
pub fn run(sandbox: &Sandbox, cases: &[(&str, Case)]) -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(1);
    let trials = cases
        .iter()
        .map(|&(name, case)| {
            let sandbox = sandbox.clone();
            Trial::test(name, move || {
                case(&sandbox).map_err(|error| Failed::from(format!("{error:#}")))
            })
        })
        .collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    for note in NOTES.lock().expect("nobody panics with it").iter() {
        println!("  measured: {note}");
    }
    conclusion.exit_code()
}
