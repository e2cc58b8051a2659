//! The page docs/fleet-size.md.

use std::fmt::Write as _;

use anyhow::{Context, Result};

use crate::{
    etcd,
    fit::Model,
    fleet::Size,
    scenario::Figures,
    sizes::Sizes,
    table::{Table, bytes, curve, number, percent, seconds},
};

/// What a balancer may spend on sharing, so that all balancers can go on telling all others: CPU seconds in a second, and
/// bytes a second.
const MOST_CPU: f64 = 0.1;
const MOST_BYTES: f64 = 12.5e6;
/// Numbers of groups and balancers of tables of computed figures.
const GROUPS: [usize; 4] = [2, 10, 100, 1_000];
const BALANCERS: [usize; 4] = [10, 30, 100, 1_000];

/// The figures of each axis.
pub(crate) struct Measured {
    pub(crate) balancers: Vec<Figures>,
    pub(crate) groups: Vec<Figures>,
    pub(crate) regions: Vec<Figures>,
    pub(crate) both: Vec<Figures>,
}

impl Measured {
    fn all(&self) -> impl Iterator<Item = &Figures> {
        self.balancers.iter().chain(&self.groups).chain(&self.regions).chain(&self.both)
    }

    fn model(&self, cost: impl Fn(&Figures) -> f64) -> Result<FittedModel> {
        let of = |it: &Figures| ((it.size.balancers, it.size.groups()), cost(it));
        let measured: Vec<_> = self.all().map(of).collect();
        let model = Model::fit(&measured).context("the sizes are too alike to compute others")?;
        let (error, excess) = (model.error(&measured), model.largest_excess(&measured));
        Ok(FittedModel { model, error, excess })
    }
}

/// A model, with its largest relative error and how many times as large as computed a measured cost was, at most.
struct FittedModel {
    model: Model,
    error: f64,
    excess: f64,
}

impl FittedModel {
    fn cost(&self, balancers: usize, groups: usize) -> f64 {
        self.model.cost(balancers, groups)
    }
}

/// What the page says of the run.
pub(crate) struct Facts<'f> {
    pub(crate) command: &'f str,
    pub(crate) date: &'f str,
}

/// The whole page.
///
/// # Errors
/// Too few sizes were measured to compute others.
pub(crate) fn page(measured: &Measured, facts: &Facts<'_>) -> Result<String> {
    let cpu = measured.model(|it| it.rates.cpu)?;
    let sent = measured.model(|it| it.rates.bytes)?;
    let mut page = String::from(INTRODUCTION);
    let born = measured.all().map(|it| it.born).max();
    write!(
        page,
        "after the 70 % moved to another balancer. Portions of new groups are in force at all balancers after at most {}, a round \
         and a write, whatever the size.\n\nMeasured on {} with `{}`.\n",
        seconds(born),
        facts.date,
        facts.command
    )?;
    section(&mut page, "Balancers", BALANCERS_TEXT, "balancers", &measured.balancers, |size| {
        size.balancers
    })?;
    section(&mut page, "Groups", GROUPS_TEXT, "groups", &measured.groups, Size::groups)?;
    section(&mut page, "Regions", REGIONS_TEXT, "regions", &measured.regions, |size| size.regions)?;
    page += BOTH_TEXT;
    let mut table = Table::new(&["balancers, groups", "sent", "computed", "CPU", "computed"]);
    for it in &measured.both {
        let (balancers, groups) = (it.size.balancers, it.size.groups());
        table.row([
            format!("{balancers}, {groups}"),
            bytes(it.rates.bytes),
            bytes(sent.cost(balancers, groups)),
            percent(it.rates.cpu),
            percent(cpu.cost(balancers, groups)),
        ]);
    }
    page += &table.text();
    write!(
        page,
        "\nOver all sizes that were simulated, what is computed differs from what was measured by at most {} (bytes) and \
         {} (CPU).\n\nSent by each balancer, a second, and CPU of each for sharing:\n\n",
        percent(sent.error),
        percent(cpu.error)
    )?;
    let mut table = Table::new(&["groups", "10 balancers", "30", "100", "1,000"]);
    for groups in GROUPS {
        let cell = |balancers: usize| {
            format!(
                "{}, {}",
                bytes(sent.cost(balancers, groups)),
                percent(cpu.cost(balancers, groups))
            )
        };
        let [a, b, c, d] = BALANCERS.map(cell);
        table.row([number(groups as f64), a, b, c, d]);
    }
    page += &table.text();
    page += TREE_TEXT;
    let mut table = Table::new(&["groups", "balancers by CPU", "by bytes"]);
    for groups in GROUPS {
        let most = |it: &FittedModel, limit: f64| match it.model.most_balancers(
            groups,
            limit / it.excess,
            1_000,
        ) {
            1_000 => "1,000 or more".to_owned(),
            most => number(most as f64),
        };
        table.row([number(groups as f64), most(&cpu, MOST_CPU), most(&sent, MOST_BYTES)]);
    }
    page += &table.text();
    page += &of_etcd(measured)?;
    page += LIMITS;
    Ok(page)
}

