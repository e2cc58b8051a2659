//! Kernels of Debian's, booted in QEMU: both objects load there, every row of the packet table passes, and the
//! daemon runs there: with many tables, while the clock is set, which no machine but a guest allows, and with
//! devices that the host's kernel may lack. The guest runs this very program as its whole system; the host reads
//! its console.

mod bond;
mod clock;
mod qinq;
mod receiver;
mod service;
mod tables;
mod tracepoints;
mod tunnels;
mod virtio;
mod vlan;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, LazyLock},
};

use anyhow::{Context as _, Result, anyhow, ensure};
use lb_e2e::{
    machine::{self, Console, Guest, Machine},
    packet_table, receiver_hooks,
};
use lb_tests::{
    daemon::Binaries,
    sample::Sample,
    sandbox::{self, Sandbox},
};
use libtest_mimic::{Arguments, Failed, Trial};

/// Names the folder of an unpacked package.
const KERNEL: &str = "SPILLWAY_KERNEL";
/// Names its series, as `6.1`.
const SERIES: &str = "SPILLWAY_KERNEL_SERIES";

/// What the guest of this program is.
const ALONE: &str = "alone";
/// Programs of the host's that nodes of a network are made with, and pinged from.
const TOOLS: [&str; 5] = ["ip", "tc", "nsenter", "ethtool", "ping"];
/// What Debian's kernels have as modules.
const MODULES: &[&str] = &[
    "veth",
    "bridge",
    "ipip",
    "sit",
    "ip6_tunnel",
    "fou",
    "8021q",
    "bonding",
    "sch_ingress",
    "cls_bpf",
];

/// Of so many trials with the daemon or the kernel's own devices a sample has one.
const DAEMONS: u64 = 8;
/// Of so many a sample has one of the two that want two guests more: every other sample has none.
const PAIRS: u64 = 4;

type Boot = LazyLock<Result<Console, String>, Box<dyn FnOnce() -> Result<Console, String> + Send>>;

/// A trial on a network of namespaces.
type Run = fn(&Sandbox) -> Result<()>;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    if let Some(run) = std::env::var(sandbox::GUEST).ok().and_then(|role| virtio::role(&role)) {
        return play(run);
    }
    let sandbox = sandbox::enter();
    if std::env::var_os(sandbox::GUEST).is_some() {
        return libtest_mimic::run(&arguments, guest_trials(&sandbox)).exit_code();
    }
    let series = std::env::var(SERIES).unwrap_or_else(|_| "kernel".to_owned());
    let rows = guest_trials(&sandbox);
    // What chooses some of the guest's trials here does so there.
    let chosen = |word: &String| rows.iter().any(|row| row.name().contains(word));
    let filter = arguments.filter.clone().filter(chosen).unwrap_or_default();
    let pairs: Vec<(&str, Run)> = vec![
        ("virtio: two guests, balanced in the driver", virtio::run),
        ("virtio: two guests, large frames", virtio::run_jumbo),
    ];
    let pairs = Sample::from_environment().pick(pairs, PAIRS).into_iter().map(|(name, run)| {
        let sandbox = sandbox.clone();
        let failed = |error| Failed::from(format!("{error:#}"));
        Trial::test(format!("{series}: {name}"), move || run(&sandbox).map_err(failed))
    });
    let pairs: Vec<_> = pairs.collect();
    let guest: Arc<Boot> = Arc::new(LazyLock::new(Box::new(move || {
        boot(&sandbox, &filter).map_err(|error| format!("{error:#}"))
    })));
    let wanted = format!("{series}.");
    let mut trials = vec![trial(format!("{series}: boots"), &guest, move |console| {
        let release = console.line("guest: kernel ").context("the guest names no kernel")?;
        ensure!(release.starts_with(&wanted), "the kernel is {release}");
        Ok(())
    })];
    for row in rows {
        let name = row.name().to_owned();
        trials.push(trial(format!("{series}: {name}"), &guest, move |console| {
            let outcome = console.outcome(&name).context("not run by the guest")?;
            ensure!(outcome == "ok", "{}", explain(console.text(), &name));
            Ok(())
        }));
    }
    let rows = trials.len() - 1;
    trials.push(trial(format!("{series}: passes all rows"), &guest, move |console| {
        let unfinished = || anyhow!("the guest did not finish:\n{}", console.end());
        let tally = console.line("test result: ").ok_or_else(unfinished)?;
        let all = format!("ok. {rows} passed; 0 failed; 0 ignored; 0 measured; 0 filtered out;");
        ensure!(tally.starts_with(&all), "{tally}, expected {all}");
        let exit = console.line("guest: exit ");
        ensure!(exit == Some("0"), "exit status {exit:?}");
        Ok(())
    }));
    trials.extend(pairs);
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// What a guest does that has a part in a network of guests.
fn play(run: Run) -> ExitCode {
    match sandbox::whole_system().and_then(|sandbox| run(&sandbox)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error:?}");
            ExitCode::FAILURE
        }
    }
}

