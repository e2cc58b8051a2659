//! What happens in a month beside changes. Each leaves it to the agreement afterwards that all is well again, and undoes what
//! does not heal by itself.

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use lb_e2e::{certificates::Certificate, etcd::EtcdCluster};
use lb_tests::{
    daemon::{
        Balancer,
        answers::{self, member},
    },
    process::{PATIENCE, until},
    random::Random,
    topology::Cut,
};
use nix::sys::signal::Signal;
use rcgen::date_time_ymd;
use spillway_proto::v1::{BackendState, Condition};

use super::super::calls::{condition, wait_for_condition, wait_until_owned_by};
use super::super::members::status;
use super::{Month, ON_DISK, pipeline::drain_of};

const HOUR: i64 = 3600;
/// A balancer that starts ends no overrides for half a minute: its clock was compared with none until then.
pub(super) const LOOKED_FOR: Duration = PATIENCE.saturating_mul(2);
/// More changes than are kept beside those of the last settle time.
const MORE_THAN_KEPT: usize = 25;
/// Subject of the condition about certificate files.
const TLS: &str = "TLS of etcd";

/// What is done, and what it is called.
pub(super) type Event = (&'static str, fn(&mut Month) -> Result<()>);

const ALL: [Event; 18] = [
    ("a server is retired", Month::retire_server),
    ("an address is used again", Month::use_address_again),
    ("an hour passes", Month::let_an_hour_pass),
    ("a drain ends", Month::drain_for_a_while),
    ("a standby is switched on", Month::switch_on_standby),
    ("a host reboots with its clock ahead", |month| month.reboot(HOUR)),
    ("a host reboots with its clock behind", |month| month.reboot(-HOUR)),
    ("a certificate is renewed late", Month::renew_late),
    ("a key is renewed before its certificate", Month::renew_key_first),
    ("a server of etcd is replaced", Month::replace_etcd_server),
    ("etcd is defragmented", |month| month.etcd()?.defragment()),
    ("the leader of etcd is killed", Month::kill_etcd_leader),
    ("each daemon is replaced", Month::replace_each),
    ("a disk is full", Month::fill_disk),
    ("a disk is silent", Month::silence_disk),
    ("a host is suspended", Month::suspend),
    ("one is lost beside a mute one", Month::lose_one_beside_a_mute_one),
    ("a daemon is killed", Month::kill_daemon),
];

/// All, once each.
pub(super) fn shuffled(random: &mut Random) -> Vec<Event> {
    let mut left = ALL.to_vec();
    let mut shuffled = Vec::new();
    while !left.is_empty() {
        shuffled.push(left.swap_remove(random.below(left.len() as u64) as usize));
    }
    shuffled
}

impl Month {
    fn replace_etcd_server(&mut self) -> Result<()> {
        let size = self.etcd()?.size() as u64;
        let server = self.random.below(size) as usize;
        self.etcd()?.replace(server)
    }

    fn kill_etcd_leader(&mut self) -> Result<()> {
        let leader = self.etcd()?.leader()?;
        self.etcd()?.kill(leader)?;
        self.changes(5)?;
        self.etcd()?.start_all()
    }

    fn kill_daemon(&mut self) -> Result<()> {
        let balancer = self.any();
        self.fleet.balancers[balancer].kill()?;
        self.pipeline.away.insert(balancer);
        self.changes(3)?;
        self.start_again(balancer)
    }

    pub(super) fn etcd(&mut self) -> Result<&mut EtcdCluster> {
        self.fleet.etcd.as_mut().context("there is no etcd")
    }

    fn any(&mut self) -> usize {
        self.random.below(self.fleet.balancers.len() as u64) as usize
    }

    /// Two of them.
    fn pair(&mut self) -> (usize, usize) {
        let (one, after) = (self.any(), 1 + self.random.below(3) as usize);
        (one, (one + after) % self.fleet.balancers.len())
    }

    /// Servers that may be retired, each with its region: the last one of each region.
    fn spares(&self) -> Vec<(String, &'static str)> {
        let backends = &self.fleet.fabric.backends;
        let lasts = backends.chunks(backends.len() / 2).filter_map(<[_]>::last);
        lasts.map(|it| (it.v4.to_string(), it.region)).collect()
    }

    /// Starts a daemon and looks until it is ready: not before it has what the fleet had when it was started.
    fn start_again(&mut self, balancer: usize) -> Result<()> {
        let other = (0..self.fleet.balancers.len()).find(|it| !self.pipeline.away.contains(it));
        let fleet_has = status(&self.fleet, other.context("all are away")?)?.generation;
        self.fleet.balancers[balancer].spawn()?;
        let name = self.fleet.fabric.balancers[balancer].name();
        let daemon = &mut self.fleet.balancers[balancer];
        let ready = until("it is ready", LOOKED_FOR, || {
            daemon.running().context("it does not run")?.check()?;
            let Ok(client) = daemon.client() else { return Ok(None) };
            let Ok(seen) = client.fleet_status() else { return Ok(None) };
            let Ok(own) = member(&seen, name) else { return Ok(None) };
            ensure!(
                !own.ready || own.generation >= fleet_has,
                "{name} is ready with generation {}, and the fleet has {fleet_has}",
                own.generation
            );
            Ok(own.ready.then_some(()))
        });
        ready.with_context(|| format!("{:#?}", status(&self.fleet, balancer)))?;
        self.pipeline.away.remove(&balancer);
        Ok(())
    }

    fn retire_server(&mut self) -> Result<()> {
        let Some((spare, _)) = self.spares().into_iter().find(|(it, _)| self.pipeline.has(it))
        else {
            return self.use_address_again();
        };
        if !self.pipeline.is_drained(&spare) {
            self.pipeline.drain(&self.fleet, &spare, None)?;
        }
        self.changes(2)?;
        // A change in between may have ended the drain.
        if !self.pipeline.is_drained(&spare) {
            self.pipeline.drain(&self.fleet, &spare, None)?;
        }
        self.pipeline.remove(&self.fleet, &spare)
    }

    /// A server that comes back within the hour is drained still; one that comes later is not.
    fn use_address_again(&mut self) -> Result<()> {
        let spare = self.spares().into_iter().find(|(it, _)| !self.pipeline.has(it));
        let Some((spare, region)) = spare else {
            self.retire_server()?;
            self.changes(3)?;
            return self.use_address_again();
        };
        self.pipeline.add(&self.fleet, &spare, region)?;
        let is_drained = self.pipeline.is_drained(&spare);
        let expected = if is_drained { BackendState::Draining } else { BackendState::Up };
        for balancer in &self.fleet.balancers {
            until("the server is as it was, or new", PATIENCE, || {
                let status = balancer.status()?;
                let state = answers::backend(&status, &spare).map(|it| it.state());
                Ok((state.ok() == Some(expected)).then_some(()))
            })
            .with_context(|| format!("{spare}: {expected:?}"))?;
        }
        if is_drained { self.pipeline.undrain(&self.fleet, &spare) } else { Ok(()) }
    }

    /// All daemons are off for an hour, by all clocks.
    fn let_an_hour_pass(&mut self) -> Result<()> {
        for balancer in &mut self.fleet.balancers {
            balancer.stop()?;
        }
        self.hours += 1;
        self.clocks.iter().try_for_each(|it| it.set_ahead(self.hours * HOUR))?;
        for balancer in &mut self.fleet.balancers {
            balancer.spawn()?;
        }
        for balancer in &mut self.fleet.balancers {
            balancer.wait_until_it_answers()?;
        }
        let present: Vec<_> =
            self.fleet.fabric.backends.iter().map(|it| it.v4.to_string()).collect();
        let present = present.iter().filter(|it| self.pipeline.has(it));
        let present: Vec<_> = present.map(|it| drain_of(it)).collect();
        self.pipeline.drains().retain(|key, drain| drain.ends.is_none() && present.contains(key));
        Ok(())
    }

    /// A drain ends by itself at all balancers, and not before its time.
    fn drain_for_a_while(&mut self) -> Result<()> {
        const TIME: Duration = Duration::from_secs(8);
        let backend = self.fleet.fabric.backends[0].v4.to_string();
        if self.pipeline.is_drained(&backend) {
            self.pipeline.undrain(&self.fleet, &backend)?;
        }
        let begun = Instant::now();
        self.pipeline.drain(&self.fleet, &backend, Some(TIME))?;
        let key = drain_of(&backend);
        let is_there = |balancer: &Balancer| -> Result<bool> {
            Ok(balancer.overrides()?.overrides.iter().any(|it| it.name == key))
        };
        for balancer in &self.fleet.balancers {
            until("the drain is in force", PATIENCE, || {
                Ok((is_there(balancer)? || begun.elapsed() >= TIME).then_some(()))
            })?;
        }
        for balancer in &self.fleet.balancers {
            until("the drain has ended", LOOKED_FOR, || {
                let is_there = is_there(balancer)?;
                ensure!(is_there || begun.elapsed() >= TIME - SECOND, "it ended too early");
                Ok((!is_there).then_some(()))
            })?;
        }
        self.pipeline.drains().remove(&key);
        Ok(())
    }

    /// One that was off for more changes than etcd keeps.
    fn switch_on_standby(&mut self) -> Result<()> {
        let balancer = self.any();
        self.take_out(balancer)?;
        self.fleet.balancers[balancer].stop()?;
        self.pipeline.away.insert(balancer);
        self.changes(MORE_THAN_KEPT)?;
        self.start_again(balancer)
    }

    fn take_out(&mut self, balancer: usize) -> Result<()> {
        self.out.insert(balancer);
        self.fleet.fabric.take_out(balancer)
    }

    /// A host loses power and comes back with a wrong clock, which is set later. A drain that ends by itself lasts longer.
    fn reboot(&mut self, ahead: i64) -> Result<()> {
        const TIME: Duration = Duration::from_secs(1200);
        let balancer = self.any();
        let backend = self.fleet.fabric.backends[1].v4.to_string();
        if self.pipeline.is_drained(&backend) {
            self.pipeline.undrain(&self.fleet, &backend)?;
        }
        self.pipeline.drain(&self.fleet, &backend, Some(TIME))?;
        self.take_out(balancer)?;
        self.fleet.power_off(balancer)?;
        self.pipeline.away.insert(balancer);
        self.clocks[balancer].set_ahead(self.hours * HOUR + ahead)?;
        self.changes(3)?;
        self.fleet.fabric.heal(balancer)?;
        self.start_again(balancer)?;
        let words = if ahead > 0 { "ahead of those of others" } else { "behind those of others" };
        wait_for_condition(&self.fleet, balancer, ("fleet clock", words))?;
        // It refuses changes that end by themselves, and the pipeline makes none.
        self.changes(3)?;
        self.clocks[balancer].set_ahead(self.hours * HOUR)?;
        until("its clock is right", PATIENCE, || {
            Ok(condition(&self.fleet, balancer, "fleet clock")?.is_none().then_some(()))
        })?;
        let key = drain_of(&backend);
        for balancer in &self.fleet.balancers {
            let overrides = balancer.overrides()?.overrides;
            ensure!(overrides.iter().any(|it| it.name == key), "{overrides:#?}");
        }
        // Those whose time is over are complained about, if one takes it for that.
        self.agree()?;
        self.pipeline.undrain(&self.fleet, &backend)
    }

    fn certificate_of(&self, balancer: usize) -> (String, [IpAddr; 2], Certificate) {
        let host = &self.fleet.fabric.balancers[balancer];
        let addresses = [host.v4.into(), host.v6.into()];
        (host.name().to_owned(), addresses, self.fleet.certificates[balancer].clone())
    }

    /// The new certificate has expired too; then comes one that has not.
    fn renew_late(&mut self) -> Result<()> {
        let balancer = self.any();
        let (name, addresses, _) = self.certificate_of(balancer);
        self.fleet.authority.issue_with(&name, &addresses, |params| {
            params.not_before = date_time_ymd(2019, 1, 1);
            params.not_after = date_time_ymd(2020, 1, 1);
        })?;
        wait_for_condition(&self.fleet, balancer, (TLS, "those from before stay in use"))?;
        self.changes(3)?;
        self.fleet.authority.issue(&name, &addresses)?;
        self.wait_for_files(balancer)
    }

    fn renew_key_first(&mut self) -> Result<()> {
        let balancer = self.any();
        let (name, addresses, files) = self.certificate_of(balancer);
        let before = std::fs::read(&files.certificate)?;
        self.fleet.authority.issue(&name, &addresses)?;
        let next = std::fs::read(&files.certificate)?;
        std::fs::write(&files.certificate, before)?;
        wait_for_condition(&self.fleet, balancer, (TLS, "those from before stay in use"))?;
        self.changes(3)?;
        std::fs::write(&files.certificate, next)?;
        self.wait_for_files(balancer)
    }

    fn wait_for_files(&self, balancer: usize) -> Result<()> {
        until("the files are used", PATIENCE, || {
            Ok(condition(&self.fleet, balancer, TLS)?.is_none().then_some(()))
        })
    }

    /// As in an upgrade that is rolled back at the last host: one daemon after the other is replaced while its packet path goes
    /// on. It is the same version; what an older one cannot read has tests of its own.
    fn replace_each(&mut self) -> Result<()> {
        let all = 0..self.fleet.balancers.len();
        for balancer in all.clone().chain(all.last()) {
            self.fleet.balancers[balancer].stop()?;
            self.pipeline.away.insert(balancer);
            self.changes(1)?;
            self.start_again(balancer)?;
        }
        Ok(())
    }

    fn fill_disk(&mut self) -> Result<()> {
        self.pipeline.away.insert(ON_DISK);
        until("it says that the disk is full", PATIENCE, || {
            // The daemon replaces files, which makes room for the next ones: it is filled again.
            self.disk.fill()?;
            self.changes(1)?;
            let conditions = self.fleet.balancers[ON_DISK].status()?.conditions;
            let is_full = |it: &Condition| it.text.contains("No space left on device");
            Ok(conditions.iter().any(is_full).then_some(()))
        })?;
        self.changes(3)?;
        self.disk.free()?;
        self.pipeline.away.remove(&ON_DISK);
        Ok(())
    }

    fn silence_disk(&mut self) -> Result<()> {
        self.disk.freeze()?;
        self.pipeline.away.insert(ON_DISK);
        until("it says that the disk is silent", PATIENCE, || {
            // Drains are no generations, and it notices when it stores one.
            self.changes(1)?;
            let cause = condition(&self.fleet, ON_DISK, "store")?;
            Ok(cause.filter(|cause| cause.contains("the disk does not answer")))
        })?;
        self.changes(3)?;
        self.disk.thaw()?;
        self.pipeline.away.remove(&ON_DISK);
        Ok(())
    }

    /// A virtual machine stands still until etcd takes it for gone.
    fn suspend(&mut self) -> Result<()> {
        let (balancer, other) = self.pair();
        let name = self.fleet.name(balancer).to_owned();
        self.take_out(balancer)?;
        self.pipeline.away.insert(balancer);
        self.signal(balancer, Signal::SIGSTOP)?;
        self.changes(3)?;
        let gone = until("its lease ends", PATIENCE, || {
            Ok((!member(&status(&self.fleet, other)?, &name)?.alive).then_some(()))
        });
        let changed = self.changes(3);
        self.signal(balancer, Signal::SIGCONT)?;
        self.pipeline.away.remove(&balancer);
        gone.and(changed)
    }

    fn signal(&mut self, balancer: usize, signal: Signal) -> Result<()> {
        let running = self.fleet.balancers[balancer].running();
        running.context("the daemon does not run")?.signal(signal)
    }

    /// One exchanges no messages with the others, and another one is lost meanwhile: that one's portion is given away.
    fn lose_one_beside_a_mute_one(&mut self) -> Result<()> {
        let (mute, lost) = self.pair();
        let others = (0..self.fleet.balancers.len()).filter(|it| *it != lost);
        let others: Vec<_> = others.collect();
        self.fleet.fabric.cut(mute, Cut::Peers)?;
        let words = format!("no messages come from {}", self.fleet.name(mute));
        let listener = others.iter().find(|it| **it != mute).context("no third balancer")?;
        wait_for_condition(&self.fleet, *listener, ("fleet peers", &words))?;
        self.take_out(lost)?;
        self.fleet.power_off(lost)?;
        self.pipeline.away.insert(lost);
        self.changes(3)?;
        wait_until_owned_by(&self.fleet, &others)?;
        self.fleet.fabric.heal(mute)?;
        self.fleet.fabric.heal(lost)?;
        self.start_again(lost)
    }
}

const SECOND: Duration = Duration::from_secs(1);