fn section(
    page: &mut String,
    title: &str,
    text: &str,
    axis: &str,
    figures: &[Figures],
    value: impl Fn(Size) -> usize,
) -> Result<()> {
    write!(page, "\n## {title}\n{text}\n")?;
    let mut table = Table::new(&[
        axis,
        "rounds/s",
        "messages/s",
        "sent/s",
        "CPU",
        "decide, send, receive",
        "ledger writes/s",
        "written/s",
        "refused",
        "demand begins",
        "moves",
    ]);
    for it in figures {
        let rates = &it.rates;
        let parts = [rates.deciding + rates.storing, rates.sending, rates.receiving];
        table.row([
            number(value(it.size) as f64),
            format!("{:.1}", rates.rounds),
            number(rates.messages),
            bytes(rates.bytes),
            percent(rates.cpu),
            parts.map(percent).join(", "),
            format!("{:.1}", rates.writes),
            bytes(rates.written),
            percent(it.refused),
            seconds(it.begun),
            seconds(it.moved),
        ]);
    }
    *page += &table.text();
    let points = |cost: fn(&Figures) -> f64| -> Vec<(String, f64)> {
        figures.iter().map(|it| (number(value(it.size) as f64), cost(it))).collect()
    };
    write!(page, "\nBytes a second, and CPU; each # is a factor of two:\n\n```text\n")?;
    *page += &curve(axis, &points(|it| it.rates.bytes), bytes);
    *page += "\n";
    *page += &curve(axis, &points(|it| it.rates.cpu), percent);
    *page += "```\n";
    Ok(())
}

fn of_etcd(measured: &Measured) -> Result<String> {
    let mut page = String::from(ETCD_TEXT);
    let mut table = Table::new(&[
        "balancers, pools, regions",
        "`alive/<name>`",
        "generation",
        "all keys",
        "calls/s for leases",
        "read again/s",
        "writes of an Apply",
        "watched for an Apply",
    ]);
    let size = |balancers, pools, regions| Size { balancers, regions, pools };
    let sizes = [
        size(4, 10, 2),
        size(10, 100, 2),
        size(100, 10, 2),
        size(100, 100, 2),
        size(100, 1_000, 1),
        size(1_000, 10, 10),
        size(1_000, 1_000, 1),
        size(100, 10, 100),
    ];
    for size in sizes {
        let it = etcd::figures(size)?;
        let count = |count: usize| number(count as f64);
        table.row([
            format!("{}, {}, {}", count(size.balancers), count(size.pools), count(size.regions)),
            bytes(it.alive as f64),
            bytes(it.generation as f64),
            bytes(it.all as f64),
            number(it.calls),
            bytes(it.read),
            count(it.writes),
            bytes(it.watched),
        ]);
    }
    page += &table.text();
    page += EPOCH_TEXT;
    let mut table =
        Table::new(&["balancers, groups", "largest contribution", "CPU to compute the result"]);
    for it in measured.all().filter(|it| it.size.balancers > 4 || it.size.groups() > 100) {
        table.row([
            format!("{}, {}", number(it.size.balancers as f64), number(it.size.groups() as f64)),
            bytes(it.contribution as f64),
            format!("{:.1} ms", 1_000.0 * it.epoch.as_secs_f64()),
        ]);
    }
    page += &table.text();
    Ok(page)
}

