//! Whether a program gets on. How fast it does says more of the machine than of the program, so what is killed is what
//! hangs: it writes nothing, and neither it nor its descendants use any CPU time.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::unistd::{Pid, SysconfVar, sysconf};

use crate::ui;

/// Looks at CPU time during a limit.
const LOOKS: u32 = 10;

/// So many times the limit without progress is the limit for what never ends, such as a loop.
const HARD: u32 = 6;

/// How long a program may run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Without output and without CPU time.
    stalled: Duration,
    /// Whatever it does.
    hard: Duration,
}

impl Limits {
    /// So long without progress, and several times that in all.
    pub(crate) const fn stalled(stalled: Duration) -> Self {
        Self { stalled, hard: stalled.saturating_mul(HARD) }
    }
}

/// Which limit a program exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exceeded {
    Stalled(Duration),
    Hard(Duration),
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stalled(limit) => {
                write!(f, "killed: no output and no CPU time for {}", ui::elapsed(*limit))
            }
            Self::Hard(limit) => write!(f, "killed: still running after {}", ui::elapsed(*limit)),
        }
    }
}

/// What is known of a running program.
pub(crate) struct Progress {
    leader: Pid,
    limits: Limits,
    begun: Instant,
    /// The last time that it had written or used CPU time.
    last: Instant,
    looked: Instant,
    cpu_time: u64,
}

impl Progress {
    /// Of a program, which has only just been started, and all that it starts.
    pub(crate) fn new(leader: Pid, limits: Limits) -> Self {
        let now = Instant::now();
        let cpu_time = cpu_time(leader);
        Self { leader, limits, begun: now, last: now, looked: now, cpu_time }
    }

    /// It wrote something.
    pub(crate) fn has_written(&mut self) {
        self.last = Instant::now();
    }

    /// The limit that it exceeds, if it exceeds one. To be asked often; most answers cost nothing.
    pub(crate) fn exceeds(&mut self) -> Option<Exceeded> {
        let Limits { stalled, hard } = self.limits;
        let now = Instant::now();
        if now - self.looked >= stalled / LOOKS {
            self.looked = now;
            let cpu_time = cpu_time(self.leader);
            // It is less where a process ended that nobody of the descendants waited for.
            if cpu_time != self.cpu_time {
                self.cpu_time = cpu_time;
                self.last = now;
            }
        }
        if now - self.begun > hard {
            Some(Exceeded::Hard(hard))
        } else if now - self.last > stalled {
            Some(Exceeded::Stalled(stalled))
        } else {
            None
        }
    }
}

/// Number of `SCHED_IDLE` in sched.h.
const IDLE: &str = "5";

/// Of `/proc/PID/stat` (proc(5)).
struct Stat {
    parent: i32,
    group: i32,
    /// Of the process and of the children that it waited for, in ticks.
    cpu_time: u64,
    /// Whether it runs on idle CPU time only (`SCHED_IDLE`, sched(7)).
    is_idle: bool,
}

/// CPU time that a process, and all descendants that were waited for, have used. Once it has ended nothing is added; it
/// must not have been waited for yet.
pub(crate) fn used_cpu_time(pid: Pid) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    let ticks = stat.and_then(|stat| parse(&stat)).map_or(0, |stat| stat.cpu_time);
    let frequency =
        sysconf(SysconfVar::CLK_TCK).ok().flatten().and_then(|it| u32::try_from(it).ok());
    frequency.filter(|it| *it > 0).map_or(Duration::ZERO, |it| Duration::from_secs(ticks) / it)
}

/// CPU time of all that this process has waited for.
pub(crate) fn cpu_time_of_children() -> Duration {
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).ok();
    let used = used.map_or(0, |it| (it.user_time() + it.system_time()).num_milliseconds());
    Duration::from_millis(used.try_into().unwrap_or(0))
}

/// CPU time of a process, its group and its descendants, in ticks.
fn cpu_time(leader: Pid) -> u64 {
    family(leader).values().map(|stat| stat.cpu_time).sum()
}

/// Those of a process, its group and its descendants that run on idle CPU time only.
pub(crate) fn idle_family(leader: Pid) -> Vec<i32> {
    let all = family(leader).into_iter();
    all.filter(|(_, stat)| stat.is_idle).map(|(pid, _)| pid).collect()
}

/// A process, its group and its descendants. Processes in other namespaces are descendants too.
fn family(leader: Pid) -> BTreeMap<i32, Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut all: BTreeMap<i32, Stat> = entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, parse(&fs::read_to_string(entry.path().join("stat")).ok()?)?))
        })
        .collect();
    let leader = leader.as_raw();
    let is_ours = |mut pid: i32| {
        // At most so many generations: a process that ended meanwhile may have left a number to a descendant.
        for _ in 0..all.len() {
            let Some(stat) = all.get(&pid) else { return false };
            if pid == leader || stat.group == leader {
                return true;
            }
            pid = stat.parent;
        }
        false
    };
    let ours: Vec<i32> = all.keys().copied().filter(|pid| is_ours(*pid)).collect();
    all.retain(|pid, _| ours.contains(pid));
    all
}

fn parse(stat: &str) -> Option<Stat> {
    // A name may have spaces and brackets in it. What follows begins with field 3.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let field = |number: usize| fields.get(number - 3);
    let times = (14..=17).map(|number| field(number)?.parse::<u64>().ok());
    Some(Stat {
        parent: field(4)?.parse().ok()?,
        group: field(5)?.parse().ok()?,
        cpu_time: times.sum::<Option<u64>>()?,
        is_idle: *field(41)? == IDLE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_that_of_a_process_and_its_children() {
        // Fields 23 to 40 are zeros here, and 41 is the policy.
        let line = |policy: u32| {
            let head = "42 (a) (b c) S 7 9 9 0 -1 4194560 1 2 3 4 10 20 300 4000 20 0 1 0 5";
            format!("{head}{} {policy} 0", " 0".repeat(18))
        };
        for (policy, is_idle) in [(0, false), (5, true)] {
            let stat = parse(&line(policy)).unwrap();
            assert_eq!((stat.parent, stat.group, stat.cpu_time), (7, 9, 4330));
            assert_eq!(stat.is_idle, is_idle);
        }
    }

    #[test]
    fn messages_name_the_limit_that_was_exceeded() {
        let Limits { stalled, hard } = Limits::stalled(Duration::from_secs(600));
        let said = [Exceeded::Stalled(stalled), Exceeded::Hard(hard)].map(|it| it.to_string());
        assert_eq!(
            said,
            [
                "killed: no output and no CPU time for 10 min 00 s",
                "killed: still running after 60 min 00 s"
            ]
        );
    }
}