/// What the guest runs.
fn guest_trials(sandbox: &Sandbox) -> Vec<Trial> {
    let sample = Sample::from_environment();
    let mut trials = packet_table::trials_in_guest(sample);
    let networks: Vec<(&str, Run)> = vec![
        ("tunnels: the kernel's own devices take apart what is sent", tunnels::run),
        ("tunnels: the kernel's own GUE, and a change to it", tunnels::run_in_gue),
        ("tunnels: checks go through them", tunnels::run_checks),
        ("bond: connections outlive a link of two", bond::run),
        ("bond: tags are kept by whichever link they come", bond::run_tagged),
        ("bond: tags are kept by two links in turn", bond::run_tagged_in_turn),
        ("receiver: at tc's hook beside others", receiver_hooks::at_tc),
        ("receiver: at tc's hook, every tunnel", receiver::run),
        ("receiver: at tc's hook, behind VLANs", receiver::run_tagged),
        ("receiver: beside the kernel's own devices", receiver::run_beside),
        ("tracepoints: drops after the program are counted", tracepoints::run),
        ("vlan: tagged frames are balanced", vlan::run),
        ("vlan: the way to backends is a device's", vlan::run_by_device),
        ("vlan: a device upon another brings two tags", qinq::run),
    ];
    let mut daemons = vec![clock::trial(), tables::trial()];
    daemons.extend(networks.into_iter().map(|(name, run)| {
        let sandbox = sandbox.clone();
        Trial::test(name, move || run(&sandbox).map_err(|error| Failed::from(format!("{error:#}"))))
    }));
    trials.extend(sample.pick(daemons, DAEMONS));
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

/// Boots a guest that runs the trials whose names contain `filter`.
fn boot(sandbox: &Sandbox, filter: &str) -> Result<Console> {
    let parts = Parts::find()?;
    let scratch = sandbox.directory("kernel")?;
    let initramfs = parts.initramfs(ALONE, filter, MODULES, &scratch)?;
    Machine::start(&parts.kernel, &initramfs, &scratch, &[])?.finish()
}

/// What every guest is made of.
struct Parts {
    kernel: PathBuf,
    program: PathBuf,
    tools: Vec<PathBuf>,
}

impl Parts {
    fn find() -> Result<Self> {
        let kernel = std::env::var_os(KERNEL).map(PathBuf::from);
        let kernel =
            kernel.with_context(|| format!("{KERNEL}: not set; `cargo xtask test` does"))?;
        let program = std::env::current_exe().context("find our own program")?;
        let mut tools = TOOLS.into_iter().map(machine::tool).collect::<Result<Vec<_>>>()?;
        let Binaries { spillwayd, spillway } = Binaries::find()?;
        tools.extend([spillwayd, spillway]);
        Ok(Self { kernel, program, tools })
    }

    /// The archive of a guest with a role; it gets these modules.
    fn initramfs(
        &self,
        role: &str,
        argument: &str,
        modules: &[&str],
        scratch: &Path,
    ) -> Result<Vec<u8>> {
        let (kernel, program) = (&*self.kernel, &*self.program);
        let tools: Vec<&Path> = self.tools.iter().map(PathBuf::as_path).collect();
        let guest = Guest { kernel, program, argument, role, tools: &tools, modules };
        machine::initramfs(&guest, scratch)
    }
}

/// What the guest said of a row that failed there.
fn explain(console: &str, name: &str) -> String {
    let head = format!("---- {name} ----");
    let lines = console.lines().map(str::trim_end).skip_while(|line| *line != head).skip(1);
    lines
        .take_while(|line| !line.starts_with("---- ") && *line != "failures:")
        .fold("failed in the guest:".to_owned(), |text, line| text + "\n" + line)
}