/// Measures all sizes, and says on the standard error how far it is.
///
/// # Errors
/// As [`crate::scenario::measure`].
pub(crate) fn measure_all(
    sizes: Sizes,
    mut measure: impl FnMut(Size) -> Result<Figures>,
) -> Result<Measured> {
    Ok(Measured {
        both: sizes.of_both().map(&mut measure).collect::<Result<_>>()?,
        groups: sizes.of_groups().map(&mut measure).collect::<Result<_>>()?,
        regions: sizes.of_regions().map(&mut measure).collect::<Result<_>>()?,
        balancers: sizes.of_balancers().map(&mut measure).collect::<Result<_>>()?,
    })
}

const INTRODUCTION: &str = "# The size of a fleet

`cargo xtask simulate fleet --document` wrote this page. To change its text, edit `tests/simulate/src/document.rs`.

All balancers of a fleet tell all others what they are offered and what they own of each capacity. The tables show what that
costs as a fleet grows. What decides (`lb-sharing`), the messages as they are encoded and decoded (`lb-peers`), the ledger as
it is encoded, and the admission of connections are the daemon's own code. Time, the network (10 ms, loses nothing), disks
(5 ms) and clients are simulated: SYNs arrive at random (Poisson), 0.8 of each capacity, 70 % of it at one balancer. Each
group has a capacity of 100 connections a second for each balancer. Figures are of one balancer, on average over the one with
most of the demand and another one. CPU is CPU time of one core.

*Demand begins*: from an equal portion for each balancer until at most 1 % is refused in any half second. *Moves*: the same
";

const BALANCERS_TEXT: &str = "Two pools in one region. The balancers take turns on one CPU, so those of a large fleet find little of
their memory in its caches: alone on its host a balancer may need less CPU time than this.
";
const GROUPS_TEXT: &str = "Four balancers, and as many pools as groups, in one region.\n";
const REGIONS_TEXT: &str = "Ten balancers and ten pools, each with a group in each region. Balancers are of the regions in
turn, and clients come to those of a group's region: with more regions than balancers, most groups have no demand.
";

const BOTH_TEXT: &str = "
## Many balancers and many groups
What one balancer, each peer, each group, and each group of each peer cost is fitted to all sizes above and the ones below
(least squares of relative errors); the rest is computed from that, not simulated. Where measured and computed figures differ,
the measured ones count.

";

const TREE_TEXT: &str = "
## From what size on all-to-all is too much
Up to so many balancers sharing takes at most a tenth of a CPU, or at most 100 Mbit/s, of each balancer. This is computed, as
if each size cost as many times more than computed as the one that was furthest above it: large fleets cost more than what is
fitted says. Beyond that balancers would have to tell a few others, which sum up what they hear (a tree): that is not built.

";

const ETCD_TEXT: &str = "
## etcd
Computed from real documents and the intervals of the daemon, not measured. Nothing is written every second: a balancer
writes `alive/<name>` when what it says changes, as after an Apply, and renews its lease every 3 s with two calls. Each reads
all keys but the history again once a minute. All watch all of `alive/`, so what an Apply makes etcd send grows with the square of
the balancers. It does not grow with the pools but for the generation itself: `alive/` has one digest over all tables, and which
pools differ is asked from balancer to balancer.

";

const EPOCH_TEXT: &str = "
When a balancer is forgotten, each other one writes what it owns to a key of its own, which all read. etcd refuses values
above 1.5 MiB:

";

const LIMITS: &str = "
## What this does not show
- The CPU time of TCP, TLS and HTTP/2, of reading counters, and of `spillway fleet status`, which grow in proportion to
  messages, groups, and both.
- Losses and distance: a balancer on another continent hears of demand later by the time that a message takes.
- Rounds that begin early because connections are refused take at most a twentieth of a balancer's time. The simulation does
  not have that limit, so it shows more rounds than there would be.
- etcd under this load.
";
