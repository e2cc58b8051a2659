//! What the names of drivers' counters mean: no two drivers call one thing the same, and some call two things the same.

use std::collections::{BTreeMap, BTreeSet};

use lb_maps::DriverStatistics;

use super::interfaces::DriverDrops;

/// Which frames a driver's counter of drops counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropStage {
    Transmit,
    Redirect,
    Send,
    Refused,
    Program,
    Mixed,
}

impl DropStage {
    pub const ALL: [Self; 6] =
        [Self::Transmit, Self::Redirect, Self::Send, Self::Refused, Self::Program, Self::Mixed];

    /// Its word in answers, metrics and documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transmit => "transmit",
            Self::Redirect => "redirect",
            Self::Send => "send",
            Self::Refused => "refused",
            Self::Program => "program",
            Self::Mixed => "mixed",
        }
    }

    /// One sentence, as docs/observability.md has it.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Transmit => {
                "The program had counted the frame as transmitted; the driver could not send it back out of this interface."
            }
            Self::Redirect => {
                "The program had counted the frame as redirected; this interface, by which it was to leave, could not send it."
            }
            Self::Send => {
                "The program had counted the frame as transmitted or as redirected; the driver could not send it."
            }
            Self::Refused => {
                "The program had counted the frame as redirected; the kernel refused to hand it over. Counted at the interface that it came in on."
            }
            Self::Program => "The program dropped the frame, and has a verdict for it.",
            Self::Mixed => {
                "The driver counts several kinds together: frames that the program dropped, some that it never saw, and some of those above."
            }
        }
    }

    /// Whether the program had counted all of these frames as on their way to a backend.
    pub const fn is_after_program(self) -> bool {
        matches!(self, Self::Transmit | Self::Redirect | Self::Send | Self::Refused)
    }
}

/// Counters of one driver only, whose names other drivers have for something else.
const OF_DRIVER: &[(&str, &str, DropStage)] = &[
    // Linux, drivers/net/veth.c: `rx_drops` has redirects that the kernel refuses, and skbs that cannot be converted.
    ("veth", "rx_drops", DropStage::Mixed),
    ("veth", "peer_tq_xdp_xmit_errors", DropStage::Redirect),
    // virtio_net.c counts XDP_DROP, XDP_ABORTED and what it cannot send or redirect by one counter.
    ("virtio_net", "rx_xdp_drops", DropStage::Mixed),
    ("virtio_net", "tx_xdp_tx_drops", DropStage::Send),
    // ena_xdp.h: a frame that cannot be sent or redirected is counted as aborted. Our program never aborts one.
    ("ena", "rx_xdp_aborted", DropStage::Send),
    ("ena", "xdp_tx_dma_mapping_err", DropStage::Send),
    ("ena", "xdp_tx_prepare_ctx_err", DropStage::Send),
    // netvsc_bpf.c counts refused redirects as drops.
    ("hv_netvsc", "rx_xdp_drop", DropStage::Mixed),
    // sfc, rx.c: frames in several buffers, which the program never saw, and all kinds of errors.
    ("sfc", "rx_xdp_bad_drops", DropStage::Mixed),
];

/// Counters that several drivers have: mlx4, mlx5, gve, mvneta, mvpp2, mtk_eth, fec, dpaa2, enetc, mana, ionic, veth.
const OF_ALL: &[(&str, DropStage)] = &[
    ("rx_xdp_tx_errors", DropStage::Transmit),
    ("rx_xdp_tx_full", DropStage::Transmit),
    ("rx_xdp_tx_err", DropStage::Transmit),
    ("xdp_tx_errors", DropStage::Transmit),
    ("tx_xdp_xmit_errors", DropStage::Redirect),
    ("tx_xdp_full", DropStage::Redirect),
    ("tx_xdp_err", DropStage::Redirect),
    ("rx_xdp_redirect_errors", DropStage::Refused),
    ("rx_xdp_redirect_fail", DropStage::Refused),
    ("rx_redirect_failures", DropStage::Refused),
    ("rx_xdp_drop", DropStage::Program),
    ("rx_xdp_drops", DropStage::Program),
    ("xdp_drop", DropStage::Program),
];

