//! Debian 12's own kernel, booted in QEMU: both objects load there, every row of the packet table
//! passes, and the daemon runs there: with many tables, and while the clock is set, which no machine but a
//! guest allows. The guest runs this very program as its whole system; the host reads its console.

mod clock;
mod service;
mod tables;

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, LazyLock},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use lb_tests::{
    daemon::Binaries,
    machine::{self, Console},
    packets::table,
    sandbox::{self, Sandbox},
};
use libtest_mimic::{Arguments, Failed, Trial};

/// The series, and who names the folder of its unpacked package.
const SERIES: &str = "6.1";
const VARIABLE: &str = "SPILLWAY_KERNEL_6_1";

type Boot = LazyLock<Result<Console, String>, Box<dyn FnOnce() -> Result<Console, String> + Send>>;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    if std::env::var_os(machine::GUEST).is_some() {
        return libtest_mimic::run(&arguments, guest_trials()).exit_code();
    }
    let sandbox = sandbox::enter();
    let guest: Arc<Boot> = Arc::new(LazyLock::new(Box::new(move || {
        boot(&sandbox).map_err(|error| format!("{error:#}"))
    })));
    let mut trials = vec![trial(format!("{SERIES}: boots"), &guest, |console| {
        let release = console.line("guest: kernel ").context("the guest names no kernel")?;
        ensure!(release.starts_with(&format!("{SERIES}.")), "the kernel is {release}");
        Ok(())
    })];
    for row in guest_trials() {
        let name = row.name().to_owned();
        trials.push(trial(format!("{SERIES}: {name}"), &guest, move |console| {
            let outcome = console.outcome(&name).context("not run by the guest")?;
            ensure!(outcome == "ok", "{}", explain(console.text(), &name));
            Ok(())
        }));
    }
    let rows = trials.len() - 1;
    trials.push(trial(format!("{SERIES}: passes all rows"), &guest, move |console| {
        let tally = console.line("test result: ").context("the guest did not finish")?;
        let all = format!("ok. {rows} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out;");
        ensure!(tally.starts_with(&all), "{tally}, expected {all}");
        let exit = console.line("guest: exit ");
        ensure!(exit == Some("0"), "exit status {exit:?}");
        Ok(())
    }));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// What the guest runs.
fn guest_trials() -> Vec<Trial> {
    let mut trials = table::trials();
    trials.extend([clock::trial(), tables::trial()]);
    trials
}

/// A trial that looks at the console of the one guest.
fn trial(
    name: String,
    guest: &Arc<Boot>,
    look: impl FnOnce(&Console) -> Result<()> + Send + 'static,
) -> Trial {
    let guest = Arc::clone(guest);
    Trial::test(name, move || {
        let console = LazyLock::force(&guest).as_ref().map_err(|error| anyhow!("{error}"));
        console.and_then(look).map_err(|error| Failed::from(format!("{error:#}")))
    })
}

fn boot(sandbox: &Sandbox) -> Result<Console> {
    let kernel = std::env::var_os(VARIABLE)
        .with_context(|| format!("{VARIABLE} is not set; `cargo xtask test` sets it"))?;
    let scratch = sandbox.directory("kernel")?;
    let program = std::env::current_exe().context("find our own program")?;
    let Binaries { spillwayd, spillway } = Binaries::find()?;
    let initramfs = machine::initramfs(&program, &[&spillwayd, &spillway], &scratch)?;
    machine::boot(&PathBuf::from(kernel), &initramfs, &scratch)
}

/// What the guest said of a row that failed there.
fn explain(console: &str, name: &str) -> String {
    let head = format!("---- {name} ----");
    let lines = console.lines().map(str::trim_end).skip_while(|line| *line != head).skip(1);
    lines
        .take_while(|line| !line.starts_with("---- ") && *line != "failures:")
        .fold("failed in the guest:".to_owned(), |text, line| text + "\n" + line)
}
