//! What backends that mean no good cost in memory: a thousand of each kind at once, the prober in a
//! process of its own whose peak the kernel says.

#![allow(clippy::unwrap_used, clippy::expect_used)] // helpers of a test may be blunt too

mod backends;
mod kinds;
mod prober;

use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
};

use libtest_mimic::{Arguments, Failed, Trial};

use kinds::Kind;

/// How many there are at once.
const BACKENDS: u32 = 1000;

/// The argument that makes this program the prober.
const PROBER: &str = "be-the-prober";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(PROBER) {
        let [name, port] = [arguments.next().unwrap(), arguments.next().unwrap()];
        prober::run(Kind::named(&name), port.parse().unwrap());
        return ExitCode::SUCCESS;
    }
    let mut arguments = Arguments::from_args();
    // Those that hold their connections are waited for; others take all of the machine for a moment.
    arguments.test_threads = Some(3);
    let decent: Arc<Mutex<BTreeMap<_, _>>> = Arc::default();
    let trials = kinds::all().into_iter().map(|kind| {
        let (name, decent) = (kind.name.replace(' ', "_"), decent.clone());
        Trial::test(format!("a_thousand_of_{name}_cost_bounded_memory"), move || {
            let decent = {
                let mut known = decent.lock().unwrap_or_else(PoisonError::into_inner);
                match known.get(&kind.speaks) {
                    Some(decent) => *decent,
                    None => *known.entry(kind.speaks).or_insert(backends::checked(&kind.decent())?),
                }
            };
            cost(&kind, decent).map_err(Failed::from)
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Lets a thousand of a kind be checked; a thousand decent ones of its protocol took `decent` KiB.
fn cost(kind: &Kind, decent: u64) -> Result<(), String> {
    let hostile = backends::checked(kind)?;
    let more = hostile.saturating_sub(decent) * 1024 / u64::from(BACKENDS);
    let most = kind.most();
    let (name, decent, hostile) = (kind.name, decent / 1024, hostile / 1024);
    println!(
        "  measured: {name}: {decent} MiB decent, {hostile} MiB hostile, {more} bytes each more"
    );
    match more <= most {
        true => Ok(()),
        false => Err(format!("{more} bytes each beyond the decent; at most {most} are allowed")),
    }
}
