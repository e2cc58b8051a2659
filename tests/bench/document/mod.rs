//! `docs/performance.md`: its text stands here, its figures come from a run.

mod machine;
mod table;

use std::path::Path;

use anyhow::{Context as _, Result};

pub(crate) use machine::Facts;
use table::{Table, count, figure};

use crate::cases::{CASES, DISTINCT};
use crate::question::{Sample, Unit};
use crate::report::Report;

/// All that the page says of one run.
pub(crate) struct Document<'r> {
    /// Whether the run was quick.
    pub(crate) quick: bool,
    /// The machine and the commit.
    pub(crate) facts: Facts,
    /// The figures.
    pub(crate) report: &'r Report,
}

impl Document<'_> {
    /// Writes `performance.md` into a folder.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join("performance.md");
        std::fs::write(&path, self.text()).with_context(|| path.display().to_string())
    }

    /// The page.
    pub(crate) fn text(&self) -> String {
        let quick = if self.quick { QUICK } else { "" };
        [
            INTRODUCTION.to_owned(),
            quick.to_owned(),
            self.facts().text(),
            TIMES.to_owned(),
            self.cases(Unit::Nanoseconds).text(),
            CASES_EXPLAINED.to_owned(),
            RATES.to_owned(),
            self.cases(Unit::Mpps).text(),
            PEERS.to_owned(),
            self.peers().text(),
            TABLES.to_owned(),
            self.tables().text(),
        ]
        .concat()
    }

    fn facts(&self) -> Table {
        let Facts { cpu, cpus, kernel, date, commit, command } = &self.facts;
        let mut table = Table::new(&["", ""]);
        for (what, value) in [
            ("CPU", cpu),
            ("CPUs", cpus),
            ("Linux", kernel),
            ("date", date),
            ("commit", commit),
            ("command", command),
        ] {
            table.row([what.to_owned(), value.clone()]);
        }
        table
    }

    fn cases(&self, unit: Unit) -> Table {
        let against = match unit {
            Unit::Nanoseconds => "above the floor",
            Unit::Mpps => "ratio to the floor",
        };
        let whole =
            if unit == Unit::Nanoseconds { "ns a packet" } else { "million packets a second" };
        let mut table = Table::new(&["packets", "flows", whole, "floor", against]);
        for case in CASES.iter().filter(|case| case.name().unit == unit) {
            let timing = self.report.timings.iter().find(|timing| timing.name == case.name());
            let unknown = Sample { value: f64::NAN, floor: f64::NAN };
            let Sample { value, floor } = timing.map_or(unknown, |timing| timing.median);
            let (places, against) = match unit {
                Unit::Nanoseconds => (0, value - floor),
                Unit::Mpps => (2, value / floor),
            };
            let flows = if case.flows == DISTINCT { "all new".into() } else { count(case.flows) };
            let cell = |value| figure(value, places);
            table.row([case.name.to_owned(), flows, cell(value), cell(floor), cell(against)]);
        }
        table
    }

    fn peers(&self) -> Table {
        let mut table = Table::new(&[
            "",
            "new connections a second",
            "failed",
            "CPU µs a connection",
            "upload, Gbit/s",
            "CPU ms a GB",
        ]);
        for each in &self.report.peers {
            table.row([
                each.peer.name().to_owned(),
                figure(each.connections, 0),
                figure(each.failed, 0),
                figure(each.connection_cpu_us, 1),
                figure(each.gigabits, 2),
                figure(each.gigabyte_cpu_ms, 0),
            ]);
        }
        table
    }

    fn tables(&self) -> Table {
        let mut table = Table::new(&["members", "slots", "ms"]);
        for each in &self.report.tables {
            let (members, slots) = (count(each.members.into()), count(each.slots.into()));
            table.row([members, slots, figure(each.ms(), 1)]);
        }
        table
    }
}

const INTRODUCTION: &str = "\
# Performance

`cargo xtask bench --document` wrote this page. To change its text, edit `tests/bench/document`; to get figures of your
own machine, run the command. Every figure is a median of rounds in which all that is compared takes turns, because
machines are noisy.