/// What names of counters of drops contain, for drivers that are not known.
const DROP_WORDS: [&str; 5] = ["drop", "err", "full", "fail", "abort"];

/// Words of names that say nothing of what is counted.
const QUEUE_WORDS: [&str; 3] = ["queue", "ring", "drv"];

/// The counters of a driver that are about drops at XDP, by name, those of queues added up. If a driver has the sum
/// too, the queues are left out.
pub(super) fn drops(statistics: &DriverStatistics) -> Vec<DriverDrops> {
    let named = statistics.counters.iter().map(|(name, value)| (Name::parse(name), *value));
    let named: Vec<_> = named.collect();
    let totals: BTreeSet<_> =
        named.iter().filter(|(n, _)| !n.of_queue).map(|(n, _)| &n.key).collect();
    let mut sums = BTreeMap::<&str, (DropStage, u64)>::new();
    for (name, value) in &named {
        let Some(stage) = stage(&statistics.driver, &name.key) else { continue };
        if name.of_queue && totals.contains(&name.key) {
            continue;
        }
        let (_, sum) = sums.entry(&name.shown).or_insert((stage, 0));
        *sum = sum.saturating_add(*value);
    }
    let drops = sums.into_iter().map(|(counter, (stage, frames))| DriverDrops {
        counter: counter.to_owned(),
        stage: stage.name().into(),
        after_program: stage.is_after_program(),
        frames,
    });
    drops.collect()
}

fn stage(driver: &str, key: &str) -> Option<DropStage> {
    let of_driver = OF_DRIVER.iter().find(|(of, name, _)| (*of, *name) == (driver, key));
    let of_all = OF_ALL.iter().find(|(name, _)| *name == key);
    let known = of_driver.map(|(.., stage)| *stage).or(of_all.map(|(_, stage)| *stage));
    // AF_XDP sockets (xsk) take no frame of ours.
    let is_like_one = key.contains("xdp")
        && !key.contains("xsk")
        && DROP_WORDS.iter().any(|word| key.contains(word));
    known.or(is_like_one.then_some(DropStage::Mixed))
}

/// The name of a counter.
struct Name {
    /// With N for the number of the queue.
    shown: String,
    /// Without the queue, in lower case, its words joined by `_`.
    key: String,
    of_queue: bool,
}

