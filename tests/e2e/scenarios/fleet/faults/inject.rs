//! Begins and ends the faults of a plan.

use std::process::Output;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use lb_e2e::{
    etcd::EtcdCluster,
    faults::{Fault, Incident},
    fixture::FleetFixture,
};
use lb_tests::process::{PATIENCE, until};
use nix::sys::signal::Signal;

/// What ends a fault.
enum Undo {
    Nothing,
    /// Servers of etcd.
    Spawn(Vec<usize>),
    Thaw(Vec<usize>),
    StartDaemon(usize),
    ThawDaemon(usize),
    Heal(usize),
    /// Once it has left.
    Join(usize, JoinHandle<std::io::Result<Output>>),
    PowerOn(usize),
    PutBack(usize),
    Healthy(usize),
}

/// A plan at work.
pub(super) struct Injector {
    begin: Instant,
    /// The next one is the last of them.
    planned: Vec<Incident>,
    active: Vec<(Incident, Undo)>,
    begun: usize,
    log: Vec<String>,
    /// Out of the routes until all agree.
    returning: Vec<usize>,
    /// Balancers that left, and may not be members again.
    left: Vec<usize>,
}

impl Injector {
    pub(super) fn new(mut planned: Vec<Incident>) -> Self {
        planned.reverse();
        Self {
            begin: Instant::now(),
            planned,
            active: Vec::new(),
            begun: 0,
            log: Vec::new(),
            returning: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Faults that were begun.
    pub(super) fn begun(&self) -> usize {
        self.begun
    }

    /// Whether a fault is to be begun or ended yet.
    pub(super) fn is_busy(&self) -> bool {
        !self.planned.is_empty() || !self.active.is_empty()
    }

    /// What was done, with the time since the plan began.
    pub(super) fn log(&self) -> &[String] {
        &self.log
    }

    /// Whether a balancer left, and nobody has seen since that it is a member again.
    pub(super) fn has_left(&self, balancer: usize) -> bool {
        self.left.contains(&balancer)
    }

    /// A balancer is a member.
    pub(super) fn joined(&mut self, balancer: usize) {
        self.left.retain(|it| *it != balancer);
    }

    /// Whether what a balancer has in force may be from before: it left, or lost its maps.
    pub(super) fn starts_anew(&self, balancer: usize) -> bool {
        self.has_left(balancer) || self.returning.contains(&balancer)
    }

    /// Whether a balancer's daemon runs and can answer.
    pub(super) fn answers(&self, balancer: usize) -> bool {
        !self.active.iter().any(|(incident, _)| match incident.fault {
            Fault::DaemonKilled(it)
            | Fault::DaemonStopped(it)
            | Fault::DaemonFrozen(it)
            | Fault::HostGone(it)
            | Fault::Left(it) => it == balancer,
            _ => false,
        })
    }

    /// Ends and begins what is due.
    pub(super) fn work(&mut self, fleet: &mut FleetFixture) -> Result<()> {
        let now = self.begin.elapsed();
        for (incident, undo) in std::mem::take(&mut self.active) {
            if incident.to > now
                || matches!(&undo, Undo::Join(_, leaving) if !leaving.is_finished())
            {
                self.active.push((incident, undo));
                continue;
            }
            self.undo(fleet, undo).with_context(|| format!("end of {incident}"))?;
            self.note(now, format!("ended: {:?}", incident.fault));
        }
        while let Some(incident) = self.planned.pop_if(|it| it.from <= now) {
            let undo = self.inject(fleet, incident.fault);
            let undo = undo.with_context(|| format!("begin of {incident}"))?;
            self.note(now, format!("began: {:?}", incident.fault));
            self.begun += 1;
            self.active.push((incident, undo));
        }
        Ok(())
    }

    /// Has the router use those again that lost power.
    pub(super) fn put_back(&mut self, fleet: &mut FleetFixture) -> Result<()> {
        std::mem::take(&mut self.returning).into_iter().try_for_each(|it| fleet.fabric.put_back(it))
    }

    fn note(&mut self, at: Duration, what: String) {
        self.log.push(format!("{:7.2} s {what}", at.as_secs_f64()));
    }

    fn inject(&mut self, fleet: &mut FleetFixture, fault: Fault) -> Result<Undo> {
        Ok(match fault {
            Fault::EtcdKilled(server) => kill(etcd(fleet)?, &[server])?,
            Fault::EtcdFrozen(server) => freeze(etcd(fleet)?, &[server])?,
            Fault::LeaderKilled => {
                let leader = etcd(fleet)?.leader()?;
                kill(etcd(fleet)?, &[leader])?
            }
            Fault::LeaderFrozen => {
                let leader = etcd(fleet)?.leader()?;
                freeze(etcd(fleet)?, &[leader])?
            }
            Fault::QuorumLost(server) => {
                let etcd = etcd(fleet)?;
                let others = others(etcd, server);
                kill(etcd, &others)?
            }
            Fault::QuorumFrozen(server) => {
                let etcd = etcd(fleet)?;
                freeze(etcd, &others(etcd, server))?
            }
            Fault::EtcdGone => {
                let all: Vec<_> = (0..etcd(fleet)?.size()).collect();
                kill(etcd(fleet)?, &all)?
            }
            Fault::EtcdCompacted => {
                compact(etcd(fleet)?)?;
                Undo::Nothing
            }
            Fault::DaemonKilled(balancer) => {
                fleet.balancers[balancer].kill()?;
                Undo::StartDaemon(balancer)
            }
            Fault::DaemonStopped(balancer) => {
                fleet.balancers[balancer].stop_at_any_time()?;
                Undo::StartDaemon(balancer)
            }
            Fault::DaemonFrozen(balancer) => {
                signal(fleet, balancer, Signal::SIGSTOP)?;
                Undo::ThawDaemon(balancer)
            }
            Fault::CutOff(balancer, cut) => {
                fleet.fabric.cut(balancer, cut)?;
                Undo::Heal(balancer)
            }
            Fault::Left(balancer) => {
                self.left.push(balancer);
                let mut leave = fleet.balancers[balancer].command(&["fleet", "leave", "--yes"]);
                Undo::Join(balancer, thread::spawn(move || leave.output()))
            }
            Fault::HostGone(balancer) => {
                fleet.power_off(balancer)?;
                fleet.fabric.take_out(balancer)?;
                Undo::PowerOn(balancer)
            }
            Fault::OutOfRoutes(balancer) if self.returning.contains(&balancer) => Undo::Nothing,
            Fault::OutOfRoutes(balancer) => {
                fleet.fabric.take_out(balancer)?;
                Undo::PutBack(balancer)
            }
            Fault::Unhealthy(backend) => {
                fleet.backends.servers[backend].be_sick(true)?;
                Undo::Healthy(backend)
            }
        })
    }

    fn undo(&mut self, fleet: &mut FleetFixture, undo: Undo) -> Result<()> {
        match undo {
            Undo::Nothing => Ok(()),
            Undo::Spawn(servers) => servers.into_iter().try_for_each(|it| etcd(fleet)?.spawn(it)),
            Undo::Thaw(servers) => servers.into_iter().try_for_each(|it| etcd(fleet)?.thaw(it)),
            Undo::StartDaemon(balancer) => fleet.balancers[balancer].spawn(),
            Undo::ThawDaemon(balancer) => signal(fleet, balancer, Signal::SIGCONT),
            Undo::Heal(balancer) => fleet.fabric.heal(balancer),
            Undo::Join(balancer, leaving) => {
                let left = leaving.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
                let said = String::from_utf8_lossy(&left.stderr).trim().to_owned();
                let at = self.begin.elapsed();
                self.note(at, format!("{} left: {} {said}", fleet.name(balancer), left.status));
                // Faults may keep it from that; once they are over it has to.
                let mut join = fleet.balancers[balancer].command(&["fleet", "join", "--yes"]);
                thread::spawn(move || join.output());
                Ok(())
            }
            Undo::PowerOn(balancer) => {
                self.returning.push(balancer);
                fleet.fabric.heal(balancer)?;
                fleet.balancers[balancer].spawn()
            }
            Undo::PutBack(balancer) => fleet.fabric.put_back(balancer),
            Undo::Healthy(backend) => fleet.backends.servers[backend].be_sick(false),
        }
    }
}

fn etcd(fleet: &mut FleetFixture) -> Result<&mut EtcdCluster> {
    fleet.etcd.as_mut().context("no etcd")
}

fn others(etcd: &EtcdCluster, server: usize) -> Vec<usize> {
    (0..etcd.size()).filter(|it| *it != server).collect()
}

fn kill(etcd: &mut EtcdCluster, servers: &[usize]) -> Result<Undo> {
    servers.iter().try_for_each(|it| etcd.kill(*it))?;
    Ok(Undo::Spawn(servers.to_vec()))
}

fn freeze(etcd: &EtcdCluster, servers: &[usize]) -> Result<Undo> {
    servers.iter().try_for_each(|it| etcd.freeze(*it))?;
    Ok(Undo::Thaw(servers.to_vec()))
}

/// Once etcd takes it: a server that was just started may not have found the others yet.
fn compact(etcd: &EtcdCluster) -> Result<()> {
    until("etcd is compacted", PATIENCE, || match etcd.compact() {
        Ok(_) => Ok(Some(())),
        // By an attempt that was not answered.
        Err(error) if format!("{error:#}").contains("has been compacted") => Ok(Some(())),
        Err(_) => Ok(None),
    })
}

fn signal(fleet: &mut FleetFixture, balancer: usize, signal: Signal) -> Result<()> {
    fleet.balancers[balancer].running().context("the daemon does not run")?.signal(signal)
}