";

const QUICK: &str = "\
**These figures are from a quick run** (few and short rounds), on a machine that did other work at the same time. They
show what the page looks like and are not fit for comparisons.

";

const TIMES: &str = "
## Time a packet
The kernel runs the balancer's program on one CPU again and again (`BPF_PROG_TEST_RUN`). A small program in front makes
each packet new: it draws the flow, and writes the headers. The *floor* is the least that any program which encapsulates
does (make room, return `XDP_TX`), behind the same small program, so that what is above the floor is the balancer's own.
Katran's program was measured beside it in the same way ([figures](experiments.md#katrans-program-beside-spillways)).

";

const CASES_EXPLAINED: &str = "
Packets go to one of 100 services that share a pool of 100 backends in each of two regions, and leave in IP in IP over
IPv4, over IPv6 if they are IPv6 themselves. \"All new\": no flow comes twice in a round. `1,000 services of 10, random`:
each packet goes to one of so many services at random, each of which has a pool and a table of its own.

| packets | what they are |
|---|---|
| tcp established, udp, not ours | packets of open connections; datagrams of a service that tracks no flows; packets to an address that is no VIP |
| another protocol, not ours | ESP packets to such an address |
| unserved port, to the host; unserved port; unserved protocol; fragment without ports; ipv6 fragment without ports | SYNs to a port of a VIP that no service has, left to the host, and dropped (`unserved`); ESP packets to the VIP, and fragments other than the first, dropped |
| icmp error of a connection | \"fragmentation needed\" about an open connection, from many routers |
| syn with a limit, refused, to the next region | SYNs to a pool with a capacity: below it; over it, and the service rejects; over it, and the next region takes them. \"All new\" fills the flow table, as a flood does |
| packet after it | the first packet after a SYN that went to the next region: its cell is not half-open any more |
| displaced connection | later packets of such a connection |
| at home, one of 100 away | packets of connections at home, while those of one backend of a hundred are displaced |
| at home, all zones on | the same while some connection of each zone is displaced |
| at home, after its syn | the same right after the connection's SYN |
| remap, home stays | packets of open connections during a remap that does not move them |
| remap moves it, first packet; later | those of connections that it moves: the first, which takes a cell, and later ones |
| syn repeated | a SYN that comes again, of a pool with a capacity |
| udp tracked | datagrams of tracked flows |
| packet, nobody is up; syn, nobody is up | packets of a pool whose members are all down |
| others captured; captured, nobody reads | a capture of other packets runs; a capture of these packets, whose samples are not read |

";

const RATES: &str = "## Packets a second through a veth pair
Here frames are sent through the driver of a veth pair, on the same CPUs. The program at the far end sends them back
(`XDP_TX`) or out of a second pair (redirect); those that arrive are counted.

";

const PEERS: &str = "
## Beside nftables, haproxy and nginx
All have a node of their own in one network of namespaces, on veth pairs of one kind, and send to as many backends. The
client, the router, the balancers and the backends share the machine's CPUs, so the CPU time that a connection or a
gigabyte takes on the whole machine says more than the rates. Segmentation and checksum offload are off on all links:
each packet counts as one on the wire.

Spillway runs as in production, with health checks and receivers on its backends, and answers go past it. nftables
translates destinations by a hash of the client and masquerades. haproxy (`mode tcp`) and nginx (`stream`, a worker a
CPU) accept and connect, with defaults. Without a balancer the router spreads connections over the backends (ECMP by
address and port). Connections are made by wrk, 64 at a time, each with one short HTTP request. Uploads are eight
connections that write all the time. nftables uploads faster than Spillway here. Why, and how much of the difference to
no balancer the laboratory makes, is in [experiments.md](experiments.md#the-same-with-http).

";

const TABLES: &str = "
## Building a table
From unsorted members of equal weight to the finished words of a Maglev table, on one CPU.

";

#[cfg(test)]
mod tests;