impl Name {
    /// Drivers write queues in many ways: `rx_queue_0_xdp_drops`, `rx0_xdp_drop`, `rx_xdp_drop[0]`,
    /// `queue_0_rx_xdp_drop`, `Rx ring  0 XDP drops`.
    fn parse(name: &str) -> Self {
        let (mut shown, mut words) = (String::new(), String::new());
        let mut in_number = false;
        for c in name.trim().chars() {
            if c.is_ascii_digit() {
                shown.extend((!in_number).then_some('N'));
                words.push(' ');
            } else {
                shown.push(c);
                words.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' });
            }
            in_number = c.is_ascii_digit();
        }
        let join = |words: &str, with| {
            let words = words.split_whitespace();
            words.filter(|word| !QUEUE_WORDS.contains(word)).collect::<Vec<_>>().join(with)
        };
        Self { of_queue: shown.contains('N'), key: join(&words, "_"), shown: join(&shown, " ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `ethtool -S` prints.
    fn statistics(driver: &str, text: &str) -> DriverStatistics {
        let counter = |line: &str| {
            let (name, value) = line.rsplit_once(": ").unwrap();
            (name.trim_start().to_owned(), value.parse().unwrap())
        };
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        DriverStatistics { driver: driver.into(), counters: lines.map(counter).collect() }
    }

    #[track_caller]
    fn assert_drops(driver: &str, text: &str, expected: &[(&str, &str, u64)]) {
        let drops = drops(&statistics(driver, text));
        let drops: Vec<_> =
            drops.iter().map(|it| (it.counter.as_str(), &*it.stage, it.frames)).collect();
        assert_eq!(drops, expected);
    }

    /// Linux 6.18, with two queues.
    #[test]
    fn veth_counts_drops_by_the_program_and_after_it() {
        let text = "
     peer_ifindex: 2
     rx_queue_0_xdp_packets: 100
     rx_queue_0_xdp_bytes: 6000
     rx_queue_0_drops: 1
     rx_queue_0_xdp_redirect: 2
     rx_queue_0_xdp_drops: 3
     rx_queue_0_xdp_tx: 4
     rx_queue_0_xdp_tx_errors: 5
     rx_queue_1_xdp_packets: 100
     rx_queue_1_xdp_bytes: 6000
     rx_queue_1_drops: 10
     rx_queue_1_xdp_redirect: 20
     rx_queue_1_xdp_drops: 30
     rx_queue_1_xdp_tx: 40
     rx_queue_1_xdp_tx_errors: 50
     tx_queue_0_xdp_xmit: 6
     tx_queue_0_xdp_xmit_errors: 7
     tx_queue_1_xdp_xmit: 60
     tx_queue_1_xdp_xmit_errors: 70
";
        assert_drops(
            "veth",
            text,
            &[
                ("rx_queue_N_drops", "mixed", 11),
                ("rx_queue_N_xdp_drops", "program", 33),
                ("rx_queue_N_xdp_tx_errors", "transmit", 55),
                ("tx_queue_N_xdp_xmit_errors", "redirect", 77),
            ],
        );
    }

    /// Of a guest on Linux 5.19 (gamemann/xdp-firewall, issue 31), and the names since 6.7.
    #[test]
    fn virtio_counts_together_what_it_cannot_send() {
        let text = "
     rx_queue_0_packets: 8436611
     rx_queue_0_bytes: 4476286219
     rx_queue_0_drops: 1
     rx_queue_0_xdp_packets: 2480
     rx_queue_0_xdp_tx: 2
     rx_queue_0_xdp_redirects: 3
     rx_queue_0_xdp_drops: 4
     rx_queue_0_kicks: 134
     tx_queue_0_packets: 5272491
     tx_queue_0_bytes: 5331752464
     tx_queue_0_xdp_tx: 5
     tx_queue_0_xdp_tx_drops: 6
     tx_queue_0_kicks: 5030536
";
        let stages = [("rx_queue_N_xdp_drops", "mixed", 4), ("tx_queue_N_xdp_tx_drops", "send", 6)];
        assert_drops("virtio_net", text, &stages);
        let text = text.replace("_queue_", "");
        let stages = [("rxN_xdp_drops", "mixed", 4), ("txN_xdp_tx_drops", "send", 6)];
        assert_drops("virtio_net", &text, &stages);
    }

    /// isc-projects/ethq, issue 20. The rings are in the sums already.
    #[test]
    fn mlx5_has_sums_and_rings() {
        let text = "
     rx_xdp_drop: 1
     rx_xdp_redirect: 59031087
     rx_xdp_tx_xmit: 0
     rx_xdp_tx_mpwqe: 0
     rx_xdp_tx_inlnw: 0
     rx_xdp_tx_nops: 0
     rx_xdp_tx_full: 2
     rx_xdp_tx_err: 3
     rx_xdp_tx_cqe: 0
     tx_xdp_xmit: 0
     tx_xdp_mpwqe: 0
     tx_xdp_inlnw: 0
     tx_xdp_nops: 0
     tx_xdp_full: 4
     tx_xdp_err: 5
     tx_xdp_cqes: 0
     rx_xsk_xdp_drop: 6
     rx_xsk_xdp_redirect: 0
     rx0_xdp_drop: 1
     rx0_xdp_redirect: 0
     rx0_xdp_tx_xmit: 0
     rx0_xdp_tx_full: 2
     rx0_xdp_tx_err: 3
";
        assert_drops(
            "mlx5_core",
            text,
            &[
                ("rx_xdp_drop", "program", 1),
                ("rx_xdp_tx_err", "transmit", 3),
                ("rx_xdp_tx_full", "transmit", 2),
                ("tx_xdp_err", "redirect", 5),
                ("tx_xdp_full", "redirect", 4),
            ],
        );
    }

    /// amzn/amzn-drivers, issue 170; drivers/net/ethernet/amazon/ena/ena_ethtool.c.
    #[test]
    fn ena_calls_lost_frames_aborted() {
        let text = "
     queue_0_tx_cnt: 2005711
     queue_0_tx_dma_mapping_err: 1
     queue_0_rx_cnt: 9300271
     queue_0_rx_xdp_aborted: 2
     queue_0_rx_xdp_drop: 3
     queue_0_rx_xdp_pass: 4
     queue_0_rx_xdp_tx: 5
     queue_0_rx_xdp_invalid: 0
     queue_0_rx_xdp_redirect: 7
     queue_1_xdp_tx_cnt: 8
     queue_1_xdp_tx_dma_mapping_err: 9
     queue_1_xdp_tx_prepare_ctx_err: 10
";
        assert_drops(
            "ena",
            text,
            &[
                ("queue_N_rx_xdp_aborted", "send", 2),
                ("queue_N_rx_xdp_drop", "program", 3),
                ("queue_N_xdp_tx_dma_mapping_err", "send", 9),
                ("queue_N_xdp_tx_prepare_ctx_err", "send", 10),
            ],
        );
    }

    /// drivers/net/ethernet/google/gve/gve_ethtool.c.
    #[test]
    fn gve_writes_queues_in_brackets() {
        let text = "
     rx_xdp_aborted[0]: 1
     rx_xdp_drop[0]: 2
     rx_xdp_pass[0]: 3
     rx_xdp_tx[0]: 4
     rx_xdp_redirect[0]: 5
     rx_xdp_tx_errors[0]: 6
     rx_xdp_redirect_errors[0]: 7
     rx_xdp_alloc_fails[0]: 8
     rx_xdp_tx_errors[1]: 60
     tx_xdp_xmit[0]: 9
     tx_xdp_xmit_errors[0]: 10
";
        assert_drops(
            "gve",
            text,
            &[
                ("rx_xdp_aborted[N]", "mixed", 1),
                ("rx_xdp_alloc_fails[N]", "mixed", 8),
                ("rx_xdp_drop[N]", "program", 2),
                ("rx_xdp_redirect_errors[N]", "refused", 7),
                ("rx_xdp_tx_errors[N]", "transmit", 66),
                ("tx_xdp_xmit_errors[N]", "redirect", 10),
            ],
        );
    }

    /// drivers/net/ethernet/freescale/enetc/enetc_ethtool.c pads its numbers.
    #[test]
    fn names_may_have_spaces() {
        let text = "
     Rx ring  0 XDP drops: 1
     Rx ring 10 XDP drops: 2
     Rx ring  0 redirects: 3
     Rx ring  0 redirect failures: 4
";
        let stages = [("Rx N XDP drops", "program", 3), ("Rx N redirect failures", "refused", 4)];
        assert_drops("fsl_enetc", text, &stages);
    }

    /// mlx4, of which other drivers have the same: drivers/net/ethernet/mellanox/mlx4/en_ethtool.c.
    #[test]
    fn mlx4_counts_refused_redirects() {
        let text = "
     rx_xdp_drop: 1
     rx_xdp_redirect: 2
     rx_xdp_redirect_fail: 3
     rx_xdp_tx: 4
     rx_xdp_tx_full: 5
     rx0_xdp_drop: 1
     rx0_xdp_redirect_fail: 3
     rx0_xdp_tx_full: 5
";
        assert_drops(
            "mlx4_en",
            text,
            &[
                ("rx_xdp_drop", "program", 1),
                ("rx_xdp_redirect_fail", "refused", 3),
                ("rx_xdp_tx_full", "transmit", 5),
            ],
        );
    }

    /// isc-projects/ethq, issue 24. Its drops at XDP are in no counter; i40e and ice are like it.
    #[test]
    fn ixgbe_has_none() {
        let text = "
     rx_packets: 22054047
     tx_packets: 943793
     tx_busy: 3
     rx_dropped: 4
     tx_dropped: 5
     fdir_overflow: 6
     rx_fifo_errors: 7
     alloc_rx_page_failed: 8
     tx_queue_0_packets: 9
     rx_queue_0_packets: 10
";
        assert_drops("ixgbe", text, &[]);
    }
}
