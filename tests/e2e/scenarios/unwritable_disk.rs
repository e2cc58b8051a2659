//! A disk that is full, or that the kernel has made read-only, refuses applies, and nothing else: health, answers and
//! packets go on, also after a restart.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{
    fixture::{HTTP, Tunnel},
    harness::{self, Case},
};
use lb_tests::{
    disk::Disk,
    process::{PATIENCE, until},
    sandbox::Sandbox,
    traffic::{Requests, ensure_answered},
};

use crate::on_disk::OnDisk;

pub(crate) const CASES: &[Case] = &[
    Case::works("a_full_disk_refuses_applies_and_nothing_else", |sandbox| {
        fail_over(sandbox, Some(Fault::Full))
    }),
    Case::works("a_broken_disk_refuses_applies_and_nothing_else", |sandbox| {
        fail_over(sandbox, Some(Fault::Broken))
    }),
    Case::works("a_disk_without_fault_is_written", |sandbox| fail_over(sandbox, None)),
];

/// What is wrong with the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Full,
    /// The kernel found an error, and lets nothing be written.
    Broken,
}

impl Fault {
    fn begin(self, disk: &Disk) -> Result<()> {
        match self {
            Self::Full => disk.fill(),
            Self::Broken => disk.break_down(),
        }
    }

    /// What an operator does. A file system cannot be mounted again while a file on it is open.
    fn end(self, disk: &Disk) -> Result<()> {
        match self {
            Self::Full => disk.free(),
            Self::Broken => disk.mount_again(true),
        }
    }

    /// The kernel's words.
    fn cause(self) -> &'static str {
        match self {
            Self::Full => "No space left on device",
            Self::Broken => "Read-only file system",
        }
    }

    /// What the operator is told to do.
    fn hint(self) -> &'static str {
        match self {
            Self::Full => "free space on the disk, then apply again",
            Self::Broken => "repair it, mount it writable, then apply again",
        }
    }
}

/// The configuration with so many more regions.
fn larger(service: &OnDisk, regions: usize) -> String {
    let text = service.configuration();
    let region = |number| format!("\n[[region]]\nname = \"region-{number:050}\"\n");
    text + &(0..regions).map(region).collect::<String>()
}

/// Kills a server under load. No request fails after the detection: so the maps have it.
fn kill(service: &mut OnDisk, victim: &str, dead: &[&str]) -> Result<()> {
    let to = Tunnel::Ipip.endpoint(HTTP);
    let client = &service.fixture.fabric.client;
    let requests = Requests::start(client, to, 2, Duration::from_millis(5));
    requests.wait_for(50)?;
    let number = service.fixture.number(victim)?;
    service.fixture.servers[number].kill()?;
    let killed = Instant::now();
    service.fixture.wait_up(dead)?;
    let detected = Instant::now();
    requests.wait_for(100)?;
    ensure_answered(&requests.finish()?, detected, Instant::now(), dead)?;
    harness::note(format!("{victim} failed: {:.2?}", detected.duration_since(killed)));
    Ok(())
}

fn fail_over(sandbox: &Sandbox, fault: Option<Fault>) -> Result<()> {
    let mut service = OnDisk::start(sandbox, "unwritable")?;
    if let Some(fault) = fault {
        fault.begin(&service.disk)?;
    }
    let larger = larger(&service, 2000);
    let began = Instant::now();
    let applied = service.fixture.balancer.try_cli(&["apply", "-f", "-"], Some(&larger))?;
    // It was answered, and the disk is as it was: nothing waits for an operator.
    let said = String::from_utf8(applied.stderr)?;
    harness::note(format!("the answer to an apply: {:.2?}", began.elapsed()));
    let subject = service.audit.display().to_string();
    match fault {
        None => ensure!(applied.status.success() && service.generation()? == 2, "{said}"),
        Some(fault) => {
            ensure!(!applied.status.success(), "it was applied");
            let refused = "nothing was changed: the configuration cannot be stored: ";
            for words in [refused, fault.cause(), fault.hint()] {
                ensure!(said.contains(words), "{said}");
            }
            ensure!(service.generation()? == 1);
            let cause = service.condition("store")?.context("no condition of the store")?;
            ensure!(cause.contains(fault.cause()) && cause.contains(fault.hint()), "{cause}");
            // The last block of its file may have room for some lines.
            let audit = until("the condition of the audit log", PATIENCE, || {
                service.fixture.balancer.try_cli(&["apply", "-f", "-"], Some(&larger))?;
                service.condition(&subject)
            })?;
            ensure!(audit.contains(fault.cause()), "{audit}");
        }
    }
    kill(&mut service, "eu2", &["eu2"])?;

    // After a crash too.
    service.fixture.balancer.kill()?;
    service.fixture.balancer.start()?;
    let expected = if fault.is_some() { 1 } else { 2 };
    ensure!(service.generation()? == expected, "generation {}", service.generation()?);
    service.fixture.wait_up(&["eu2"])?;
    kill(&mut service, "eu3", &["eu2", "eu3"])?;

    let Some(fault) = fault else { return service.fixture.balancer.stop() };
    let refused = service.fixture.balancer.try_cli(&["apply", "-f", "-"], Some(&larger))?;
    let said = String::from_utf8(refused.stderr)?;
    ensure!(!refused.status.success() && said.contains(fault.hint()), "{said}");
    fault.end(&service.disk)?;
    let applied = service.fixture.balancer.apply(&larger)?;
    ensure!(applied.contains("generation 2 is in force"), "{applied}");
    for subject in ["store", &subject, "names for the command line"] {
        until(&format!("the condition of {subject} ends"), PATIENCE, || {
            Ok(service.condition(subject)?.is_none().then_some(()))
        })?;
    }
    let audit = fs::read_to_string(&service.audit)?;
    ensure!(audit.contains("\"what\":\"lost\"") && audit.contains("\"after\":2"), "{audit}");
    service.fixture.balancer.kill()?;
    service.fixture.balancer.start()?;
    ensure!(service.generation()? == 2, "it was not stored");
    service.fixture.balancer.stop()
}
